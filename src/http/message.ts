import { createHash } from 'node:crypto'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { type Duplex, type Readable, Transform } from 'node:stream'
import { overheadOfChunk, type Reservation } from './bounds.ts'
import { isHead } from './methods.ts'

/** Most keys and tags are shorter, and are kept as they are: to make a digest takes longer than all else that is done with one. */
const longestKept = 128

/** Begins every digest; no key or tag that is kept as it is begins with it. */
const mark = '#'

/**
 * The text, or SHA-256 of one that is long: a client that sends 14 KB in a header that a response varies by must not decide how much
 * memory a key takes. Different texts stay different.
 */
export const shortText = (text: string): string =>
  text.length <= longestKept && !text.startsWith(mark)
    ? text
    : mark + createHash('sha256').update(text).digest('base64url')

/** V8 keeps all of a text for the sake of a part that was cut out of it, and all pieces of one that was put together and never compared. */
export const ownText = (text: string): string => Buffer.from(text).toString()

/** Bytes beside the content in its buffer, up to this and up to a quarter of the content, cost less than a copy. */
const maxBesides = 1024

/**
 * A content in its own buffer. Small buffers are often slices of a pool, which they would keep alive; a content that came in one
 * read of a socket has only its own head beside it.
 */
export const ownBytes = (content: Buffer): Buffer => {
  const besides = content.buffer.byteLength - content.length
  if (besides <= maxBesides && besides * 4 <= content.length) return content
  const copy = Buffer.allocUnsafeSlow(content.length)
  content.copy(copy)
  return copy
}

/**
 * Headers (RFC 9110 §5). Responses keep theirs as one flat array of name, value, name, value …:
 * order and repeated lines survive, and a stored response is ready for `writeHead` without a rebuild.
 */
export type HeaderLines = readonly string[]

/** Request headers as node:http gives them: lower-case names, repeated lines already combined. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/** RFC 9110 §5.1: names compare without regard to case. Most differ in length already. */
const isNamed = (name: string | undefined, wanted: string): boolean =>
  name !== undefined &&
  name.length === wanted.length &&
  (name === wanted || name.toLowerCase() === wanted.toLowerCase())

/** All values of one header, in order. */
export const headerValues = (lines: HeaderLines, name: string): string[] => {
  const values: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) values.push(lines[i + 1] as string)
  }
  return values
}

/** The combined value of a header (RFC 9110 §5.3), or undefined when no line carries it. */
export const headerValue = (lines: HeaderLines, name: string): string | undefined => {
  let value: string | undefined
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) value = value === undefined ? lines[i + 1] : `${value}, ${lines[i + 1]}`
  }
  return value
}

/** The combined value of a request header. node:http gives an object that inherits a `constructor`, and documents may declare such a header. */
export const requestHeader = (headers: RequestHeaders, name: string): string | undefined => {
  const value = headers[name]
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.join(', ') : undefined
}

const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):([^\0\r\n]{0,8192})$/

/** The headers of lines such as `Name: value`, combined as node:http does it (RFC 9110 §5.3, RFC 9113 §8.2.3); undefined when one is malformed. */
export const headersOfLines = (lines: readonly string[]): Record<string, string> | undefined => {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, written, padded] = headerLine.exec(line) ?? []
    if (written === undefined || padded === undefined) return undefined
    const value = padded.trim()
    const name = written.toLowerCase()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return Object.fromEntries(headers)
}

/** Type and subtype of a Content-Type in lower case, without parameters (RFC 9110 §8.3.1). */
export const essence = (contentType = ''): string => (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()

const eventStream = /^\s*text\/event-stream\s*(?:;|$)/i

/**
 * Server-sent events (HTML, section 9.2): pieces that are of use only at once, in a response that may be silent for long and never
 * ends. Other types do not say so of themselves.
 */
export const isEventStream = (head: ResponseHead): boolean =>
  eventStream.test(headerValue(head.headers, 'content-type') ?? '')

/** Headers of a request that the gateway sends for itself: it reads an uncoded JSON text. */
export const ownJsonHeaders: readonly string[] = [
  ...['accept', 'application/json'],
  ...['accept-encoding', 'identity'],
  ...['user-agent', 'trellis'],
]

export const hasHeader = (lines: HeaderLines, names: ReadonlySet<string>): boolean => {
  for (let i = 0; i < lines.length; i += 2) {
    if (names.has((lines[i] as string).toLowerCase())) return true
  }
  return false
}

export const withoutHeaders = (lines: HeaderLines, names: ReadonlySet<string>): string[] => {
  const remaining: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    if (!names.has(name.toLowerCase())) remaining.push(name, lines[i + 1] as string)
  }
  return remaining
}

