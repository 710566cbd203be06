import type { BypassReason } from './decide-caching.ts'
import type { NoStoreReason } from './policy/storability.ts'

/** Why a request was forwarded (RFC 9211 §2.2). */
export type ForwardReason = 'bypass' | 'method' | 'uri-miss' | 'vary-miss' | 'request' | 'stale' | 'partial'

/** `detail` of a response from the cache: stale while it is validated, stale because the upstream failed, from the shared store. */
export type HitDetail = 'revalidating' | 'error' | 'shared'

/** Every `detail` that Cache-Status can carry. docs/why-not-cached.md has a row for each. */
export type StatusDetail = BypassReason | NoStoreReason | HitDetail | 'streamed' | 'only-if-cached'

/** Parameters of a forwarded request (RFC 9211 §2). */
export type ForwardedStatus = {
  readonly reason: ForwardReason
  readonly status?: number | undefined
  readonly ttlSeconds?: number
  readonly stored?: boolean
  readonly collapsed?: boolean
  readonly detail?: StatusDetail | undefined
}

/** Name of this cache in Cache-Status. */
const name = 'trellis'

/** `ttl` is negative when the response is stale (RFC 9211 §2.4). */
export const hitStatus = (ttlSeconds: number, detail?: HitDetail): string =>
  `${name}; hit; ttl=${ttlSeconds}${detail === undefined ? '' : `; detail=${detail}`}`

export const forwardedStatus = (forwarded: ForwardedStatus): string => {
  let text = `${name}; fwd=${forwarded.reason}`
  if (forwarded.status !== undefined) text += `; fwd-status=${forwarded.status}`
  if (forwarded.ttlSeconds !== undefined) text += `; ttl=${forwarded.ttlSeconds}`
  if (forwarded.stored === true) text += '; stored'
  if (forwarded.collapsed === true) text += '; collapsed'
  return forwarded.detail === undefined ? text : `${text}; detail=${forwarded.detail}`
}

export const bypassStatus = (reason: BypassReason): string => `${name}; fwd=bypass; detail=${reason}`

/** Nothing is stored, and the request allows no other source (RFC 9111 §5.2.1.7). */
export const unavailableStatus: string = `${name}; detail=${'only-if-cached' satisfies StatusDetail}`

/** A write: its method must be forwarded (RFC 9211 §2.2). */
export const writeStatus: string = `${name}; fwd=method`
