import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import {
  acceptOf,
  type FieldLines,
  fieldValue,
  hasField,
  type ResponseHead,
  type ResponseHints,
  withoutFields,
} from '../../http/message.ts'

const conditions: ReadonlySet<string> = new Set(['if-none-match', 'if-modified-since'])

/** Why a 101 opens no WebSocket for the request (RFC 6455 §4.1); undefined if it does. */
const invalidSwitch = (requestFields: FieldLines, fields: FieldLines): string | undefined => {
  if (fieldValue(fields, 'upgrade')?.toLowerCase() !== 'websocket') return 'a 101 for another protocol'
  const key = fieldValue(requestFields, 'sec-websocket-key') ?? ''
  if (fieldValue(fields, 'sec-websocket-accept') !== acceptOf(key)) return 'a 101 for another handshake'
  return undefined
}

/**
 * Why a response head is invalid for the request; undefined if it is valid. Forwarding it would mislead the client or be stored as
 * another response.
 */
export const invalidResponse = (
  requestFields: FieldLines,
  status: number,
  fields: FieldLines,
): string | undefined => {
  if (status === 101) return invalidSwitch(requestFields, fields)
  // RFC 9110 §15: three digits, of which the first is 1 to 5.
  if (status < 200 || status > 599) return 'an invalid status'
  // The HTTP client decodes chunks; any other coding would be lost with its name (RFC 9112 §6.1).
  const coding = fieldValue(fields, 'transfer-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') return 'an unknown transfer coding'
  if (status === 304 && !hasField(requestFields, conditions)) return 'a 304 without a condition'
  // RFC 9110 §15.3.7: a client that does not implement ranges takes a part for the whole.
  if (status === 206 && fieldValue(requestFields, 'range') === undefined)
    return 'a partial response to a request without Range'
  return undefined
}

const contentLength: ReadonlySet<string> = new Set(['content-length'])

/** Status and end-to-end fields, and no length where there must be none (RFC 9110 §8.6). */
export const responseHead = (status: number, fields: FieldLines): ResponseHead => {
  const kept = endToEndFields(fields)
  const shown = status === 204 ? withoutFields(kept, contentLength) : kept
  // Only a response that lost a field can have hints.
  return { status, fields: shown, hints: kept.length === fields.length ? undefined : hintsOf(fields) }
}

const hintsOf = (fields: FieldLines): ResponseHints | undefined => {
  const tags = fieldValue(fields, 'trellis-tags')
  const maxAge = fieldValue(fields, 'trellis-max-age')
  const change = fieldValue(fields, 'trellis-change')
  const isNone = tags === undefined && maxAge === undefined && change === undefined
  return isNone ? undefined : { tags, maxAge, ...(change === undefined ? {} : { change }) }
}

/** Names of fields, by length and two octets: comparing costs a quarter of decoding the same few names again. */
const knownNames: ({ readonly octets: Buffer; readonly text: string } | undefined)[] = Array.from(
  { length: 256 },
  () => undefined,
)
const longestKnown = 64

const isSame = (one: Buffer, other: Buffer): boolean => {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i += 1) if (one[i] !== other[i]) return false
  return true
}

const nameText = (octets: Buffer): string => {
  const { length } = octets
  const at = (length * 29 + (octets[0] ?? 0) * 7 + (octets[length - 1] ?? 0)) & 255
  const known = knownNames[at]
  if (known !== undefined && isSame(known.octets, octets)) return known.text
  const text = octets.toString('latin1')
  if (length <= longestKnown) knownNames[at] = { octets: Buffer.from(octets), text }
  return text
}

/** Field lines as text; field values are octets, kept one to one (RFC 9110 §5.5). */
export const fieldTexts = (raw: readonly (Buffer | string)[]): string[] => {
  const lines: string[] = []
  for (let i = 0; i < raw.length; i += 1) {
    const part = raw[i] as Buffer | string
    if (typeof part === 'string') lines.push(part)
    else lines.push(i % 2 === 0 ? nameText(part) : part.toString('latin1'))
  }
  return lines
}

/** Statuses of a gateway or an unavailable program. A 500 comes from a running program. */
export const isGatewayStatus = (status: number): boolean => status === 502 || status === 503 || status === 504

/** The upstream request that the content comes from. */
type RequestOfContent = { resume(): void; abort(reason: Error): void }

/** Content of a response that did not arrive in one piece. Destroyed early, it ends the upstream request. */
export class ResponseContent extends Readable {
  readonly #request: RequestOfContent
  /** The upstream has sent all of it, or failed. */
  settled = false

  constructor(request: RequestOfContent) {
    super({ highWaterMark: 64 * 1024 })
    this.#request = request
    // It may fail before a reader adds its listener; without this one the process would end.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#request.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.settled) this.#request.abort(error ?? new GatewayError('client_gone'))
    callback(error)
  }
}
