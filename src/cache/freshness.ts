import { parseHttpDate } from '../http/dates.ts'
import { fieldValue, fieldValues } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import type { CachePolicy, CacheRule } from './policy.ts'
import type { ResponseControl } from './response-control.ts'
import { isHeuristicallyCacheable } from './statuses.ts'

/** Where a freshness lifetime comes from. */
type FreshnessSource = 'override' | 'upstream' | 'rule' | 'heuristic' | 'none'

export type Freshness = { readonly lifetimeMs: number; readonly source: FreshnessSource }

/** RFC 9111 §4.2.2 leaves the fraction open and names a tenth; a day keeps a mistake short. */
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
  // Two lines, or anything that is no date such as `0`, mean already expired (RFC 9111 §5.3).
  const expires = lines.length === 1 ? parseHttpDate(lines[0] ?? '', responseTime) : undefined
  if (expires === undefined) return { lifetimeMs: 0, source: 'upstream' }
  const date = parseHttpDate(fieldValue(head.fields, 'date') ?? '', responseTime) ?? responseTime
  return { lifetimeMs: Math.max(0, expires - date), source: 'upstream' }
}

/** In the order of RFC 9111 §4.2.1; a targeted field leaves no say to Expires (RFC 9213 §2.2). */
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

/** Freshness lifetime (RFC 9111 §4.2.1): what the upstream states, else what the rule says, else, where allowed, a heuristic. */
export const freshnessLifetime = (
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
