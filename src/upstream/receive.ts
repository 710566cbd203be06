import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import type { GatewayResponse } from '../http/message.ts'
import { toGatewayError } from './failure.ts'
import { hasNoContent } from './response-fields.ts'

type Controller = Dispatcher.DispatchController

/** Content of a response that did not arrive in one piece. Destroyed early, it ends the upstream request. */
class ResponseContent extends Readable {
  readonly #controller: Controller
  /** The upstream has sent all of it, or failed. */
  settled = false

  constructor(controller: Controller) {
    super({ highWaterMark: 64 * 1024 })
    this.#controller = controller
    // It may fail before the reader has begun; the reader learns of it then, and nobody's oversight ends the process.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#controller.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.settled) this.#controller.abort(error ?? new GatewayError('client_gone'))
    callback(error)
  }
}

/** Handler of one forwarded request: a small answer becomes a Buffer, a larger one a stream with backpressure. */
export class Receiver implements Dispatcher.DispatchHandler {
  readonly #method: string
  readonly #resolve: (response: GatewayResponse) => void
  readonly #reject: (error: GatewayError) => void
  #controller: Controller | undefined
  #head: { readonly status: number; readonly fields: readonly string[] } | undefined
  /** What has arrived before anybody was told. */
  #held: Buffer[] | undefined = []
  #ended = false
  #content: ResponseContent | undefined

  constructor(
    method: string,
    resolve: (response: GatewayResponse) => void,
    reject: (error: GatewayError) => void,
  ) {
    this.#method = method
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
  }

  onResponseStart(controller: Controller, status: number): void {
    this.#head = { status, fields: controller.rawHeaders as readonly string[] }
    // One read of the socket often brings head and content together; its events all come before this microtask.
    queueMicrotask(() => this.#answer())
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#held !== undefined) this.#held.push(chunk)
    else if (this.#content?.push(chunk) === false) controller.pause()
  }

  onResponseEnd(): void {
    this.#ended = true
    if (this.#content === undefined) return
    this.#content.settled = true
    this.#content.push(null)
  }

  onResponseError(_: Controller, error: Error): void {
    const named = toGatewayError(error)
    if (this.#content === undefined) {
      this.#head = undefined
      this.#reject(named)
      return
    }
    this.#content.settled = true
    this.#content.destroy(named)
  }

  #answer(): void {
    const { status, fields } = this.#head ?? {}
    const held = this.#held
    if (status === undefined || fields === undefined || held === undefined) return
    this.#held = undefined
    this.#resolve({ kind: 'response', status, fields, content: this.#contentOf(status, held) })
  }

  #contentOf(status: number, held: Buffer[]): Buffer | Readable | undefined {
    if (hasNoContent(this.#method, status)) return undefined
    if (this.#ended) return held.length === 1 ? held[0] : Buffer.concat(held)
    const content = new ResponseContent(this.#controller as Controller)
    this.#content = content
    let room = true
    for (const chunk of held) room = content.push(chunk)
    if (!room) this.#controller?.pause()
    return content
  }
}
