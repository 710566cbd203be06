import type { BatchItem, Dispatch, ItemAnswer } from './item.ts'
import type { Waits } from './plan-order.ts'

/** Two reads are one when they ask the same and come after the same writes. */
const readKey = (item: BatchItem, waits: Waits): string =>
  JSON.stringify([item.service ?? '', item.path, item.query, item.fields, item.credential ?? '', waits])

/** Identical reads of a batch are one request: the first that begins is sent, and its answer is everybody's. */
export const collapseReads = (dispatch: Dispatch, waits: readonly Waits[]): Dispatch => {
  const begun = new Map<string, Promise<ItemAnswer>>()
  return (item, signal, stop) => {
    if (item.method !== 'GET' || item.content !== undefined) return dispatch(item, signal, stop)
    const key = readKey(item, waits[item.index])
    const known = begun.get(key)
    if (known !== undefined) return known
    const answer = dispatch(item, signal, stop)
    begun.set(key, answer)
    return answer
  }
}
