import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { EndSignal } from '../http/end-signal.ts'
import { fieldValues, type RequestFields, withoutFields } from '../http/fields.ts'
import type { GatewayRequest, Interim, ResponseHead } from '../http/message.ts'

/** Bounds the interim responses of an upstream. */
const mostInterim = 16

const notInHints: ReadonlySet<string> = new Set(['link', 'content-length', 'set-cookie'])

/** One field line may hold several links; node:http takes them one by one. */
const linksOf = (head: ResponseHead): string[] =>
  fieldValues(head.fields, 'link').flatMap((line) => line.split(/,\s{0,8}(?=<)/))

const sendEarlyHints = (outgoing: ServerResponse, head: ResponseHead): void => {
  const rest = withoutFields(head.fields, notInHints)
  const hints: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < rest.length; i += 2) hints[rest[i] as string] = rest[i + 1] as string
  hints['link'] = linksOf(head)
  try {
    outgoing.writeEarlyHints(hints)
  } catch {
    // node:http rejects the link: drop the hint.
  }
}

/**
 * Relays a 1xx (RFC 9110 §15.2). node:http can write 102 and 103 (the latter with at least one Link). Others are dropped, and so
 * are all for HTTP/1.0, which has no interim responses, and all after the final response.
 */
const createInterim = (outgoing: ServerResponse): Interim => {
  let left = mostInterim
  return (head) => {
    const { req } = outgoing
    const takesNone = req.httpVersionMajor === 1 && req.httpVersionMinor === 0
    // Before its turn on the connection it would be written behind the head of the final response, as part of its content.
    const waits = outgoing.socket === null
    if (left === 0 || waits || takesNone || outgoing.headersSent || outgoing.destroyed) return
    left -= 1
    if (head.status === 102) outgoing.writeProcessing()
    else if (head.status === 103) sendEarlyHints(outgoing, head)
  }
}

/** RFC 9112 §6.3: there is content when it is framed, by a length that is not zero or by chunks. */
export const hasContent = (fields: RequestFields): boolean =>
  (fields['content-length'] !== undefined && fields['content-length'] !== '0') ||
  fields['transfer-encoding'] !== undefined

const gone = (): Error => new Error('the client has closed its connection')

/** A client's request. Its abort signal is created on first use: a hit does not use it. */
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
    // 'close' also follows a complete response; only before that it means that the client disconnected.
    if (outgoing.destroyed) signal.end(gone())
    else outgoing.on('close', () => outgoing.writableFinished || signal.end(gone()))
    return signal
  }
}
