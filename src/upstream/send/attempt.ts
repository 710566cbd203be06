import { type Duplex, Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { type Clock, Deadline } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { FairTurns } from '../../http/bounds/fair-turns.ts'
import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { isEventStream } from '../../http/headers/media-type.ts'
import type { AttemptEvent, AttemptOutcome, ClientWait, StatusClass, UpstreamEvent } from '../events.ts'
import { type ForwardRequest, headerTexts, maxInterimResponses, Upload } from '../messages.ts'
import type { UpstreamOptions } from '../options.ts'
import type { Choice, Targets } from '../targets/targets.ts'

/** The events of an attempt for its request. The first is either `head` or `failed`. */
export type AttemptListener = {
  /** A 1xx, any number of times before `head`. */
  interim(status: number, headers: HeaderLines): void
  head(status: number, headers: HeaderLines): void
  /** In place of `head`: the upstream has switched protocols, and the connection is no longer one of the pool. */
  upgraded(status: number, headers: HeaderLines, connection: Duplex): void
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
  /** The request content has been sent whole. */
  contentSent(): void
}

export type AttemptDeps = {
  readonly options: Pick<UpstreamOptions, 'service' | 'timeouts'>
  readonly clock: Clock
  readonly report: (event: UpstreamEvent) => void
  readonly targets: Pick<Targets, 'succeeded' | 'failed' | 'abandoned'>
  /** Shares the event loop among long responses. */
  readonly longResponses: FairTurns
}

type AttemptedRequest = Pick<
  ForwardRequest,
  'content' | 'headers' | 'progress' | 'attempted' | 'record' | 'clientAddress' | 'isUncounted'
>

type Handler = Dispatcher.DispatchHandler

/** After this many bytes of one response, other connections of the process are served first. */
const maxBytesInARow = 128 * 1024

/** After this time an incomplete request body counts as slow because of the client, unless the upstream does not read it. */
const slowUploadMs = 1_000

const classOf = (status: number | undefined): StatusClass => {
  if (status === undefined) return 'none'
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

/** How an attempt without a response head ended, for the log. */
const failureTexts: Readonly<Record<AttemptOutcome, string>> = {
  answered: 'no answer',
  unreachable: 'the target could not be reached',
  timeout: 'no response in time',
  broken: 'the connection broke',
  discarded: 'the response was discarded for a retry',
  aborted: 'the request was cancelled',
}

/**
 * One attempt at one target: sends the request, limits the time between its events, and accounts for `outstanding`, the health of
 * the target and one event at the end. It uses undici's older handler interface, because for the newer one undici creates a
 * controller and an object of headers per response.
 */
export class Attempt implements Handler {
  readonly choice: Choice
  readonly #deps: AttemptDeps
  readonly #listener: AttemptListener
  readonly #upload: Upload | undefined
  readonly #number: number
  readonly #request: AttemptedRequest
  readonly #startedMs: number
  #headMs: number | undefined
  #status: number | undefined
  #isOpen = true
  #abort: ((reason?: Error) => void) | undefined
  #resume: (() => void) | undefined
  #paused = false
  #yields = false
  #bytesInARow = 0
  #interim = 0
  #deadline: Deadline | undefined
  #stopped: Error | undefined
  #released: (() => void) | undefined
  #ended = false
  /** Its response may pause for as long as its connection lives: keep-alive of TCP notices that the upstream is gone. */
  #mayBeSilent = false
  /** A part of the request may have been sent. */
  sent = false
  /** Bytes of content in both directions. */
  movedBytes = 0

  constructor(
    deps: AttemptDeps,
    choice: Choice,
    number: number,
    request: AttemptedRequest,
    listener: AttemptListener,
  ) {
    const { content, headers, record } = request
    this.choice = choice
    this.#deps = deps
    this.#listener = listener
    this.#upload = content instanceof Readable ? new Upload(content, headers) : undefined
    this.#number = number
    this.#request = request
    this.#startedMs = deps.clock.monotonic()
    choice.target.outstanding += 1
    if (record !== undefined) record.target = choice.target.origin
  }

  /** A part of the body has not been sent, so the upstream cannot have carried out the request. */
  get isUploading(): boolean {
    return this.sent && this.#upload?.isWhole === false
  }

  /** The attempt waits for the client's content, not for the upstream; also after its end. */
  get awaitsBody(): boolean {
    return this.sent && this.#upload?.waitsForClient === true
  }

  /** The client has been slow; the upstream may have given up. */
  get isBlockedByClient(): boolean {
    return this.awaitsBody && this.#deps.clock.monotonic() - this.#startedMs >= slowUploadMs
  }

  /** The client action that it waits for; undefined while it waits for the upstream. */
  get waitsForClient(): ClientWait | undefined {
    if (this.#ended) return undefined
    if (this.#paused) return 'reader'
    return this.awaitsBody ? 'request-body' : undefined
  }

  judge(status: number, isFailure: boolean): void {
    const { clock, targets } = this.#deps
    const now = clock.monotonic()
    this.#headMs = now
    this.#status = status
    if (this.#request.isUncounted === true) targets.abandoned(this.choice, now)
    else if (isFailure) targets.failed(this.choice, now, `answered ${status}`)
    else targets.succeeded(this.choice)
  }

  /** Accounts for the end of the attempt; only the first call counts. */
  close(outcome: AttemptOutcome): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const { clock, targets, options, report } = this.#deps
    const now = clock.monotonic()
    const { target } = this.choice
    target.outstanding -= 1
    if (this.#status === undefined) {
      if (outcome === 'aborted' || this.#request.isUncounted === true) targets.abandoned(this.choice, now)
      else targets.failed(this.choice, now, failureTexts[outcome])
    }
    const ended: AttemptEvent = {
      kind: 'attempt-finished',
      service: options.service,
      target: target.origin,
      outcome,
      statusClass: classOf(this.#status),
      headSeconds: this.#headMs === undefined ? undefined : (this.#headMs - this.#startedMs) / 1000,
      durationSeconds: (now - this.#startedMs) / 1000,
      attempt: this.#number,
    }
    report(ended)
    this.#request.attempted?.(ended)
  }

  /**
   * Ends the attempt without calling the listener. `released` is called when the connection is free: at once if the request was sent
   * (its connection is closed), otherwise when the pool reaches it, because a handshake cannot be cancelled.
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

  pause(): void {
    this.#paused = true
    // The reader is slow, not the upstream.
    this.#deadline?.stop()
  }

  resume(): void {
    if (this.#ended || !this.#paused) return
    this.#paused = false
    this.awaitContent()
    if (!this.#yields) this.#continueReading()
  }

  /** Call it in the microtask after `head`, when content that arrived with the head has been received. */
  awaitContent(): void {
    if (!this.#ended && !this.#paused && !this.#mayBeSilent)
      this.#arm(this.#deps.options.timeouts.idleMs, 'no data for too long')
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#stopped !== undefined) {
      // Ends in onError, before a byte is written.
      abort(this.#stopped)
      return
    }
    this.#abort = abort
    this.sent = true
    if (this.#upload === undefined) {
      this.#request.progress?.sent()
      this.#awaitHead()
    } else this.#watchUpload(this.#upload)
  }

  /** Returns whether the connection continues to read. */
  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (this.#ended) return true
    // An interim response (RFC 9110 §15.2) must not restart the timer, because a server could send them for ever.
    if (status >= 100 && status < 200) {
      this.#interim += 1
      if (this.#interim <= maxInterimResponses) this.#listener.interim(status, headerTexts(rawHeaders))
      else
        this.#failWith(new GatewayError('upstream_broken', { detail: 'It sent too many interim responses.' }))
      return true
    }
    this.#resume = resume
    this.#deadline?.stop()
    this.#deadline = undefined
    const headers = headerTexts(rawHeaders)
    this.#mayBeSilent = isEventStream({ status, headers })
    this.#listener.head(status, headers)
    return !this.#paused
  }

  onUpgrade(status: number, rawHeaders: Buffer[], connection: Duplex): void {
    // The HTTP client has removed its listeners: an error without one would end the process.
    connection.on('error', () => {})
    if (this.#ended) {
      connection.destroy()
      return
    }
    this.#finish()
    this.#listener.upgraded(status, headerTexts(rawHeaders), connection)
  }

  onData(chunk: Buffer): boolean {
    // undici passes on an empty piece when it resumes. The end of the connection may follow at once, and must not meet a
    // response that is paused again (nodejs/undici#5360).
    if (this.#ended || chunk.length === 0) return true
    this.#deadline?.refresh()
    this.movedBytes += chunk.length
    this.#bytesInARow += chunk.length
    if (this.#bytesInARow >= maxBytesInARow && !this.#yields) this.#yield()
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
    try {
      this.#listener.failed(error)
    } catch (fault) {
      // A fault of the gateway is none of the connection: it ends the process, as elsewhere.
      process.nextTick(() => {
        throw fault
      })
    }
  }

  /** Node reads a socket as long as it has data, so a response of many megabytes would delay all others. */
  #yield(): void {
    this.#yields = true
    setImmediate(() =>
      this.#deps.longResponses.begin(this.#request.clientAddress ?? '', () => this.#readOn()),
    )
  }

  #readOn(): void {
    this.#yields = false
    this.#bytesInARow = 0
    if (!this.#ended && !this.#paused) this.#continueReading()
  }

  /** An assertion of the HTTP client that fails here would end the process. */
  #continueReading(): void {
    try {
      this.#resume?.()
    } catch (cause) {
      const { report, options } = this.#deps
      report({
        kind: 'connection-fault',
        service: options.service,
        target: this.choice.target.origin,
        cause,
      })
      this.#failWith(new GatewayError('upstream_broken', { cause }))
    }
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
    this.#failWith(error)
  }

  #failWith(error: GatewayError): void {
    this.stop(error, () => {})
    this.#listener.failed(error)
  }

  #awaitHead(): void {
    this.#arm(this.#deps.options.timeouts.headersMs, 'no response headers in time')
  }

  /** Each chunk that is sent restarts the timer; after the last one the wait for the head begins. */
  #watchUpload(upload: Upload): void {
    this.#arm(this.#deps.options.timeouts.idleMs, 'The upstream did not read the request body.')
    upload.watch(
      (bytes) => {
        this.movedBytes += bytes
        this.#deadline?.refresh()
        if (!this.#ended) this.#request.progress?.partlySent()
      },
      () => {
        if (this.#ended) return
        this.#request.progress?.sent()
        this.#listener.contentSent()
        if (this.#resume === undefined) this.#awaitHead()
      },
    )
  }
}
