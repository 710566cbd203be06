import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import {
  fieldValues,
  type GatewayRequest,
  type GatewayResponse,
  type RequestFields,
  withoutFields,
} from '../../http/message.ts'

/** Why a parsed request is refused: its end, its host or its version can be read in two ways. */
export const messageFaults = ['version', 'host', 'transfer-coding', 'field-count', 'target'] as const
export type MessageFault = (typeof messageFaults)[number]

/** The message for the client. */
export const faultTexts: Readonly<Record<MessageFault, string>> = {
  version: 'Use HTTP/1.1 or HTTP/1.0.',
  host: 'One Host header with a valid host is required.',
  'transfer-coding': 'The only transfer coding accepted is chunked, once, in HTTP/1.1.',
  'field-count': 'There are too many headers.',
  target: 'The request target must be a path or an http URL.',
}

/** A request as the parser returns it. */
type ParsedMessage = {
  readonly rawHeaders: readonly string[]
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
}

/** The result of checking the header lines once. */
type MessageLook =
  | { readonly kind: 'fault'; readonly fault: MessageFault }
  | {
      readonly kind: 'sound'
      /** The client asks for another protocol on this connection (RFC 9110 §7.8). */
      readonly asksUpgrade: boolean
    }

/** node:http silently drops fields from the thousandth on, including those that frame the content. No client sends this many. */
const mostFields = 256

/** Host and port (RFC 9110 §7.2); no userinfo, no zone. */
const authorityForm = /^(?:[\w.~-]{1,255}|\[[\dA-Fa-f:.]{2,45}\])(?::\d{0,5})?$/

const sound: MessageLook = { kind: 'sound', asksUpgrade: false }
const upgrading: MessageLook = { kind: 'sound', asksUpgrade: true }
const faulty = (fault: MessageFault): MessageLook => ({ kind: 'fault', fault })

/** Index of a field in the flat list of names and values, or -1. */
const indexOfField = (rawHeaders: readonly string[], wanted: string, from: number): number => {
  for (let i = from; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === wanted.length && (name === wanted || name.toLowerCase() === wanted)) return i
  }
  return -1
}

/** RFC 9112 §6.1: only chunked is supported, and HTTP/1.0 has no transfer codings. */
const hasGoodCoding = (rawHeaders: readonly string[], minorVersion: number): boolean => {
  const at = indexOfField(rawHeaders, 'transfer-encoding', 0)
  if (at === -1) return true
  if (minorVersion === 0 || indexOfField(rawHeaders, 'transfer-encoding', at + 2) !== -1) return false
  return rawHeaders[at + 1]?.toLowerCase() === 'chunked'
}

/** Checks each request once, and remembers the last valid Host, because clients repeat it. */
export const createMessageLook = (): ((message: ParsedMessage) => MessageLook) => {
  let goodHost: string | undefined
  const isGoodHost = (value: string): boolean => {
    if (value === goodHost) return true
    if (!authorityForm.test(value)) return false
    goodHost = value
    return true
  }
  /** RFC 9112 §3.2: exactly one in HTTP/1.1, at most one before. */
  const hasGoodHost = (rawHeaders: readonly string[], minorVersion: number): boolean => {
    const at = indexOfField(rawHeaders, 'host', 0)
    if (at === -1) return minorVersion === 0
    return isGoodHost(rawHeaders[at + 1] as string) && indexOfField(rawHeaders, 'host', at + 2) === -1
  }
  return ({ rawHeaders, httpVersionMajor, httpVersionMinor }) => {
    // RFC 9112 §2.3: only 1.0 and 1.1. The parser also accepts 0.9 and the text `HTTP/2.0`.
    if (httpVersionMajor !== 1) return faulty('version')
    if (rawHeaders.length > 2 * mostFields) return faulty('field-count')
    if (!hasGoodHost(rawHeaders, httpVersionMinor)) return faulty('host')
    if (!hasGoodCoding(rawHeaders, httpVersionMinor)) return faulty('transfer-coding')
    return indexOfField(rawHeaders, 'upgrade', 0) === -1 ? sound : upgrading
  }
}

