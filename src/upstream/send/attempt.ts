import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../../errors.ts'
import { Deadline } from '../deadline.ts'
import type { ClientWait } from '../events.ts'
import type { UpstreamOptions } from '../options.ts'
import { Upload } from '../request-content.ts'
import type { RelayOptions } from './upstream-context.ts'

/** What an attempt tells the relay it belongs to. Exactly one of `head` and `failed` comes first. */
export type AttemptListener = {
  /** A 1xx, any number of times before `head`. */
  interim(status: number, rawFields: readonly (Buffer | string)[]): void
  head(status: number, rawFields: readonly (Buffer | string)[]): void
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
  /** The request content has been taken whole. */
  contentSent(): void
}

type Handler = Dispatcher.DispatchHandler

/** After so many octets of a response in a row the other connections of the process are served first. */
const mostBytesInARow = 128 * 1024

/**
 * One try at one target: sends, keeps the time between its events, and says how it went. It takes undici's calls as the
 * connection makes them: for a handler of the newer kind undici makes a controller and an object of fields around each.
 */
export class Attempt implements Handler {
  readonly #timeouts: UpstreamOptions['timeouts']
  readonly #upload: Upload | undefined
  readonly #listener: AttemptListener
  readonly #inTurn: (goOn: () => void) => void
  #abort: ((reason?: Error) => void) | undefined
  #resume: (() => void) | undefined
  #paused = false
  #yields = false
  #bytesInARow = 0
  #deadline: Deadline | undefined
  #stopped: Error | undefined
  #released: (() => void) | undefined
  #ended = false
  /** Something of the request may have been written. */
  sent = false
  /** Octets of content, both ways. */
  movedBytes = 0

  constructor(
    { body, headers }: Pick<RelayOptions, 'body' | 'headers'>,
    timeouts: UpstreamOptions['timeouts'],
    listener: AttemptListener,
    /** Calls it when it is the turn of this response among the long ones. */
    inTurn: (goOn: () => void) => void,
  ) {
    this.#upload = body instanceof Readable ? new Upload(body, headers) : undefined
    this.#timeouts = timeouts
    this.#listener = listener
    this.#inTurn = inTurn
  }

  /** Some of the content has not been sent: the upstream cannot have carried the request out. */
  get isUploading(): boolean {
    return this.sent && this.#upload?.isWhole === false
  }

  /** The client is the one that is awaited, not the upstream; says so of an attempt that has ended, too. */
  get awaitsBody(): boolean {
    return this.sent && this.#upload?.waitsForClient === true
  }

  /**
   * Ends the attempt without telling the listener. `released` is called when the connection is free of it: at once when
   * the request was sent (its connection is closed), else when the pool comes to it, since a handshake cannot be recalled.
   */
  stop(reason: Error, released: () => void): void {
    const waitsForPool = !this.#ended && this.#abort === undefined
    if (!this.#ended) {
      this.#finish()
      this.#stopped = reason
      this.#abort?.(reason)
    }
    if (waitsForPool) this.#released = released
    else released()
  }

  /** What keeps it from going on, when that is the client. */
  get waitsForClient(): ClientWait | undefined {
    if (this.#ended) return undefined
    if (this.#paused) return 'reader'
    return this.awaitsBody ? 'request-body' : undefined
  }

  pause(): void {
    this.#paused = true
    // The reader is slow, not the upstream.
    this.#deadline?.stop()
  }

  resume(): void {
    if (this.#ended || !this.#paused) return
    this.#paused = false
    this.#arm(this.#timeouts.idleMs, 'no data for too long')
    if (!this.#yields) this.#resume?.()
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#stopped !== undefined) {
      // Ends in onError, before a byte is written.
      abort(this.#stopped)
      return
    }
    this.#abort = abort
    this.sent = true
    if (this.#upload === undefined) this.#awaitHead()
    else this.#watchUpload(this.#upload)
  }

  /** What it returns says whether the connection reads on. */
  onHeaders(status: number, rawFields: Buffer[], resume: () => void): boolean {
    if (this.#ended) return true
    // An interim response is no answer (RFC 9110 §15.2), and must not feed the timer: a server could send them for ever.
    if (status >= 100 && status < 200) {
      this.#listener.interim(status, rawFields)
      return true
    }
    this.#resume = resume
    this.#deadline?.stop()
    this.#deadline = undefined
    // One read of the socket often brings head and content together: then there is nothing to wait for.
    queueMicrotask(this.#awaitContent)
    this.#listener.head(status, rawFields)
    return !this.#paused
  }

  onData(chunk: Buffer): boolean {
    if (this.#ended) return true
    this.#deadline?.refresh()
    this.movedBytes += chunk.length
    this.#bytesInARow += chunk.length
    if (this.#bytesInARow >= mostBytesInARow && !this.#yields) this.#yield()
    this.#listener.data(chunk)
    return !this.#paused && !this.#yields
  }

  onComplete(): void {
    if (this.#ended) return
    this.#finish()
    this.#listener.end()
  }

  onError(error: Error): void {
    if (this.#ended) {
      this.#released?.()
      this.#released = undefined
      return
    }
    this.#finish()
    this.#listener.failed(error)
  }

  /** A socket is read as long as there is something to read: a response of many megabytes would keep all others waiting. */
  #yield(): void {
    this.#yields = true
    setImmediate(() => this.#inTurn(this.#readOn))
  }

  readonly #readOn = (): void => {
    this.#yields = false
    this.#bytesInARow = 0
    if (!this.#ended && !this.#paused) this.#resume?.()
  }

  #finish(): void {
    this.#ended = true
    this.#deadline?.stop()
  }

  #arm(ms: number, detail: string): void {
    this.#deadline?.stop()
    this.#deadline = ms > 0 ? new Deadline(ms, () => this.#expire(detail)) : undefined
  }

  #expire(detail: string): void {
    if (this.#ended) return
    const error = this.awaitsBody
      ? new GatewayError('request_timeout')
      : new GatewayError('upstream_timeout', { detail })
    this.stop(error, () => {})
    this.#listener.failed(error)
  }

  #awaitHead(): void {
    this.#arm(this.#timeouts.headersMs, 'no response headers in time')
  }

  readonly #awaitContent = (): void => {
    if (!this.#ended && !this.#paused) this.#arm(this.#timeouts.idleMs, 'no data for too long')
  }

  /** While content goes up each piece of it is progress; the wait for the head begins when the last one is gone. */
  #watchUpload(upload: Upload): void {
    this.#arm(this.#timeouts.idleMs, 'The upstream did not read the request body.')
    upload.watch(
      (bytes) => {
        this.movedBytes += bytes
        this.#deadline?.refresh()
      },
      () => {
        if (this.#ended) return
        this.#listener.contentSent()
        if (this.#resume === undefined) this.#awaitHead()
      },
    )
  }
}
