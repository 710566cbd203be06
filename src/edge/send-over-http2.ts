import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse, OutgoingHttpHeaders } from 'node:http2'
import { pipeline } from 'node:stream'
import type { FieldLines } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import { isHttp2 } from './http2-request.ts'
import { type SendOptions, sendResponse } from './send-response.ts'

/** RFC 9113 §8.2.2: fields of the connection make a message malformed. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/**
 * Lower-case names (RFC 9113 §8.2), and repeated lines as one (RFC 9110 §5.3): node:http2 throws at a second line of a field that it
 * knows to have one value, and an upstream may send two. Set-Cookie alone is a line each.
 */
const asHeaders = (fields: FieldLines): OutgoingHttpHeaders => {
  const headers: Record<string, string | string[]> = Object.create(null)
  const cookies: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] as string).toLowerCase()
    const value = fields[i + 1] as string
    if (name === 'set-cookie') cookies.push(value)
    else if (!ofConnection.has(name)) {
      const before = headers[name]
      headers[name] = before === undefined ? value : `${before}, ${value}`
    }
  }
  if (cookies.length > 0) headers['set-cookie'] = cookies
  return Object.fromEntries(Object.entries(headers))
}

/** Of a longer write nobody could tell how much of it a slow reader has taken (stream-bounds.ts). */
const mostAtOnce = 64 * 1024

const pieces = function* (content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += mostAtOnce) yield content.subarray(at, at + mostAtOnce)
}

const hasNone = (method: string, status: number): boolean =>
  method === 'HEAD' || status === 204 || status === 304

const send = (raw: Http2ServerResponse, response: GatewayResponse, options: SendOptions): void => {
  const { status, fields, content } = response
  raw.writeHead(status, asHeaders(fields))
  if (content === undefined || hasNone(raw.req.method, status)) {
    if (content !== undefined && !Buffer.isBuffer(content)) content.destroy()
    raw.end()
    return
  }
  if (Buffer.isBuffer(content) && content.length <= mostAtOnce) {
    raw.end(content)
    return
  }
  // Into the stream itself: a content that breaks off must reset it, so that a short answer does not look whole.
  pipeline(Buffer.isBuffer(content) ? pieces(content) : content, raw.stream, (error) => {
    if (error) options.broken(error)
  })
}

/** As `sendResponse`, for a port that speaks both. A gateway that goes away says so with GOAWAY. */
export const sendEither = (raw: ServerResponse, response: GatewayResponse, options: SendOptions): void => {
  if (isHttp2(raw)) send(raw as unknown as Http2ServerResponse, response, options)
  else sendResponse(raw, response, options)
}
