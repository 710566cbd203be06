import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import type { OutgoingHttpHeaders } from 'node:http2'
import { env } from 'node:process'
import { pipeline, type Readable } from 'node:stream'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import { withoutHeaders } from '../../http/headers/header-lines.ts'
import { type GatewayResponse, hasNoContent } from '../../http/message.ts'
import { type ContentText, contentText, longestText, wholeText } from '../../http/response-text.ts'
import { Http2Outgoing } from '../listener/http2-messages.ts'
import { headersOf, headersOfHead } from './http2-headers.ts'
import type { ResponseChanges } from './response-changes.ts'

/** HTTP/1.0 has no chunks: the end of the connection may end the content (RFC 9112 §6.3), a reset does not. */
const cut = (raw: ServerResponse): void => {
  if (raw.req.httpVersion === '1.0') raw.socket?.resetAndDestroy()
  raw.destroy()
}

/**
 * Streams a content to the client as fast as the client reads. An early end on either side ends both: a truncated response must
 * not look complete, and the upstream need not go on sending. stream.pipeline() does the same, but creates an AbortController
 * and a DOMException for each response, which doubles the cost of a small one.
 */
const pump = (content: Readable, raw: ServerResponse, broken: (error: Error) => void): void => {
  let hasBegun = false
  content.on('data', (chunk: Buffer) => {
    hasBegun = true
    if (!raw.write(chunk)) content.pause()
  })
  // node:http keeps the head for the first octets of the content, which may come much later.
  setImmediate(() => {
    if (!hasBegun && !raw.destroyed && !raw.writableEnded) raw.flushHeaders()
  })
  raw.on('drain', () => content.resume())
  raw.once('close', () => content.destroy())
  content.once('end', () => raw.end())
  // The listener stays: the content may fail while it is being destroyed.
  content.on('error', broken)
  content.once('close', () => {
    if (!content.readableEnded) cut(raw)
  })
  // The content failed before the listener was added.
  if (content.closed && !content.readableEnded) cut(raw)
}

/** Events of a response that is being sent. */
export type SendOptions = {
  /** The gateway is draining: clients should connect elsewhere (RFC 9112 §9.6). */
  readonly isDraining: () => boolean
  /** Lines that node:http writes where a connection stays open. */
  readonly keepAliveLines: string
  /** The content broke off: the client got a truncated response and notices, since the connection is closed. */
  readonly broken: (error: Error) => void
}

const connectionHeader: ReadonlySet<string> = new Set(['connection'])

const closing = (headers: readonly string[]): string[] => [
  ...withoutHeaders(headers, connectionHeader),
  'Connection',
  'close',
]

/**
 * Corked, head and text leave in one write. A Buffer would be a second piece, and end(content) would add an empty third:
 * writev instead of write, a fifth of the cost of a small hit. Latin-1 maps octets one to one.
 */
const sendSmall = (raw: ServerResponse, content: Buffer, text: ContentText | undefined): void => {
  const { socket } = raw
  // Queued behind another response on its connection; or more pieces than head and text.
  if (socket === null || raw.chunkedEncoding) {
    raw.end(content)
    return
  }
  const { latin1 } = text?.of === content ? text : contentText(content)
  // TLS ends a write later: the end would be an empty write of its own behind it.
  if ('encrypted' in socket) {
    raw.end(latin1, 'latin1')
    return
  }
  socket.cork()
  raw.write(latin1, 'latin1')
  socket.uncork()
  raw.end()
}

/**
 * A socket copies each write at once, up to megabytes, and TLS encrypts it, which costs more: long contents are written in slices of
 * these sizes, and of all connections together only a few slices in each turn of the event loop.
 */
const sliceBytes = { plain: 256 * 1024, encrypted: 64 * 1024 }
const sliceOf = ({ socket }: ServerResponse): number =>
  socket === null || 'encrypted' in socket ? sliceBytes.encrypted : sliceBytes.plain
const slicesOfAll = createFairTurns(8)

/** Writes the next slice when the previous one has been flushed, so that a slow reader costs no second copy of the content. */
const sendInSlices = (raw: ServerResponse, content: Buffer): void => {
  const length = sliceOf(raw)
  const client = addressGroup(raw.socket?.remoteAddress ?? '')
  let at = 0
  const writeSlice = (): void => {
    if (raw.destroyed) return
    const hasRoom = raw.write(content.subarray(at, at + length))
    at += length
    if (at >= content.length) raw.off('drain', proceed).end()
    else if (hasRoom) proceed()
  }
  const proceed = (): void => slicesOfAll.begin(client, writeSlice)
  raw.on('drain', proceed)
  proceed()
}

/** node:http keeps the head here until the content or the end is written. */
type WithHead = ServerResponse & { _header: string | null; _hasBody: boolean }

