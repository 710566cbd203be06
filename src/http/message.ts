import type { Duplex, Readable } from 'node:stream'
import { type HeaderLines, linesText, type RequestHeaders } from './headers/header-lines.ts'
import { isHead } from './methods.ts'
import { type ContentText, type HeadText, withLines } from './response-text.ts'

/** Releases a content that is not read, and the connection that it comes from. */
export const discard = (content: Buffer | Readable | undefined): void => {
  if (content !== undefined && !Buffer.isBuffer(content)) content.on('error', () => undefined).destroy()
}

/** A request of a client, of a batch item or of a background validation. */
export type GatewayRequest = {
  /** As it was sent; `context.method` is what the request means, after an override was understood. */
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
  /** Trellis-Incomplete: why the tags do not say everything, for a person. */
  readonly incomplete?: string | undefined
  /** Trellis-Untested: plugins in versions that the companion does not know, so that more changes reach the response, for a person. */
  readonly untested?: string | undefined
  /** Trellis-Statement: what the request has written. */
  readonly receipt?: string | undefined
  /** Trellis-Request: how reports of changes name the request that the response is for. */
  readonly request?: string | undefined
}

/** RFC 9110 §6.4.1: these have no content, regardless of their headers. */
export const hasNoContent = (method: string, status: number): boolean =>
  isHead(method) || status === 204 || status === 205 || status === 304

/** Takes a 1xx of the upstream. Must not throw; may be called when the response is already out. */
export type Interim = (head: ResponseHead) => void

/** Takes a connection that the upstream has switched to another protocol. Must not throw. */
export type TakeConnection = (connection: Duplex) => void

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
