import { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import { endToEndHeaders } from '../http/headers/forwardable-headers.ts'
import { type HeaderLines, headerValue, withHeader, withoutHeaders } from '../http/headers/header-lines.ts'
import type { Interim, ResponseHead, ResponseHints, TakeConnection } from '../http/message.ts'
import type { Effect } from '../http/methods.ts'
import type { AttemptEvent } from './events.ts'
import { toGatewayError } from './failure.ts'

/** What of a request has left for the upstream. Both are called again for each attempt. */
export type SendProgress = {
  /** At least one octet of its content. */
  partlySent(): void
  /** All of it. */
  sent(): void
}

/** Interim responses (RFC 9110 §15.2) take no content, so nothing else bounds how many a server sends before the head. */
export const maxInterimResponses = 1_000

/** A request to forward: end-to-end headers only, without Host and framing. */
export type ForwardRequest = {
  readonly method: string
  readonly effect: Effect
  /** Its outcome says nothing of other requests: neither the breaker nor the health of the target counts it. */
  readonly isUncounted?: boolean | undefined
  /** Path and query as the upstream expects them, base path included. */
  readonly target: string
  /** `Host` in place of the configured one. */
  readonly host?: string | undefined
  /** Names in lower case. */
  readonly headers: HeaderLines
  /** A stream that has a Content-Length header is sent with it, otherwise in chunks. */
  readonly content: Buffer | Readable | undefined
  readonly signal: AbortSignal
  /** Aborted before anything has been sent, it ends the request; afterwards it has no effect. */
  readonly withdraw?: AbortSignal | undefined
  /** Address of the client whose share it takes, IPv6 by its /64; absent for the gateway's own work, which together has the share of one client. */
  readonly clientAddress?: string
  /** Requests of one client in one queue wait for each other; queues are served in turn. Absent: the queue of single requests. */
  readonly queue?: string
  /** Requests a WebSocket; called with the connection before the response, a 101. */
  readonly upgrade?: TakeConnection | undefined
  /** Called for each interim response (RFC 9110 §15.2). */
  readonly interim?: Interim | undefined
  /** The time until the response head, or the error, is added to it; `target`: origin of the target asked last. */
  readonly record?: { upstreamMs: number; target?: string | undefined }
  readonly progress?: SendProgress | undefined
  readonly attempted?: ((attempt: AttemptEvent) => void) | undefined
}

const hostName: ReadonlySet<string> = new Set(['host'])

/** The headers with the configured Host; '' = none, and undici sends the target's own (RFC 9112 §3.2). A client's Host is never sent. */
export const withHost = (headers: HeaderLines, host: string): HeaderLines => {
  if (host === '' && headerValue(headers, 'host') === undefined) return headers
  const otherHeaders = withoutHeaders(headers, hostName)
  return host === '' ? otherHeaders : ['host', host, ...otherHeaders]
}

/** Streamed request content, observed by the attempt that sends it. */
export class Upload {
  readonly #content: Readable
  readonly #declared: string | undefined
  #isHandedOver = false

  constructor(content: Readable, headers: HeaderLines) {
    this.#content = content
    this.#declared = headerValue(headers, 'content-length')
  }

  /**
   * Has all of it been sent to the upstream? A declared length decides: a stream of HTTP/2 may hold back its end behind the last
   * octet, or end early when it is reset.
   */
  get isWhole(): boolean {
    return this.#declared === undefined ? this.#content.readableEnded : this.#isHandedOver
  }

  /** More would be sent if the client had sent more. Otherwise the upstream takes nothing, and the connection holds the content back. */
  get waitsForClient(): boolean {
    return !this.isWhole && !this.#content.isPaused()
  }

  /** Calls `progress` for each piece, and `whole` once when all has been handed to the connection. */
  watch(progress: (bytes: number) => void, whole: () => void): void {
    const content = this.#content
    const declared = Number(this.#declared ?? Number.NaN)
    let bytes = 0
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
      progress(chunk.length)
      if (bytes !== declared) return
      this.#isHandedOver = true
      whole()
    }
    const ended = (): void => {
      if (this.#declared === undefined) whole()
    }
    // Unlike `on`, this does not make the content flow: undici attaches its own reader in this same turn.
    content.prependListener('data', count)
    content.once('end', ended)
  }
}

/** Can this content be sent (again)? A stream only before the first read. */
export const isReplayable = (content: unknown, sent: boolean): boolean => {
  if (content === undefined || content === null) return true
  if (typeof content === 'string' || content instanceof Uint8Array) return true
  return content instanceof Readable && !sent && !content.destroyed && !content.readableDidRead
}

/**
 * The error of an attempt that failed. When its content failed, the client is at fault: the gateway's own error (too large), otherwise a
 * client that disconnected. When the connection breaks, undici reports that before it destroys the content with the same error.
 */
export const attemptError = (content: unknown, error: Error): GatewayError => {
  const isOfContent = content instanceof Readable && content.errored === error
  if (!isOfContent || error instanceof GatewayError) return toGatewayError(error)
  return new GatewayError('client_gone', { cause: error })
}

const contentLength: ReadonlySet<string> = new Set(['content-length'])

/** A 204 has no length (RFC 9110 §8.6); that of a 205 is 0 (§15.3.6), or clients would read the next response as its content. */
const withTrueLength = (status: number, headers: string[]): string[] => {
  if (status === 205) return withHeader(headers, 'Content-Length', '0')
  return status === 204 ? withoutHeaders(headers, contentLength) : headers
}

export const responseHead = (status: number, headers: HeaderLines): ResponseHead => {
  const endToEnd = endToEndHeaders(headers)
  const shown = withTrueLength(status, endToEnd)
  // Only a response that lost a header can have hints.
  return { status, headers: shown, hints: endToEnd.length === headers.length ? undefined : hintsOf(headers) }
}

const hintsOf = (headers: HeaderLines): ResponseHints | undefined => {
  const tags = headerValue(headers, 'trellis-tags')
  const maxAge = headerValue(headers, 'trellis-max-age')
  const incomplete = headerValue(headers, 'trellis-incomplete')
  const untested = headerValue(headers, 'trellis-untested')
  const receipt = headerValue(headers, 'trellis-statement')
  const request = headerValue(headers, 'trellis-request')
  if ([tags, maxAge, incomplete, untested, receipt, request].every((value) => value === undefined))
    return undefined
  return {
    tags,
    maxAge,
    ...(incomplete === undefined ? {} : { incomplete }),
    ...(untested === undefined ? {} : { untested }),
    ...(receipt === undefined ? {} : { receipt }),
    ...(request === undefined ? {} : { request }),
  }
}

/** Header lines as text; header values are octets, kept one to one (RFC 9110 §5.5). */
export const headerTexts = (raw: readonly (Buffer | string)[]): string[] =>
  raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))

/** Statuses of a gateway or an unavailable program. A 500 comes from a running program. */
export const isGatewayStatus = (status: number): boolean => status === 502 || status === 503 || status === 504

/** The upstream request that the content comes from. */
type RequestOfContent = { resume(): void; abort(reason: Error): void }

/** Content of a response that did not arrive in one piece. Destroyed early, it ends the upstream request. */
export class ResponseContent extends Readable {
  readonly #request: RequestOfContent
  /** The upstream has sent all of it, or failed. */
  settled = false

  constructor(request: RequestOfContent) {
    super({ highWaterMark: 64 * 1024 })
    this.#request = request
    // It may fail before a reader adds its listener; without this one the process would end.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#request.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.settled) this.#request.abort(error ?? new GatewayError('client_gone'))
    callback(error)
  }
}
