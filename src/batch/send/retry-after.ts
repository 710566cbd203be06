import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import { retryAfterMs } from '../../http/headers/retry-after.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { HandleItem } from '../item.ts'

/** A longer wait is the client's to decide about: it gets the 429 with its Retry-After. */
const longestMs = 10_000

/** Milliseconds to wait after a 429 of the upstream; undefined for other responses, or when that is too long. */
const waitMs = ({ status, headers }: ResponseHead, leftMs: number, nowMs: number): number | undefined => {
  // RFC 6585 §4: a request that gets 429 was not carried out, whatever its method.
  if (status !== 429) return undefined
  const ms = retryAfterMs(headerValue(headers, 'retry-after'), nowMs)
  return ms !== undefined && ms <= longestMs && ms < leftMs ? ms : undefined
}

/**
 * Waits as Retry-After of a 429 demands, when `leftMs` allows: `again` = the request may be sent once
 * more; `over` = stopped first; `none` = no wait, the response is final.
 */
export const waitedFor = async (
  head: ResponseHead,
  leftMs: number,
  nowMs: number,
  stop: AbortSignal,
): Promise<'again' | 'over' | 'none'> => {
  const ms = waitMs(head, leftMs, nowMs)
  if (ms === undefined) return 'none'
  return setTimeout(ms, 'again' as const, { signal: stop }).catch(() => 'over' as const)
}

/** Sends an item once more after the time in Retry-After of a 429, when the batch has that much time left. */
export const honouringRetryAfter =
  (handleItem: HandleItem, leftMs: () => number, { now }: Pick<Clock, 'now'>): HandleItem =>
  async (item, signal, stop) => {
    const response = await handleItem(item, signal, stop)
    const waited = await waitedFor(response, leftMs(), now(), stop)
    return waited === 'again' ? handleItem(item, signal, stop) : response
  }
