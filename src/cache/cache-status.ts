import type { ForwardReason, StatusDetail } from './events.ts'

/** Parameters of a forwarded request (RFC 9211 §2). */
type ForwardedStatus = {
  readonly reason: ForwardReason
  readonly status?: number | undefined
  readonly ttlSeconds?: number
  readonly stored?: boolean
  readonly collapsed?: boolean
  readonly detail?: StatusDetail | undefined
}

export const cacheName = 'trellis'

export const forwardedCacheStatus = (forwarded: ForwardedStatus): string => {
  let text = `${cacheName}; fwd=${forwarded.reason}`
  if (forwarded.status !== undefined) text += `; fwd-status=${forwarded.status}`
  if (forwarded.ttlSeconds !== undefined) text += `; ttl=${forwarded.ttlSeconds}`
  if (forwarded.stored === true) text += '; stored'
  if (forwarded.collapsed === true) text += '; collapsed'
  return forwarded.detail === undefined ? text : `${text}; detail=${forwarded.detail}`
}
