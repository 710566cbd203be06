import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { EndSignal } from '../../http/end-signal.ts'
import { headerValues, type RequestHeaders, withoutHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayRequest, GatewayResponse, Interim, ResponseHead } from '../../http/message.ts'
import { isOptions } from '../../http/methods.ts'

/** Why a parsed request is refused: its end, its host or its version can be read in two ways. */
export const messageFaults = ['version', 'host', 'transfer-coding', 'field-count', 'target'] as const
export type MessageFault = (typeof messageFaults)[number]

export const faultTexts: Readonly<Record<MessageFault, string>> = {
  version: 'Use HTTP/1.1 or HTTP/1.0.',
  host: 'One Host header with a valid host is required.',
  'transfer-coding': 'The only transfer coding accepted is chunked, once, in HTTP/1.1.',
  'field-count': 'There are too many headers.',
  target: 'The request target must be a path or an http URL, or * with OPTIONS.',
}

/** node:http silently drops headers from the thousandth on, including those that frame the content. No client sends this many. */
const maxHeaders = 256

/** Host and port (RFC 9110 §7.2); no userinfo, no zone. */
export const authorityForm = /^(?:[\w.~-]{1,255}|\[[\dA-Fa-f:.]{2,45}\])(?::\d{0,5})?$/

/** Index of a header in the flat list of names and values, or -1. */
const indexOfHeader = (rawHeaders: readonly string[], headerName: string, from: number): number => {
  for (let i = from; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === headerName.length && (name === headerName || name.toLowerCase() === headerName))
      return i
  }
  return -1
}

/** RFC 9112 §6.1: only chunked is supported, and HTTP/1.0 has no transfer codings. */
const hasGoodCoding = (rawHeaders: readonly string[], minorVersion: number): boolean => {
  const at = indexOfHeader(rawHeaders, 'transfer-encoding', 0)
  if (at === -1) return true
  if (minorVersion === 0 || indexOfHeader(rawHeaders, 'transfer-encoding', at + 2) !== -1) return false
  return rawHeaders[at + 1]?.toLowerCase() === 'chunked'
}

/** RFC 9112 §3.2: exactly one in HTTP/1.1, at most one before. */
const hasGoodHost = (rawHeaders: readonly string[], minorVersion: number): boolean => {
  const at = indexOfHeader(rawHeaders, 'host', 0)
  if (at === -1) return minorVersion === 0
  return authorityForm.test(rawHeaders[at + 1] as string) && indexOfHeader(rawHeaders, 'host', at + 2) === -1
}

