import { parseCacheControl } from '../http/caching-fields.ts'
import { type Answer, type GatewayResponse, type RequestFields, requestField } from '../http/message.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CachePolicy } from './decide-caching.ts'
import type { ReadOutcome } from './events.ts'

/** A GET or HEAD that is answered through the cache. */
export type CacheRead = {
  /** For events: the name of the service. */
  readonly service: string
  /** From `cacheKey`. */
  readonly key: string
  /** The partition that the key was made with. */
  readonly partition: 'public' | 'credential'
  readonly method: 'GET' | 'HEAD'
  /** The client's fields, for request directives, preconditions and ranges. */
  readonly fields: RequestFields
  /** For Vary: the value of a field (lower-case name) as `forward` sends it; undefined if it does not. */
  sentField(name: string): string | undefined
  readonly policy: CachePolicy
  /** Responses of one caller may be compressed; public ones may be in any case. */
  readonly compresses?: boolean
  /** Tags of a complete response before it is stored; for an empty one, the tags that follow from the request. Must not throw. */
  readonly tags: (response: GatewayResponse & { readonly content: Buffer }) => readonly string[]
  /** Can the target give this response? If not, only the client that fetched it gets it. Absent: always. */
  readonly isReadable?: (response: GatewayResponse & { readonly content: Buffer }) => boolean
  readonly signal: AbortSignal
  /** Address of the client, whose share of the buffered bytes a fill uses. */
  readonly client?: string
}

/** The parts of a read that decide the form of its response. */
export type ReaderFacts = Pick<CacheRead, 'method' | 'fields'>

/** Ranges refer to the uncoded bytes; the request may also have no-transform (RFC 9111 §5.2.1.6). */
export const takesUncodedOnly = (fields: RequestFields): boolean =>
  fields['range'] !== undefined ||
  (fields['cache-control'] !== undefined &&
    parseCacheControl(requestField(fields, 'cache-control')).has('no-transform'))

/** A response of the cache, with its source. */
export type CacheAnswer = GatewayResponse & {
  readonly outcome: ReadOutcome
  /** Of a response from memory. */
  readonly ageSeconds?: number
}

/**
 * Sends the read to the upstream with its method and fields, without those of `conditionalFields` (http/conditional/preconditions.ts)
 * and with `extra.fields`. May be called after the client has disconnected, and twice.
 */
export type Forward = (extra: {
  readonly fields: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** No reader waits for it: a stale response was served and is revalidated. */
  readonly background: boolean
}) => Answer

/** A request for a range fetches alone with these fields: the upstream may send the part at a lower cost. */
export const rangeFields = (read: CacheRead): Record<string, string> => {
  const range = requestField(read.fields, 'range')
  const condition = requestField(read.fields, 'if-range')
  if (range === undefined || read.method === 'HEAD') return {}
  return condition === undefined ? { range } : { range, 'if-range': condition }
}

/** A public response to a request with a credential may turn out to be private (RFC 9111 §3.5). */
export const carriesOwnCredential = (read: CacheRead): boolean =>
  read.partition === 'public' && read.fields['authorization'] !== undefined

const emptyResponse = { status: 200, fields: [], content: Buffer.alloc(0) } as const

/** Tags that follow from the request alone. */
export const expectedTags = (read: CacheRead): readonly string[] => [
  targetKeyOf(read.key),
  ...read.tags(emptyResponse),
]
