import type { BypassReason } from './decide-caching.ts'

/** Why a request was forwarded (RFC 9211 §2.2). */
export type ForwardReason = 'bypass' | 'method' | 'uri-miss' | 'vary-miss' | 'request' | 'stale' | 'partial'

/** Parameters of a forwarded request (RFC 9211 §2). */
export type ForwardedStatus = {
  readonly reason: ForwardReason
  readonly status?: number | undefined
  readonly ttlSeconds?: number
  readonly stored?: boolean
  readonly collapsed?: boolean
  readonly detail?: string | undefined
}

/** Name of this cache in Cache-Status. */
const name = 'trellis'

/** `ttl` is negative when the response is stale (RFC 9211 §2.4). */
export const hitStatus = (ttlSeconds: number, detail?: string): string =>
  `${name}; hit; ttl=${ttlSeconds}${detail === undefined ? '' : `; detail=${detail}`}`

export const forwardedStatus = (forwarded: ForwardedStatus): string => {
  let text = `${name}; fwd=${forwarded.reason}`
  if (forwarded.status !== undefined) text += `; fwd-status=${forwarded.status}`
  if (forwarded.ttlSeconds !== undefined) text += `; ttl=${forwarded.ttlSeconds}`
  if (forwarded.stored === true) text += '; stored'
  if (forwarded.collapsed === true) text += '; collapsed'
  return forwarded.detail === undefined ? text : `${text}; detail=${forwarded.detail}`
}

/** only-if-cached, and no stored response can be reused (RFC 9111 §5.2.1.7). */
export const unavailableStatus: string = `${name}; detail=only-if-cached`

export const bypassStatus = (reason: BypassReason): string => `${name}; fwd=bypass; detail=${reason}`

/** A write: its method has to be forwarded (RFC 9211 §2.2). */
export const writeStatus: string = `${name}; fwd=method`