/** Checks the header lines of a request over HTTP/1.1. */
export const messageFault = ({
  rawHeaders,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): MessageFault | undefined => {
  // RFC 9112 §2.3: only 1.0 and 1.1. The parser also accepts 0.9 and the text `HTTP/2.0`.
  if (httpVersionMajor !== 1) return 'version'
  if (rawHeaders.length > 2 * maxHeaders) return 'field-count'
  if (!hasGoodHost(rawHeaders, httpVersionMinor)) return 'host'
  return hasGoodCoding(rawHeaders, httpVersionMinor) ? undefined : 'transfer-coding'
}

/** The parts of a target in absolute form (RFC 9112 §3.2.2); undefined for any other target that is not a path. */
export const absoluteForm = (
  target: string,
): { readonly authority: string; readonly path: string } | undefined => {
  const match = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target)
  if (match === null || !authorityForm.test(match[1] as string)) return undefined
  const rest = match[2] as string
  return { authority: match[1] as string, path: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Does a request ask of the server as a whole (RFC 9110 §9.3.7)? */
export const asksServer = ({ method, url }: IncomingMessage): boolean =>
  isOptions(method ?? '') && url === '*'

const connectionHeader: ReadonlySet<string> = new Set(['connection'])

/** Ignores all later requests on this connection; see guard.ts. */
export const poison = (poisoned: Set<Socket>, socket: Socket): void => {
  poisoned.add(socket)
  socket.once('close', () => poisoned.delete(socket))
}

/**
 * After a 413 or 408 to an incomplete body the connection closes, and the bytes after it are not read as requests (RFC 9112 §9.6).
 * If the body is complete, the next request may already have been read, so the connection stays open.
 */
export const withUnreadContent = (
  raw: ServerResponse,
  response: GatewayResponse,
  poisoned: Set<Socket>,
): GatewayResponse => {
  // Only these are sent because of the rest of the body.
  if (response.status !== 413 && response.status !== 408) return response
  const { req } = raw
  if (req.httpVersionMajor !== 1 || !headerValues(response.headers, 'connection').includes('close'))
    return response
  if (req.complete) return { ...response, headers: withoutHeaders(response.headers, connectionHeader) }
  // The request may have lost its socket; the response has one from its turn on.
  const socket = raw.socket ?? (req.socket as Socket | null)
  if (socket !== null) poison(poisoned, socket)
  return response
}

/** The host and port of the request; '' without one, as in HTTP/1.0. */
export const authorityOf = ({ headers }: IncomingMessage): string =>
  (headers as IncomingMessage['headers'] & { readonly ':authority'?: string })[':authority'] ??
  headers.host ??
  ''

/** Node's types have only HTTP/1.1 messages here. */
export const isHttp2 = (message: IncomingMessage | ServerResponse): boolean => 'stream' in message

export const isReset = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) && (incoming as unknown as Http2ServerRequest).stream.closed

/** Bounds the interim responses of an upstream. */
const maxInterim = 16

const notInHints: ReadonlySet<string> = new Set(['link', 'content-length', 'set-cookie'])

/** One header line may hold several links; node:http takes them one by one. */
const linksOf = (head: ResponseHead): string[] =>
  headerValues(head.headers, 'link').flatMap((line) => line.split(/,\s{0,8}(?=<)/))

const sendEarlyHints = (outgoing: ServerResponse, head: ResponseHead): void => {
  const lines = withoutHeaders(head.headers, notInHints)
  const hints: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < lines.length; i += 2) hints[lines[i] as string] = lines[i + 1] as string
  hints['link'] = linksOf(head)
  try {
    outgoing.writeEarlyHints(hints)
  } catch {
    // node:http rejects the link: drop the hint.
  }
}

/**
 * Relays a 1xx (RFC 9110 §15.2). node:http can write 102, and 103 with at least one Link. Others are dropped, and so
 * are all for HTTP/1.0, which has no interim responses, and all after the final response.
 */
const createInterim = (outgoing: ServerResponse): Interim => {
  let interimsLeft = maxInterim
  return (head) => {
    const { req } = outgoing
    const takesNone = req.httpVersionMajor === 1 && req.httpVersionMinor === 0
    if (interimsLeft === 0 || takesNone || outgoing.headersSent || outgoing.destroyed) return
    interimsLeft -= 1
    if (head.status === 102) outgoing.writeProcessing()
    else if (head.status === 103) sendEarlyHints(outgoing, head)
  }
}

/** RFC 9112 §6.3: there is content when it is framed, by a length that is not zero or by chunks. */
export const hasContent = (headers: RequestHeaders): boolean =>
  (headers['content-length'] !== undefined && headers['content-length'] !== '0') ||
  headers['transfer-encoding'] !== undefined

export const clientGone = (): Error => new Error('the client has closed its connection')

/** A client's request. Its abort signal is created on first use: a hit does not use it. */
export class EdgeRequest implements GatewayRequest {
  readonly #outgoing: ServerResponse
  #signal: EndSignal | undefined
  readonly method: string
  readonly target: string
  readonly headers: RequestHeaders
  readonly content: Buffer | Readable | undefined

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, content?: Buffer | Readable) {
    this.#outgoing = outgoing
    this.content = content
    this.method = incoming.method as string
    this.target = incoming.url as string
    this.headers = incoming.headers
  }

  get interim(): Interim {
    return createInterim(this.#outgoing)
  }

  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal
    const signal = new EndSignal()
    this.#signal = signal
    const outgoing = this.#outgoing
    // 'close' also follows a complete response; only before that it means that the client disconnected.
    if (outgoing.destroyed) signal.end(clientGone())
    else outgoing.on('close', () => outgoing.writableFinished || signal.end(clientGone()))
    return signal
  }
}
