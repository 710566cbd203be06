import { nonNegativeInteger } from '../http/cache-control.ts'
import { parseHttpDate } from '../http/dates.ts'
import { fieldValue, fieldValues } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'

/** One reading of both clocks. */
export type Moment = { readonly now: number; readonly monotonic: number }

/** The first member counts, and an Age that is no integer is ignored (RFC 9111 §5.1). Milliseconds. */
const ageValueMs = (head: ResponseHead): number => {
  const first = fieldValues(head.fields, 'age')[0]?.split(',', 1)[0]?.trim()
  return (nonNegativeInteger(first) ?? 0) * 1000
}

/** When a forward began and when its head had arrived. */
export type ExchangeTimes = { readonly requested: Moment; readonly received: Moment }

/**
 * corrected_initial_age (RFC 9111 §4.2.3). `trustDate` false leaves the upstream's Date out of it: under an operator's
 * ttl an upstream whose clock is slow would otherwise never be cached.
 */
export const correctedInitialAgeMs = (
  head: ResponseHead,
  times: ExchangeTimes,
  trustDate: boolean,
): number => {
  const delay = Math.max(0, times.received.monotonic - times.requested.monotonic)
  const corrected = ageValueMs(head) + delay
  if (!trustDate) return corrected
  const date = parseHttpDate(fieldValue(head.fields, 'date') ?? '', times.received.now)
  const apparent = date === undefined ? 0 : Math.max(0, times.received.now - date)
  return Math.max(apparent, corrected)
}

/**
 * current_age (RFC 9111 §4.2.3). The larger of both clocks' resident times: the wall clock may be set back,
 * the monotonic one stands still while a machine is suspended, and neither may make a response younger.
 */
export const currentAgeMs = (initialAgeMs: number, received: Moment, at: Moment): number =>
  initialAgeMs + Math.max(0, at.now - received.now, at.monotonic - received.monotonic)