/** The lines with every line of one header replaced by a single new one, at the end. */
export const withHeader = (lines: HeaderLines, name: string, value: string): string[] => {
  const changed = withoutHeaders(lines, new Set([name.toLowerCase()]))
  changed.push(name, value)
  return changed
}

/** Headers that replace those of a response, and names of headers that are removed from it, in lower case. */
export type HeaderChanges = { readonly set: HeaderLines; readonly removed: ReadonlySet<string> }

/** The lines with the changes applied; `removed` includes the names in `set`. */
export const withChanges = (lines: HeaderLines, { set, removed }: HeaderChanges): string[] => {
  const changed = withoutHeaders(lines, removed)
  changed.push(...set)
  return changed
}

const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'QUERY',
])

/** The method as metrics, logs and traces name it; `_OTHER` for whatever else a client writes (OpenTelemetry HTTP conventions). */
export const methodName = (method: string): string => (knownMethods.has(method) ? method : '_OTHER')

const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON as the site contract has it: slashes escaped and nothing outside ASCII, so that text comparisons find no difference. */
export const asciiJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll('/', '\\/').replace(/[\u0080-\uffff]/g, unicodeEscape)

/** Releases a content that is not read, and the connection that it comes from. */
export const discard = (content: Buffer | Readable | undefined): void => {
  if (content !== undefined && !Buffer.isBuffer(content)) content.on('error', () => undefined).destroy()
}

/** A request of a client, of a batch item or of a background validation. */
export type GatewayRequest = {
  /** The method that the request means, after an override was understood. */
  readonly method: string
  /** Origin-form target as received: path and query (RFC 9112 §3.2.1). */
  readonly target: string
  readonly headers: RequestHeaders
  /** Complete content, or a stream not yet read, or undefined when the request has none. */
  readonly content: Buffer | Readable | undefined
  /** Aborted when no reader waits for the response any more. */
  readonly signal: AbortSignal
  /** Sends the client an interim response (RFC 9110 §15.2); absent where the request has no connection. */
  readonly interim?: Interim
  /** The client asks for a WebSocket (RFC 6455 §4.1): takes the connection to the upstream where that agrees, with a 101. */
  readonly upgrade?: TakeConnection
}

/** Path and query of a target; the query is '' where it has none, or an empty one. */
export const targetParts = (target: string): { readonly path: string; readonly query: string } => {
  const at = target.indexOf('?')
  return at === -1 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) }
}

