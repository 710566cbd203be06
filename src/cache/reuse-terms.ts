import type { ResponseHead } from '../http/message.ts'
import { correctedInitialAgeMs, type ExchangeTimes } from './age.ts'
import { freshnessLifetime } from './freshness.ts'
import type { CachePolicy } from './policy.ts'
import type { ResponseControl } from './response-control.ts'

const windowMs = (stated: number | 'invalid' | undefined, ruled: number | undefined): number => {
  if (stated === 'invalid') return 0
  return stated === undefined ? (ruled ?? 0) : stated * 1000
}

/** How long and under what conditions a response may be reused: RFC 9111 §4.2, RFC 5861, and the rule where it says more. */
export const reuseTerms = (
  head: ResponseHead,
  control: ResponseControl,
  policy: CachePolicy,
  times: ExchangeTimes,
) => {
  const { rule } = policy
  const freshness = freshnessLifetime(head, control, policy, times.received.now)
  const ruled = freshness.source === 'override' || freshness.source === 'rule'
  const override = freshness.source === 'override'
  const must = control.mustRevalidate && !override
  // s-maxage means proxy-revalidate (RFC 9111 §5.2.2.10), unless the same field grants a window of staleness (RFC 5861).
  const strict = must || (control.sMaxAge !== undefined && !override)
  const swr = override ? undefined : control.staleWhileRevalidate
  const sie = override ? undefined : control.staleIfError
  return {
    lifetimeMs: freshness.lifetimeMs,
    initialAgeMs: correctedInitialAgeMs(head, times, !ruled),
    staleWhileRevalidateMs: must ? 0 : windowMs(swr, strict ? 0 : rule?.staleWhileRevalidateMs),
    staleIfErrorMs: must ? 0 : windowMs(sie, strict ? 0 : rule?.staleIfErrorMs),
    validateAlways: control.noCache && !override,
    neverStale: strict,
  }
}
