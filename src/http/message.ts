import type { Readable } from 'node:stream'
import type { FieldLines, RequestFields } from './fields.ts'

/** Methods that metrics, logs and traces name; whatever else a client writes is `other` there. */
export const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON as WordPress writes it: slashes escaped and nothing outside ASCII, so that text comparisons find no difference. */
export const wordpressJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll('/', '\\/').replace(/[\u0080-\uffff]/g, unicodeEscape)

/** Releases a content that is not read, and the connection that it comes from. */
export const discard = (content: Buffer | Readable | undefined): void => {
  if (content !== undefined && !Buffer.isBuffer(content)) content.on('error', () => undefined).destroy()
}

/** A request of a client, of a batch item or of a background validation. */
export type GatewayRequest = {
  /** The method that the request means, after an override was understood. */
  readonly method: string
  /** Origin-form target as received: path and query (RFC 9112 §3.2.1). */
  readonly target: string
  readonly fields: RequestFields
  /** Complete content, or a stream not yet read, or undefined when the request has none. */
  readonly content: Buffer | Readable | undefined
  /** Aborted when no reader waits for the response any more. */
  readonly signal: AbortSignal
  /** Tells the client something before the answer (RFC 9110 §15.2); absent where there is no connection of its own. */
  readonly interim?: Interim
}

/** Status and fields of a response, before or without its content. */
export type ResponseHead = {
  readonly status: number
  readonly fields: FieldLines
  /** Only of a response that the upstream sent with such fields. */
  readonly hints?: ResponseHints | undefined
}

/** Values of fields that an upstream sends to the gateway alone. `fields` never has them, so no client gets them. */
export type ResponseHints = {
  /** Trellis-Tags: what the response was made of. */
  readonly tags: string | undefined
  /** Trellis-Max-Age: seconds after which the response changes by the clock. */
  readonly maxAge: string | undefined
}

/** RFC 9110 §6.4.1: these have no content whatever their fields say. */
export const hasNoContent = (method: string, status: number): boolean =>
  method === 'HEAD' || status === 204 || status === 205 || status === 304

/** Takes a 1xx of the upstream. Must not throw; may be called when the answer is already out. */
export type Interim = (head: ResponseHead) => void

/** Longest content that is sent as text (edge/send-response.ts): node:http writes up to 16 KiB at once, head and content together. */
export const longestText = 14 * 1024

/** A content in the form in which a small one is sent: Latin-1 gives its octets one to one. */
export type ContentText = { readonly of: Buffer; readonly latin1: string }

let last: ContentText | undefined

/** Makes the text of a content once for all that read it in a row: a site response is searched twice, parsed and sent. */
export const contentText = (content: Buffer): ContentText => {
  if (last?.of === content) return last
  const made = { of: content, latin1: content.toString('latin1') }
  if (content.length <= longestText) last = made
  return made
}

/** A response the gateway holds or streams itself. */
export type GatewayResponse = ResponseHead & {
  readonly content: Buffer | Readable | undefined
  /** Counts only when it is of this very content. */
  text?: ContentText | undefined
}

/** What a phase gives back: at once when it can, so that a hit never waits for the microtask queue. */
export type Answer = GatewayResponse | Promise<GatewayResponse>
