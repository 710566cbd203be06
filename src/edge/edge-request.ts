import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { RequestFields } from '../http/fields.ts'
import type { GatewayRequest } from '../http/message.ts'

/** RFC 9112 §6.3: there is content when it is framed, by a length that is not zero or by chunks. */
const hasContent = (fields: RequestFields): boolean =>
  (fields['content-length'] !== undefined && fields['content-length'] !== '0') ||
  fields['transfer-encoding'] !== undefined

/** A client's request. The abort signal is made only when somebody asks for it: a hit does not. */
export class EdgeRequest implements GatewayRequest {
  readonly #raw: IncomingMessage
  #controller: AbortController | undefined

  constructor(raw: IncomingMessage) {
    this.#raw = raw
  }

  get method(): string {
    return this.#raw.method as string
  }

  get target(): string {
    return this.#raw.url as string
  }

  get fields(): RequestFields {
    return this.#raw.headers
  }

  get content(): Readable | undefined {
    return hasContent(this.#raw.headers) ? this.#raw : undefined
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      const { socket } = this.#raw
      const abort = (): void => controller.abort()
      if (socket.destroyed) abort()
      else {
        socket.once('close', abort)
        // Otherwise a connection that lives long collects a listener for each of its requests.
        this.#raw.once('close', () => setImmediate(() => socket.off('close', abort)))
      }
    }
    return this.#controller.signal
  }
}
