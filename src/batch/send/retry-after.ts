import { fieldValue } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { Dispatch } from '../item.ts'

/** A longer wait is the client's to decide about: it gets the 429 with its Retry-After. */
const longestMs = 10_000

/** Milliseconds to wait after a 429 of the upstream; undefined for other answers, or when that is too long. */
const waitMs = (
  { status, fields }: Pick<ResponseHead, 'status' | 'fields'>,
  leftMs: number,
): number | undefined => {
  // RFC 6585 §4: a request that gets 429 was not carried out, whatever its method.
  if (status !== 429) return undefined
  const value = fieldValue(fields, 'Retry-After') ?? ''
  const ms = /^\d{1,3}$/.test(value) ? Number(value) * 1000 : Number.POSITIVE_INFINITY
  return ms <= longestMs && ms < leftMs ? ms : undefined
}

const pause = (ms: number, stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer)
      stop.removeEventListener('abort', over)
      resolve()
    }
    const timer = setTimeout(over, ms)
    stop.addEventListener('abort', over, { once: true })
  })

/**
 * Waits as Retry-After of a 429 demands, when `leftMs` allows: `again` = the request may be sent once
 * more; `over` = the stop came first; `none` = there is nothing to wait for, the answer stands.
 */
export const waitedFor = async (
  head: Pick<ResponseHead, 'status' | 'fields'>,
  leftMs: number,
  stop: AbortSignal,
): Promise<'again' | 'over' | 'none'> => {
  const ms = waitMs(head, leftMs)
  if (ms === undefined) return 'none'
  await pause(ms, stop)
  return stop.aborted ? 'over' : 'again'
}

/** Sends an item once more after the time in Retry-After of a 429, when the batch has that much time left. */
export const honouringRetryAfter =
  (dispatch: Dispatch, leftMs: () => number): Dispatch =>
  async (item, signal, stop) => {
    const answer = await dispatch(item, signal, stop)
    const waited = await waitedFor(answer, leftMs(), stop)
    return waited === 'again' ? dispatch(item, signal, stop) : answer
  }
