import { type HeaderLines, hasHeader, headerValue } from '../http/headers/header-lines.ts'
import { acceptOf } from '../http/websocket-accept.ts'

const conditions: ReadonlySet<string> = new Set(['if-none-match', 'if-modified-since'])

/** Why a 101 opens no WebSocket for the request (RFC 6455 §4.1); undefined if it does. */
const invalidSwitch = (requestHeaders: HeaderLines, headers: HeaderLines): string | undefined => {
  if (headerValue(headers, 'upgrade')?.toLowerCase() !== 'websocket') return 'a 101 for another protocol'
  const key = headerValue(requestHeaders, 'sec-websocket-key') ?? ''
  if (headerValue(headers, 'sec-websocket-accept') !== acceptOf(key)) return 'a 101 for another handshake'
  return undefined
}

/**
 * Why a response head is invalid for the request; undefined if it is valid. Forwarding it would mislead the client or be stored as
 * another response.
 */
export const invalidResponse = (
  requestHeaders: HeaderLines,
  status: number,
  headers: HeaderLines,
): string | undefined => {
  if (status === 101) return invalidSwitch(requestHeaders, headers)
  // RFC 9110 §15: three digits, of which the first is 1 to 5.
  if (status < 200 || status > 599) return 'an invalid status'
  // The HTTP client decodes chunks; any other coding would be lost with its name (RFC 9112 §6.1).
  const coding = headerValue(headers, 'transfer-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') return 'an unknown transfer coding'
  if (status === 304 && !hasHeader(requestHeaders, conditions)) return 'a 304 without a condition'
  // RFC 9110 §15.3.7: a client that does not implement ranges takes a part for the whole.
  if (status === 206 && headerValue(requestHeaders, 'range') === undefined)
    return 'a partial response to a request without Range'
  return undefined
}
