import type { Moment } from '../../clock.ts'
import { nonNegativeInteger } from '../../http/cache-control.ts'
import { parseHttpDate } from '../../http/conditional/dates.ts'
import { fieldValue, fieldValues } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { CachePolicy, CacheRule, WhileHeard } from '../decide-caching.ts'
import type { ResponseControl } from './response-control.ts'

/** The first member counts, and an Age that is no integer is ignored (RFC 9111 §5.1). Milliseconds. */
const ageValueMs = (head: ResponseHead): number => {
  const first = fieldValues(head.fields, 'age')[0]?.split(',', 1)[0]?.trim()
  return (nonNegativeInteger(first) ?? 0) * 1000
}

/** When the request was sent and when the head of its response had arrived. */
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

/** Where a freshness lifetime comes from. */
type FreshnessSource = 'override' | 'upstream' | 'rule' | 'heuristic' | 'none'

export type Freshness = { readonly lifetimeMs: number; readonly source: FreshnessSource }

/** RFC 9111 §4.2.2 leaves the fraction open and names a tenth; after a day at the latest the response is validated. */
const heuristicShare = 0.1
const longestHeuristicMs = 86_400_000

/** Seconds of a directive as a lifetime; invalid freshness information makes a response stale (RFC 9111 §4.2.1). */
const stated = (seconds: number | 'invalid'): Freshness => ({
  lifetimeMs: seconds === 'invalid' ? 0 : seconds * 1000,
  source: 'upstream',
})

const fromExpires = (head: ResponseHead, responseTime: number): Freshness | undefined => {
  const lines = fieldValues(head.fields, 'expires')
  if (lines.length === 0) return undefined
  // Two lines, or a value that is no date, such as `0`, mean already expired (RFC 9111 §5.3).
  const expires = lines.length === 1 ? parseHttpDate(lines[0] ?? '', responseTime) : undefined
  if (expires === undefined) return { lifetimeMs: 0, source: 'upstream' }
  const date = parseHttpDate(fieldValue(head.fields, 'date') ?? '', responseTime) ?? responseTime
  return { lifetimeMs: Math.max(0, expires - date), source: 'upstream' }
}

/** In the order of RFC 9111 §4.2.1; with a targeted field Expires is ignored (RFC 9213 §2.2). */
const fromUpstream = (
  head: ResponseHead,
  control: ResponseControl,
  responseTime: number,
): Freshness | undefined => {
  if (control.sMaxAge !== undefined) return stated(control.sMaxAge)
  if (control.maxAge !== undefined) return stated(control.maxAge)
  return control.source === 'targeted' ? undefined : fromExpires(head, responseTime)
}

const fromRule = (status: number, rule: CacheRule, source: FreshnessSource): Freshness | undefined => {
  if (status === 200 || status === 206) return { lifetimeMs: rule.ttlMs, source }
  return (status === 404 || status === 410) && rule.negativeTtlMs > 0
    ? { lifetimeMs: rule.negativeTtlMs, source }
    : undefined
}

const heuristic = (
  head: ResponseHead,
  control: ResponseControl,
  responseTime: number,
): Freshness | undefined => {
  if (!isHeuristicallyCacheable(head.status) && !control.isPublic) return undefined
  const modified = parseHttpDate(fieldValue(head.fields, 'last-modified') ?? '', responseTime)
  if (modified === undefined) return undefined
  const date = parseHttpDate(fieldValue(head.fields, 'date') ?? '', responseTime) ?? responseTime
  const lifetimeMs = Math.min(Math.max(0, date - modified) * heuristicShare, longestHeuristicMs)
  return { lifetimeMs, source: 'heuristic' }
}

const none: Freshness = { lifetimeMs: 0, source: 'none' }

/** Trellis-Max-Age; infinite where there is none. A value that cannot be read makes the response stale at once. */
const changesByClockMs = ({ hints }: ResponseHead): number =>
  hints?.maxAge === undefined
    ? Number.POSITIVE_INFINITY
    : (nonNegativeInteger(hints.maxAge.trim()) ?? 0) * 1000

const plainLifetime = (
  head: ResponseHead,
  control: ResponseControl,
  policy: CachePolicy,
  responseTime: number,
): Freshness => {
  const { rule, profile } = policy
  if (rule?.override === true) {
    const overridden = fromRule(head.status, rule, 'override')
    if (overridden !== undefined) return overridden
  }
  const upstream = fromUpstream(head, control, responseTime)
  if (upstream !== undefined) return upstream
  const ruled = rule === undefined ? undefined : fromRule(head.status, rule, 'rule')
  if (ruled !== undefined && ruled.lifetimeMs > 0) return ruled
  return (
    (profile === 'rfc-shared-cache' ? heuristic(head, control, responseTime) : undefined) ?? ruled ?? none
  )
}

/**
 * Freshness lifetime (RFC 9111 §4.2.1): of the upstream, else of the rule, else, where allowed, a heuristic; at most what the
 * response allows for changes by the clock.
 */
export const freshnessLifetime = (
  head: ResponseHead,
  control: ResponseControl,
  policy: CachePolicy,
  responseTime: number,
): Freshness => {
  const freshness = plainLifetime(head, control, policy, responseTime)
  const mostMs = changesByClockMs(head)
  return freshness.lifetimeMs <= mostMs ? freshness : { ...freshness, lifetimeMs: mostMs }
}

/** The lifetime of a rule is for changes that nothing tells of: a change feed replaces it, where it is longer. */
const heardLifetime = (
  head: ResponseHead,
  { lifetimeMs, source }: Freshness,
  { whileHeard }: CachePolicy,
): WhileHeard | undefined => {
  if (whileHeard === undefined || head.status !== 200 || lifetimeMs === 0) return undefined
  if (source !== 'rule' && source !== 'override') return undefined
  const mostMs = Math.min(whileHeard.lifetimeMs, changesByClockMs(head))
  if (mostMs <= lifetimeMs) return undefined
  return mostMs === whileHeard.lifetimeMs ? whileHeard : { ...whileHeard, lifetimeMs: mostMs }
}

const windowMs = (stated: number | 'invalid' | undefined, ruled: number | undefined): number => {
  if (stated === 'invalid') return 0
  return stated === undefined ? (ruled ?? 0) : stated * 1000
}

/** How long and under which conditions a response may be reused: RFC 9111 §4.2, RFC 5861, and the rule. */
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
    whileHeard: heardLifetime(head, freshness, policy),
  }
}

const heuristicallyCacheable: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
])

/** May be cached without explicit freshness (RFC 9110 §15.1). */
export const isHeuristicallyCacheable = (status: number): boolean => heuristicallyCacheable.has(status)
