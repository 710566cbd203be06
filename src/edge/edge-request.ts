import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { EndSignal } from '../http/end-signal.ts'
import type { RequestFields } from '../http/fields.ts'
import type { GatewayRequest, Interim } from '../http/message.ts'
import { createInterim } from './interim.ts'

/** RFC 9112 §6.3: there is content when it is framed, by a length that is not zero or by chunks. */
const hasContent = (fields: RequestFields): boolean =>
  (fields['content-length'] !== undefined && fields['content-length'] !== '0') ||
  fields['transfer-encoding'] !== undefined

const gone = (): Error => new Error('the client has closed its connection')

/** A client's request. The abort signal is made only when somebody asks for it: a hit does not. */
export class EdgeRequest implements GatewayRequest {
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  #signal: EndSignal | undefined
  readonly method: string
  readonly target: string
  readonly fields: RequestFields

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.method = incoming.method as string
    this.target = incoming.url as string
    this.fields = incoming.headers
  }

  get content(): Readable | undefined {
    return hasContent(this.fields) ? this.#incoming : undefined
  }

  get interim(): Interim {
    return createInterim(this.#outgoing)
  }

  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal
    const signal = new EndSignal()
    this.#signal = signal
    const outgoing = this.#outgoing
    // 'close' comes when the answer is complete too; only one that was cut short means that the client has gone.
    if (outgoing.destroyed) signal.end(gone())
    else outgoing.on('close', () => outgoing.writableFinished || signal.end(gone()))
    return signal
  }
}