const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`

/** False with the switch, and in a future version of Node that keeps it elsewhere. */
const keepsHead = ((): boolean => {
  // biome-ignore lint/style/noProcessEnv: a switch for an emergency, not a setting.
  if (env['TRELLIS_HEADS_BY_NODE'] === '1') return false
  const request = { method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1, headers: {} }
  const probe = new ServerResponse(request as IncomingMessage) as WithHead
  const before = probe._header
  probe.writeHead(200, ['Date', 'today', 'Content-Length', '0'])
  const lines = 'Date: today\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n'
  return before === null && probe._hasBody && probe._header === statusLine(200) + lines
})()

/**
 * Begins a response with lines that were checked before: node:http checks each line of each response again, which takes an eighth of a hit.
 * False: node:http must write the head.
 */
const beginsWithText = (
  raw: ServerResponse,
  response: GatewayResponse,
  options: SendOptions,
  changes: ResponseChanges | undefined,
): boolean => {
  const { status, headers, headText } = response
  if (headText?.of !== headers || !keepsHead) return false
  const { req } = raw
  const staysOpen = raw.shouldKeepAlive && req.httpVersionMinor === 1 && req.headers.expect === undefined
  if (!staysOpen || options.isDraining()) return false
  const outgoing = raw as WithHead
  outgoing.statusCode = status
  if (status === 204 || status === 304) outgoing._hasBody = false
  const lines = changes === undefined ? wholeText(headText) : changes.text(headText)
  outgoing._header = `${statusLine(status)}${lines}${options.keepAliveLines}\r\n`
  return true
}

/** Writes head and content. A content that breaks off destroys the connection: a truncated response must not look complete. */
export const sendResponse = (
  raw: ServerResponse | Http2Outgoing,
  response: GatewayResponse,
  options: SendOptions,
  changes?: ResponseChanges,
): void => {
  if (raw instanceof Http2Outgoing) {
    sendOverHttp2(raw, response, options, changes)
    return
  }
  const { status, content } = response
  if (!beginsWithText(raw, response, options, changes)) {
    const headers = changes === undefined ? response.headers : changes.headerLines(response.headers)
    raw.writeHead(status, options.isDraining() ? closing(headers) : (headers as string[]))
  }
  if (content === undefined) {
    raw.end()
    return
  }
  if (Buffer.isBuffer(content)) {
    if (content.length <= longestText) sendSmall(raw, content, response.text)
    else if (content.length > sliceOf(raw)) sendInSlices(raw, content)
    else raw.end(content)
    return
  }
  pump(content, raw, options.broken)
}

const ignore = (): void => {}

/** The first one waits until the last one is made, and making a hit takes some ten microseconds. */
const maxGathered = 16

/**
 * Sends responses together that become ready in one turn of the event loop, in their order: with many connections each write costs
 * less (docs/decisions/0015). One that may not wait is sent at once. `send` must not throw.
 */
export const createGathering = <Item extends { readonly response: Pick<GatewayResponse, 'content'> }>(
  send: (item: Item) => void,
  mayWait: (item: Item) => boolean,
): ((item: Item) => void) => {
  let gathered: Item[] = []
  let isScheduled = false
  const sendAll = (): void => {
    const items = gathered
    gathered = []
    for (const item of items) send(item)
  }
  const endTurn = (): void => {
    isScheduled = false
    sendAll()
  }
  return (item) => {
    if (!mayWait(item)) {
      send(item)
      return
    }
    const { content } = item.response
    // It may fail before it is sent, and an error without a listener would end the process.
    if (content !== undefined && !Buffer.isBuffer(content)) content.on('error', ignore)
    gathered.push(item)
    if (gathered.length >= maxGathered) sendAll()
    else if (!isScheduled) {
      isScheduled = true
      setImmediate(endTurn)
    }
  }
}

/** Longest write, so that the progress of a slow reader can be measured (listener/http2.ts). */
const maxAtOnce = 64 * 1024

const pieces = function* (content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += maxAtOnce) yield content.subarray(at, at + maxAtOnce)
}

const headersFor = (
  { status, headers, headText: head }: GatewayResponse,
  changes: ResponseChanges | undefined,
): OutgoingHttpHeaders => {
  if (head?.of === headers)
    return changes === undefined ? headersOfHead(head, status) : changes.headers(head, status)
  return headersOf(changes === undefined ? headers : changes.headerLines(headers), status)
}

const withoutContent = { endStream: true }

/** A draining gateway sends GOAWAY in place of `Connection`. */
const sendOverHttp2 = (
  { stream, req }: Http2Outgoing,
  response: GatewayResponse,
  options: SendOptions,
  changes: ResponseChanges | undefined,
): void => {
  const { status, content } = response
  const headers = headersFor(response, changes)
  if (content === undefined || hasNoContent(req?.method ?? '', status)) {
    if (content !== undefined && !Buffer.isBuffer(content)) content.destroy()
    stream.respond(headers, withoutContent)
    return
  }
  stream.respond(headers)
  if (Buffer.isBuffer(content) && content.length <= maxAtOnce) {
    stream.end(content)
    return
  }
  // A content that breaks off must reset the stream, so that a truncated response does not look complete.
  pipeline(Buffer.isBuffer(content) ? pieces(content) : content, stream, (error) => {
    if (error) options.broken(error)
  })
}
