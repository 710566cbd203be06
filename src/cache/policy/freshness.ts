import type { Moment } from '../../clock.ts'
import { parseHttpDate } from '../../http/conditional/dates.ts'
import { nonNegativeInteger } from '../../http/headers/caching-headers.ts'
import { headerValue, headerValues } from '../../http/headers/header-lines.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { CachePolicy, CacheRule, FeedLifetime } from '../decide-caching.ts'
import { type ResponseControl, responseControl } from './response-control.ts'

/** The first member counts, and an Age that is no integer is ignored (RFC 9111 §5.1). Milliseconds. */
const ageValueMs = (head: ResponseHead): number => {
  const first = headerValues(head.headers, 'age')[0]?.split(',', 1)[0]?.trim()
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
  const date = parseHttpDate(headerValue(head.headers, 'date') ?? '', times.received.now)
  const apparent = date === undefined ? 0 : Math.max(0, times.received.now - date)
  return Math.max(apparent, corrected)
}

type FreshnessSource = 'override' | 'upstream' | 'rule' | 'heuristic' | 'none' | 'ended'

export type Freshness = { readonly lifetimeMs: number; readonly source: FreshnessSource }

/** RFC 9111 §4.2.2 leaves the fraction open and names a tenth; after a day at the latest the response is validated. */
const heuristicShare = 0.1
const longestHeuristicMs = 86_400_000

/** Seconds of a directive as a lifetime; invalid freshness information makes a response stale (RFC 9111 §4.2.1). */
const fromSeconds = (seconds: number | 'invalid'): Freshness => ({
  lifetimeMs: seconds === 'invalid' ? 0 : seconds * 1000,
  source: 'upstream',
})

const fromExpires = (head: ResponseHead, responseTime: number): Freshness | undefined => {
  const lines = headerValues(head.headers, 'expires')
  if (lines.length === 0) return undefined
  // Two lines, or a value that is no date, such as `0`, mean already expired (RFC 9111 §5.3).
  const expires = lines.length === 1 ? parseHttpDate(lines[0] ?? '', responseTime) : undefined
  if (expires === undefined) return { lifetimeMs: 0, source: 'upstream' }
  const date = parseHttpDate(headerValue(head.headers, 'date') ?? '', responseTime) ?? responseTime
  return { lifetimeMs: Math.max(0, expires - date), source: 'upstream' }
}

/** In the order of RFC 9111 §4.2.1; with a targeted header Expires is ignored (RFC 9213 §2.2). */
const fromUpstream = (
  head: ResponseHead,
  control: ResponseControl,
  responseTime: number,
): Freshness | undefined => {
  if (control.sMaxAge !== undefined) return fromSeconds(control.sMaxAge)
  if (control.maxAge !== undefined) return fromSeconds(control.maxAge)
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
  const modified = parseHttpDate(headerValue(head.headers, 'last-modified') ?? '', responseTime)
  if (modified === undefined) return undefined
  const date = parseHttpDate(headerValue(head.headers, 'date') ?? '', responseTime) ?? responseTime
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
 * response allows for changes by the clock, and what is left of the token of the request.
 */
export const freshnessLifetime = (
  head: ResponseHead,
  control: ResponseControl,
  policy: CachePolicy,
  responseTime: number,
): Freshness => {
  const freshness = plainLifetime(head, control, policy, responseTime)
  const leftMs = (policy.endsAt ?? Number.POSITIVE_INFINITY) - responseTime
  if (leftMs <= 0) return { lifetimeMs: 0, source: 'ended' }
  const maxMs = Math.min(changesByClockMs(head), leftMs)
  return freshness.lifetimeMs <= maxMs ? freshness : { ...freshness, lifetimeMs: maxMs }
}

/**
 * How long caches in front of the gateway may keep a response: `longestMs` in place of the lifetime of a rule, never longer than the
 * upstream states, or than nothing changes by the clock.
 */
export const downstreamLifetimeMs = (
  head: ResponseHead,
  policy: CachePolicy,
  responseTime: number,
  longestMs: number,
): number => {
  const { lifetimeMs, source } = plainLifetime(head, responseControl(head.headers), policy, responseTime)
  const isNegative = head.status === 404 || head.status === 410
  const isRuled = (source === 'rule' || source === 'override') && !isNegative
  return Math.min(longestMs, changesByClockMs(head), isRuled && lifetimeMs > 0 ? longestMs : lifetimeMs)
}

/** The lifetime of a rule is for changes that nothing reports: that of a change feed replaces it where it is longer. */
const feedLifetimeOf = (
  head: ResponseHead,
  { lifetimeMs, source }: Freshness,
  { feedLifetime }: CachePolicy,
): FeedLifetime | undefined => {
  if (feedLifetime === undefined || head.status !== 200 || lifetimeMs === 0) return undefined
  if (source !== 'rule' && source !== 'override') return undefined
  const maxMs = Math.min(feedLifetime.lifetimeMs, changesByClockMs(head))
  if (maxMs <= lifetimeMs) return undefined
  return maxMs === feedLifetime.lifetimeMs ? feedLifetime : { ...feedLifetime, lifetimeMs: maxMs }
}

const windowMs = (seconds: number | 'invalid' | undefined, ruled: number | undefined): number => {
  if (seconds === 'invalid') return 0
  return seconds === undefined ? (ruled ?? 0) : seconds * 1000
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
  // s-maxage means proxy-revalidate (RFC 9111 §5.2.2.10), unless the same header grants a window of staleness (RFC 5861).
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
    feedLifetime: feedLifetimeOf(head, freshness, policy),
  }
}

const heuristicallyCacheable: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
])

/** May be cached without explicit freshness (RFC 9110 §15.1). */
export const isHeuristicallyCacheable = (status: number): boolean => heuristicallyCacheable.has(status)
