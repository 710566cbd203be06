import { type Duplex, Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import type { UpstreamOptions } from './options.ts'

/** What an attempt tells the relay it belongs to. Exactly one of `head`/`upgraded` and `failed` comes first. */
export type AttemptListener = {
  /** A 1xx, any number of times before `head`. */
  interim(status: number, rawFields: readonly (Buffer | string)[]): void
  head(status: number, rawFields: readonly (Buffer | string)[], statusText: string | undefined): void
  upgraded(status: number, fields: object, socket: Duplex): void
  data(chunk: Buffer): void
  end(): void
  failed(error: Error): void
}

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

/** One try at one target: sends, keeps the time between its events, and says how it went. */
export class Attempt implements Handler {
  readonly #timeouts: UpstreamOptions['timeouts']
  readonly #content: unknown
  readonly #listener: AttemptListener
  #controller: Controller | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped: Error | undefined
  #released: (() => void) | undefined
  #ended = false
  /** Something of the request may have been written. */
  sent = false

  constructor(content: unknown, timeouts: UpstreamOptions['timeouts'], listener: AttemptListener) {
    this.#content = content
    this.#timeouts = timeouts
    this.#listener = listener
  }

  /**
   * Ends the attempt without telling the listener. `released` is called when the connection is free of it: at once when
   * the request was sent (its connection is closed), else when the pool comes to it, since a handshake cannot be recalled.
   */
  stop(reason: Error, released: () => void): void {
    const waitsForPool = !this.#ended && this.#controller === undefined
    if (!this.#ended) {
      this.#finish()
      this.#stopped = reason
      this.#controller?.abort(reason)
    }
    if (waitsForPool) this.#released = released
    else released()
  }

  pause(): void {
    this.#controller?.pause()
    // The reader is slow, not the upstream.
    clearTimeout(this.#timer)
  }

  resume(): void {
    if (this.#ended || this.#controller === undefined || !this.#controller.paused) return
    this.#arm(this.#timeouts.idleMs, 'no content for too long')
    this.#controller.resume()
  }

  onRequestStart(controller: Controller): void {
    if (this.#stopped !== undefined) {
      // Ends in onResponseError, before a byte is written.
      controller.abort(this.#stopped)
      return
    }
    this.#controller = controller
    this.sent = true
    if (this.#content instanceof Readable) this.#watchUpload(this.#content)
    else this.#awaitHead()
  }

  onRequestUpgrade(_: Controller, status: number, fields: object, socket: Duplex): void {
    if (this.#ended) return
    this.#finish()
    this.#listener.upgraded(status, fields, socket)
  }

  onResponseStart(controller: Controller, status: number, _: object, statusText?: string): void {
    if (this.#ended) return
    // An interim response is no answer (RFC 9110 §15.2), and must not feed the timer: a server could send them for ever.
    if (status >= 100 && status < 200) {
      this.#listener.interim(status, (controller.rawHeaders ?? []) as readonly Buffer[])
      return
    }
    this.#arm(this.#timeouts.idleMs, 'no content for too long')
    this.#listener.head(status, (controller.rawHeaders ?? []) as readonly Buffer[], statusText)
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    if (this.#ended) return
    this.#timer?.refresh()
    this.#listener.data(chunk)
  }

  onResponseEnd(): void {
    if (this.#ended) return
    this.#finish()
    this.#listener.end()
  }

  onResponseError(_: Controller, error: Error): void {
    if (this.#ended) {
      this.#released?.()
      this.#released = undefined
      return
    }
    this.#finish()
    this.#listener.failed(error)
  }

  #finish(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  #arm(ms: number, detail: string): void {
    clearTimeout(this.#timer)
    this.#timer = ms > 0 ? setTimeout(() => this.#expire(detail), ms) : undefined
  }

  #expire(detail: string): void {
    if (this.#ended) return
    const error = new GatewayError('upstream_timeout', { detail })
    this.stop(error, () => {})
    this.#listener.failed(error)
  }

  #awaitHead(): void {
    this.#arm(this.#timeouts.headersMs, 'no response head in time')
  }

  /** While content goes up each piece of it is progress; the wait for the head begins when the last one is gone. */
  #watchUpload(content: Readable): void {
    this.#arm(this.#timeouts.idleMs, 'the request content was not taken')
    const progress = () => this.#timer?.refresh()
    const sent = () => {
      if (!this.#ended) this.#awaitHead()
    }
    // undici attaches its own reader in this same turn; attached after it, this listener only looks on.
    queueMicrotask(() => {
      if (this.#ended) return
      content.on('data', progress)
      content.once('end', sent)
      content.once('close', () => {
        content.off('data', progress)
        content.off('end', sent)
      })
    })
  }
}