export const targetOf = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`)

/** Status and headers of a response, before or without its content. */
export type ResponseHead = {
  readonly status: number
  readonly headers: HeaderLines
  /** Only of a response that the upstream sent with such headers. */
  readonly hints?: ResponseHints | undefined
}

/** Values of headers that an upstream sends to the gateway alone. `headers` never has them, so no client gets them. */
export type ResponseHints = {
  /** Trellis-Tags: what the response was made of. */
  readonly tags: string | undefined
  /** Trellis-Max-Age: seconds after which the response changes by the clock. */
  readonly maxAge: string | undefined
  /** Trellis-Statement: what the request has written. */
  readonly receipt?: string | undefined
  /** Trellis-Request: how reports of changes name the request that the response is for. */
  readonly request?: string | undefined
}

/** Sec-WebSocket-Accept for a key (RFC 6455 §1.3): proves that a 101 is for this handshake, and not a response that only has that status. */
export const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

/** RFC 9110 §6.4.1: these have no content, regardless of their headers. */
export const hasNoContent = (method: string, status: number): boolean =>
  isHead(method) || status === 204 || status === 205 || status === 304

/** Takes a 1xx of the upstream. Must not throw; may be called when the response is already out. */
export type Interim = (head: ResponseHead) => void

/** Takes a connection that the upstream has switched to another protocol. Must not throw. */
export type TakeConnection = (connection: Duplex) => void

/** Longest content that is sent as text (server/send/send-response.ts): node:http writes up to 16 KiB at once, head and content together. */
export const longestText = 14 * 1024

/** A content in the form in which a small one is sent: Latin-1 gives its octets one to one. */
export type ContentText = { readonly of: Buffer; readonly latin1: string }

let last: ContentText | undefined

/** Makes the text of a content once for all that read it in a row: a site response is searched twice, parsed and sent. */
export const contentText = (content: Buffer): ContentText => {
  if (last?.of === content) return last
  const text = { of: content, latin1: content.toString('latin1') }
  if (content.length <= longestText) last = text
  return text
}

/** Header lines as they are written, checked: those of `begin`, the same object in many responses, and then `text`. */
export type HeadText = {
  readonly of: HeaderLines
  readonly begin: HeadText | undefined
  readonly text: string
}

export const wholeText = ({ begin, text }: HeadText): string =>
  begin === undefined ? text : begin.text + text

/** Headers that node:http decides for each response: whether the connection stays open, and where the content ends. */
const framing: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'trailer',
  'upgrade',
])

/**
 * Makes the text of lines that many responses share. `begin`: the text of its first lines. Undefined: node:http would add to them, or
 * refuse them.
 */
export const headText = (headers: HeaderLines, status: number, begin?: HeadText): HeadText | undefined => {
  if (begin === undefined) {
    if (hasHeader(headers, framing) || headerValue(headers, 'date') === undefined) return undefined
    if (status !== 304 && headerValues(headers, 'content-length').length !== 1) return undefined
  }
  let text = ''
  for (let i = begin?.of.length ?? 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      return undefined
    }
    text += `${name}: ${value}\r\n`
  }
  return {
    of: headers,
    begin: undefined,
    text: begin === undefined ? ownText(text) : wholeText(begin) + text,
  }
}

/** A response the gateway holds or streams itself. */
export type GatewayResponse = ResponseHead & {
  readonly content: Buffer | Readable | undefined
  /** The request was sent before and got no response, and may have been carried out then: an error does not show that it was not. */
  readonly isRepeated?: true
  /** Counts only when it is of this very content. */
  text?: ContentText | undefined
  /** Counts only when it is of these very headers. */
  headText?: HeadText | undefined
}

/** Lines as they are written; not checked. */
export const linesText = (lines: HeaderLines): string => {
  let text = ''
  for (let i = 0; i < lines.length; i += 2) text += `${lines[i]}: ${lines[i + 1]}\r\n`
  return text
}

const withLines = (head: HeadText, headers: HeaderLines, text: string): HeadText =>
  head.begin === undefined
    ? { of: headers, begin: head, text }
    : { of: headers, begin: head.begin, text: head.text + text }

/** The response with lines of the gateway behind the others, which need no check. Member by member: a spread takes longer. */
export const withAdded = (response: GatewayResponse, lines: HeaderLines): GatewayResponse => {
  const { status, content, text, headText: head } = response
  const headers = [...response.headers, ...lines]
  const isText = head !== undefined && head.of === response.headers
  return {
    status,
    headers,
    content,
    text,
    headText: isText ? withLines(head, headers, linesText(lines)) : undefined,
  }
}

/** Synchronous where possible, so that a hit does not wait for the microtask queue at each step. */
export type ResponseOrPromise = GatewayResponse | Promise<GatewayResponse>

/** Continues at once with a value that is there. */
export const whenKnown = <Value, Result>(
  value: Value | Promise<Value>,
  proceed: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> => (value instanceof Promise ? value.then(proceed) : proceed(value))

type AbortListener = Parameters<AbortSignal['addEventListener']>[1]

const called = (listener: AbortListener): void => {
  const event = { type: 'abort' } as Event
  if (typeof listener === 'function') listener(event)
  else listener.handleEvent(event)
}

/**
 * A lighter AbortSignal, of which every forwarded request makes one: no reader waits for the response any more. Node's own is an
 * EventTarget, and to make one and listen to it costs a twentieth of a pass-through. Not for Node's functions, which take
 * only their own.
 */
export class EndSignal implements AbortSignal {
  aborted = false
  reason: unknown
  onabort = null
  #listeners: AbortListener[] = []

  /** The first call counts. */
  end(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) called(listener)
  }

  /** The only event is `abort`, once. */
  addEventListener(_type: string, listener: AbortListener): void {
    if (!this.aborted && !this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: string, listener: AbortListener): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  dispatchEvent(): boolean {
    throw new TypeError('an EndSignal ends by end()')
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }
}

/**
 * Passes a content through and calls `done` once: before its last octet or its end is passed on, which waits for the promise, or when
 * it breaks off. `content`: all of it; undefined where it is longer than `maxBytes`, differs from its declared length, or the
 * reservation is refused.
 */
export const teeContent = (
  maxBytes: number,
  declared: number | undefined,
  reservation: Reservation,
  done: (content: Buffer | undefined) => unknown,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  let isCollecting = true
  let isDone = false
  const stop = (): void => {
    isCollecting = false
    chunks = []
    reservation.release()
  }
  const finish = async (isWhole: boolean): Promise<void> => {
    if (isDone) return
    isDone = true
    const content = isCollecting && isWhole ? Buffer.concat(chunks) : undefined
    stop()
    await done(content)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (isCollecting && bytes <= maxBytes && reservation.reserve(chunk.length + overheadOfChunk)) {
        chunks.push(chunk)
      } else if (isCollecting) stop()
      if (bytes === declared) void finish(true).then(() => next(null, chunk), next)
      else next(null, chunk)
    },
    flush(next) {
      void finish(declared === undefined || declared === bytes).then(() => next(), next)
    },
    destroy(error, next) {
      void finish(false).catch(() => {})
      next(error)
    },
  })
}
