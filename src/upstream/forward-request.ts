import { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import {
  type FieldLines,
  fieldValue,
  type Interim,
  type TakeConnection,
  withoutFields,
} from '../http/message.ts'
import type { AttemptEvent } from './events.ts'
import { toGatewayError } from './failure.ts'

/** A request to forward: end-to-end fields only, without Host and framing. */
export type ForwardRequest = {
  readonly method: string
  /** It changes something although its method is a safe one: it is not sent twice. */
  readonly isWrite?: boolean | undefined
  /** Its outcome says nothing of other requests: neither the breaker nor the health of the target counts it. */
  readonly isUncounted?: boolean | undefined
  /** Path and query as the upstream expects them, base path included. */
  readonly target: string
  /** `Host` in place of the configured one. */
  readonly host?: string | undefined
  /** Names in lower case. */
  readonly fields: FieldLines
  /** A stream that has a Content-Length field is sent with it, otherwise in chunks. */
  readonly content: Buffer | Readable | undefined
  readonly signal: AbortSignal
  /** Aborted before anything has been sent, it ends the request; afterwards it has no effect. */
  readonly withdraw?: AbortSignal | undefined
  /** Address of the client whose share it takes, IPv6 by its /64; absent for the gateway's own work, which together has the share of one client. */
  readonly clientAddress?: string
  /** Requests of one client in one line wait for each other; lines are served in turn. Absent: the line of single requests. */
  readonly line?: string
  /** Requests a WebSocket; called with the connection before the response, a 101. */
  readonly upgrade?: TakeConnection | undefined
  /** Called for each interim response (RFC 9110 §15.2). */
  readonly interim?: Interim | undefined
  /** The time until the response head, or the error, is added to it; `target`: origin of the target asked last. */
  readonly record?: { upstreamMs: number; target?: string | undefined }
  /** Called at the end of each attempt. */
  readonly attempted?: ((attempt: AttemptEvent) => void) | undefined
}

const hostName: ReadonlySet<string> = new Set(['host'])

/** The fields with the configured Host; '' = none, and undici sends the target's own (RFC 9112 §3.2). A client's Host is never sent. */
export const withHost = (fields: FieldLines, host: string): FieldLines => {
  if (host === '' && fieldValue(fields, 'host') === undefined) return fields
  const kept = withoutFields(fields, hostName)
  return host === '' ? kept : ['host', host, ...kept]
}

/** Streams of which all octets that were declared have been handed to a connection, though they may never end. */
const handedOver = new WeakSet<Readable>()

/**
 * Has all of this content been sent to the upstream? A declared length decides: a stream of HTTP/2
 * may hold back its end behind the last octet, or end early when it is reset.
 */
export const wentUpWhole = (content: unknown, declared: string | undefined): boolean => {
  if (!(content instanceof Readable)) return true
  return declared === undefined ? content.readableEnded : handedOver.has(content)
}

/** Streamed request content, observed by the attempt that sends it. */
export class Upload {
  readonly #content: Readable
  readonly #declared: string | undefined

  constructor(content: Readable, fields: FieldLines) {
    this.#content = content
    this.#declared = fieldValue(fields, 'content-length')
  }

  get isWhole(): boolean {
    return wentUpWhole(this.#content, this.#declared)
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
    const taken = (chunk: Buffer): void => {
      bytes += chunk.length
      progress(chunk.length)
      if (bytes !== declared) return
      handedOver.add(content)
      whole()
    }
    const ended = (): void => {
      if (this.#declared === undefined) whole()
    }
    // Unlike `on`, this does not make the content flow: undici attaches its own reader in this same turn.
    content.prependListener('data', taken)
    content.once('end', ended)
    content.once('close', () => {
      content.off('data', taken)
      content.off('end', ended)
    })
  }
}

/** Can this content be sent (again)? A stream only before the first read. */
export const isReplayable = (content: unknown, sent: boolean): boolean => {
  if (content === undefined || content === null) return true
  if (typeof content === 'string' || content instanceof Uint8Array) return true
  return content instanceof Readable && !sent && !content.destroyed && !content.readableDidRead
}

/** A stream or session of HTTP/2 that ended may destroy the content with its error before the error is reported. */
const isOfStream = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && error.code.startsWith('ERR_HTTP2_')

/**
 * The error of an attempt that failed. When its content failed, the client is at fault: the gateway's own error (too large), otherwise a
 * client that disconnected. When the connection breaks, undici reports that before it destroys the content with the same error.
 */
export const attemptError = (content: unknown, error: Error): GatewayError => {
  const isOfContent = content instanceof Readable && content.errored === error && !isOfStream(error)
  if (!isOfContent || error instanceof GatewayError) return toGatewayError(error)
  return new GatewayError('client_gone', { cause: error })
}
