import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { type FieldLines, fieldValue, hasField } from '../../http/fields.ts'
import { type GatewayResponse, hasNoContent } from '../../http/message.ts'
import { toGatewayError } from '../failure.ts'

type Asked = { readonly headers: FieldLines }

const conditions: ReadonlySet<string> = new Set(['if-none-match', 'if-modified-since'])

/**
 * Why a head that is HTTP is no answer to what was asked; undefined when it is one. Passed on it would mislead the client,
 * or be kept for others as something that it is not.
 */
export const unfitAnswer = (asked: Asked, status: number, fields: FieldLines): string | undefined => {
  // RFC 9110 §15: three digits, of which the first is 1 to 5.
  if (status < 200 || status > 599) return 'an invalid status'
  // Chunks are undone by the HTTP client; any other coding would be lost with its name (RFC 9112 §6.1).
  const coding = fieldValue(fields, 'transfer-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') return 'an unknown transfer coding'
  if (status === 304 && !hasField(asked.headers, conditions)) return 'a 304 without a condition'
  // RFC 9110 §15.3.7: who does not know of ranges takes a part for the whole.
  if (status === 206 && fieldValue(asked.headers, 'range') === undefined)
    return 'a partial response to a request without Range'
  return undefined
}

/** What a receiver may do with the request that it answers. */
type Controller = { pause(): void; resume(): void; abort(reason: Error): void }

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

/** Receives the answer to one forwarded request: a small one becomes a Buffer, a larger one a stream with backpressure. */
export class Receiver {
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

  /** The first call, before anything is asked. */
  begun(controller: Controller): void {
    this.#controller = controller
  }

  /** Once, with the end-to-end fields in their order. */
  head(status: number, fields: readonly string[]): void {
    this.#head = { status, fields }
    // One read of the socket often brings head and content together; its events all come before this microtask.
    queueMicrotask(() => this.#answer())
  }

  data(chunk: Buffer): void {
    if (this.#held !== undefined) this.#held.push(chunk)
    else if (this.#content?.push(chunk) === false) this.#controller?.pause()
  }

  end(): void {
    this.#ended = true
    if (this.#content === undefined) return
    this.#content.settled = true
    this.#content.push(null)
  }

  failed(error: Error): void {
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