/**
 * Authority and path of a target in absolute form, which must be accepted (RFC 9112 §3.2.2); undefined for every other target that
 * is not a path.
 */
export const absoluteForm = (
  target: string,
): { readonly authority: string; readonly path: string } | undefined => {
  const found = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target)
  if (found === null || !authorityForm.test(found[1] as string)) return undefined
  const rest = found[2] as string
  return { authority: found[1] as string, path: rest.startsWith('/') ? rest : `/${rest}` }
}

const connectionField: ReadonlySet<string> = new Set(['connection'])

/** Ignores all later requests on this connection; see front.ts. */
export const distrust = (distrusted: Set<Socket>, socket: Socket): void => {
  distrusted.add(socket)
  socket.once('close', () => distrusted.delete(socket))
}

/**
 * After a 413 or 408 to an incomplete body the connection closes, and the bytes after it are not read as requests (RFC 9112 §9.6).
 * If the body is complete, the next request may already have been read, so the connection stays open.
 */
export const withUnreadContent = (
  raw: ServerResponse,
  response: GatewayResponse,
  distrusted: Set<Socket>,
): GatewayResponse => {
  // Only these are sent because of the rest of the body.
  if (response.status !== 413 && response.status !== 408) return response
  const { req } = raw
  if (req.httpVersionMajor !== 1 || !fieldValues(response.fields, 'connection').includes('close'))
    return response
  if (req.complete) return { ...response, fields: withoutFields(response.fields, connectionField) }
  // The request may have lost its socket; the response has one from its turn on.
  const socket = raw.socket ?? (req.socket as Socket | null)
  if (socket !== null) distrust(distrusted, socket)
  return response
}

/** The host and port of the request; '' without one, as in HTTP/1.0. */
export const authorityOf = ({ headers }: IncomingMessage): string =>
  (headers as IncomingMessage['headers'] & { readonly ':authority'?: string })[':authority'] ??
  headers.host ??
  ''

/** Node's types know only HTTP/1.1 messages here. */
export const isHttp2 = (message: IncomingMessage | ServerResponse): boolean => 'stream' in message

/** Has the client reset the stream? */
export const isReset = (incoming: IncomingMessage): boolean =>
  isHttp2(incoming) && (incoming as unknown as Http2ServerRequest).stream.closed

/** RFC 9113 §8.3.1: Host must equal :authority, neither may have userinfo, and the target must be a path. */
export const faultOfHttp2 = (incoming: IncomingMessage): 'host' | 'target' | undefined => {
  const { headers } = incoming as unknown as Http2ServerRequest
  const { host, ':authority': authority, ':path': path } = headers
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase()) {
    return 'host'
  }
  if (!authorityForm.test(authority ?? host ?? '')) return 'host'
  return path?.startsWith('/') === true || path === '*' ? undefined : 'target'
}

/** A request over HTTP/2. It gets no interim responses, because Node sends some of them over HTTP/1.1 only. */
export class Http2EdgeRequest implements GatewayRequest {
  readonly #incoming: Http2ServerRequest
  readonly #outgoing: Http2ServerResponse
  #controller: AbortController | undefined
  readonly method: string
  readonly target: string
  readonly fields: RequestFields

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming as unknown as Http2ServerRequest
    this.#outgoing = outgoing as unknown as Http2ServerResponse
    this.method = this.#incoming.method
    this.target = this.#incoming.url
    this.fields = this.#incoming.headers
  }

  /** RFC 9113 §8.1: frames say where content ends; it needs no length. */
  get content(): Readable | undefined {
    return this.#incoming.stream.endAfterHeaders ? undefined : this.#incoming
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      const { stream } = this.#outgoing
      if (stream.destroyed || stream.aborted) controller.abort()
      else stream.once('aborted', () => controller.abort())
    }
    return this.#controller.signal
  }
}
