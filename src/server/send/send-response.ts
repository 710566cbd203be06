import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse, OutgoingHttpHeaders } from 'node:http2'
import { pipeline, type Readable } from 'node:stream'
import { type FieldLines, withoutFields } from '../../http/fields.ts'
import { type ContentText, type GatewayResponse, longestText } from '../../http/message.ts'
import { isHttp2 } from '../listener/http2-request.ts'

/** HTTP/1.0 has no chunks: the end of the connection may end the content (RFC 9112 §6.3), a reset does not. */
const cut = (raw: ServerResponse): void => {
  if (raw.req.httpVersion === '1.0') raw.socket?.resetAndDestroy()
  raw.destroy()
}

/**
 * Carries a content to the client, no faster than the client reads. Ended early on either side, both end: a short answer must
 * not look whole, and an upstream whose reader has gone is left alone. stream.pipeline() does the same, and makes an
 * AbortController and a DOMException for each answer: as much as all else that passing on a small one costs.
 */
const pump = (content: Readable, raw: ServerResponse, broken: (error: Error) => void): void => {
  content.on('data', (chunk: Buffer) => {
    if (!raw.write(chunk)) content.pause()
  })
  raw.on('drain', () => content.resume())
  raw.once('close', () => content.destroy())
  content.once('end', () => raw.end())
  // Stays for as long as the content does: it may fail while it is being destroyed.
  content.on('error', broken)
  content.once('close', () => {
    if (!content.readableEnded) cut(raw)
  })
  // It broke off before anybody listened.
  if (content.closed && !content.readableEnded) cut(raw)
}

/** What the edge wants to know of an answer on its way out. */
export type SendOptions = {
  /** The gateway is going away: clients are told to connect elsewhere (RFC 9112 §9.6). */
  readonly isDraining: () => boolean
  /** The content broke off: the client has got a short answer and sees it, since the connection is closed. */
  readonly broken: (error: Error) => void
}

const connectionField: ReadonlySet<string> = new Set(['connection'])

const closing = (fields: readonly string[]): string[] => [
  ...withoutFields(fields, connectionField),
  'Connection',
  'close',
]

/**
 * Held back and let go, a head and a text leave in one write. With a Buffer there are two pieces, and end(content) would
 * add an empty third: writev instead of write, a fifth of what a small hit costs. Latin-1 gives the octets one to one.
 */
const sendSmall = (raw: ServerResponse, content: Buffer, text: ContentText | undefined): void => {
  const { socket } = raw
  // Queued behind another answer on its connection; or of more pieces than head and text.
  if (socket === null || raw.chunkedEncoding) {
    raw.end(content)
    return
  }
  socket.cork()
  raw.write(text?.of === content ? text.latin1 : content.toString('latin1'), 'latin1')
  socket.uncork()
  raw.end()
}

/** TLS encrypts all that it is given at once, and keeps what the client does not take; it is given so much at a time. */
const sliceBytes = 64 * 1024

const isEncrypted = ({ req }: ServerResponse): boolean => 'encrypted' in req.socket

/** Writes the next slice when the one before has been taken, so that only the stored content waits for a slow reader. */
const sendInSlices = (raw: ServerResponse, content: Buffer): void => {
  let at = 0
  const proceed = (): void => {
    let hasRoom = true
    while (hasRoom && at < content.length) {
      hasRoom = raw.write(content.subarray(at, at + sliceBytes))
      at += sliceBytes
    }
    if (at < content.length) return
    raw.off('drain', proceed)
    raw.end()
  }
  raw.on('drain', proceed)
  proceed()
}

/** Writes head and content. A content that breaks off destroys the connection: a short answer must not look whole. */
export const sendResponse = (raw: ServerResponse, response: GatewayResponse, options: SendOptions): void => {
  const { status, fields, content } = response
  raw.writeHead(status, options.isDraining() ? closing(fields) : (fields as string[]))
  if (content === undefined) {
    raw.end()
    return
  }
  if (Buffer.isBuffer(content)) {
    if (content.length <= longestText) sendSmall(raw, content, response.text)
    else if (content.length > sliceBytes && isEncrypted(raw)) sendInSlices(raw, content)
    else raw.end(content)
    return
  }
  pump(content, raw, options.broken)
}

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
