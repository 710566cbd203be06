import type { BatchItem, HandleItem, ItemResponse } from '../item.ts'
import type { Waits } from '../order/plan-order.ts'

/** Equal reads after the same writes are sent once. */
const readKey = (item: BatchItem, waits: Waits): string =>
  JSON.stringify([item.method, item.path, item.query, item.headers, waits])

/** Identical reads of a batch are one request: the first that begins is sent, and all get its response. */
export const collapseReads = (handleItem: HandleItem, waits: readonly Waits[]): HandleItem => {
  const begun = new Map<string, Promise<ItemResponse>>()
  return (item, signal, stop) => {
    if (item.effect === 'write' || item.content !== undefined) return handleItem(item, signal, stop)
    const key = readKey(item, waits[item.index])
    const pendingResponse = begun.get(key)
    if (pendingResponse !== undefined) return pendingResponse
    const response = handleItem(item, signal, stop)
    begun.set(key, response)
    return response
  }
}
