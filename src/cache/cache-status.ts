import type { BypassReason } from './decide-caching.ts'
import type { NoStoreReason } from './policy/storability.ts'

/** Why a request was forwarded (RFC 9211 §2.2). */
export type ForwardReason = 'bypass' | 'method' | 'uri-miss' | 'vary-miss' | 'request' | 'stale' | 'partial'

/** `detail` of a response from the cache: stale while it is validated, stale because the upstream failed, from the shared store. */
export type HitDetail = 'revalidating' | 'error' | 'shared'

/** Every `detail` that Cache-Status can carry. docs/why-not-cached.md has a row for each. */
export type StatusDetail = BypassReason | NoStoreReason | HitDetail | 'streamed' | 'only-if-cached'

/** What is said of a request that was forwarded. */
export type ForwardedStatus = {
  readonly reason: ForwardReason
  readonly status: number | undefined
  readonly ttlSeconds: number | undefined
  readonly stored: boolean
  readonly collapsed: boolean
  readonly detail: NoStoreReason | 'streamed' | undefined
}

/** Name of this cache in Cache-Status. */
const name = 'trellis'

/** A hit; `ttl` is negative when what is served is stale (RFC 9211 §2.4). */
export const hitStatus = (ttlSeconds: number, detail?: HitDetail): string =>
  `${name}; hit; ttl=${ttlSeconds}${detail === undefined ? '' : `; detail=${detail}`}`

/** A request that the cache did not answer alone. */
export const forwardedStatus = (facts: ForwardedStatus): string => {
  let text = `${name}; fwd=${facts.reason}`
  if (facts.status !== undefined) text += `; fwd-status=${facts.status}`
  if (facts.ttlSeconds !== undefined) text += `; ttl=${facts.ttlSeconds}`
  if (facts.stored) text += '; stored'
  if (facts.collapsed) text += '; collapsed'
  return facts.detail === undefined ? text : `${text}; detail=${facts.detail}`
}

/** A request that went past the cache, with the reason. */
export const bypassStatus = (reason: BypassReason): string => `${name}; fwd=bypass; detail=${reason}`

/** Nothing is stored, and the request allows no other source (RFC 9111 §5.2.1.7). */
export const unavailableStatus: string = `${name}; detail=${'only-if-cached' satisfies StatusDetail}`

/** A write: its method has to be forwarded (RFC 9211 §2.2). */
export const writeStatus: string = `${name}; fwd=method`
