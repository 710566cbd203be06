import { type RequestFields, requestField } from '../http/fields.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
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
  /** As the client sent them: for request directives, preconditions and ranges. */
  readonly fields: RequestFields
  /** For Vary: the value with which `forward` sends a field (lower-case name), undefined when it does not. */
  sentField(name: string): string | undefined
  readonly policy: CachePolicy
  /** Tags of a complete response before it is stored; of an empty one, the tags that follow from the request alone. Must not throw. */
  readonly tags: (response: GatewayResponse & { readonly content: Buffer }) => readonly string[]
  /** Can the target respond so? If not, only the reader who fetched it gets the response. Absent: always. */
  readonly isReadable?: (response: GatewayResponse & { readonly content: Buffer }) => boolean
  readonly signal: AbortSignal
  /** Address of the client whose share of the buffered bytes a fill takes. */
  readonly client?: string
}

/** A response of the cache, and how it came about. */
export type CacheAnswer = GatewayResponse & {
  readonly outcome: ReadOutcome
  /** Of a response from memory. */
  readonly ageSeconds?: number
}

/**
 * Sends the read to the upstream with its method and fields, without those of `conditionalFields` (http/conditional/preconditions.ts)
 * and with `extra.fields`. May be called after the reader has gone away, and twice.
 */
export type Forward = (extra: {
  readonly fields: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** No reader waits for it: a stale response was served and is revalidated. */
  readonly background: boolean
}) => Answer

/** A reader of a range fetches alone with these fields: the upstream may have the part cheaper than the whole. */
export const rangeFields = (read: CacheRead): Record<string, string> => {
  const range = requestField(read.fields, 'range')
  const condition = requestField(read.fields, 'if-range')
  if (range === undefined || read.method === 'HEAD') return {}
  return condition === undefined ? { range } : { range, 'if-range': condition }
}

/** In the public part the response to a credential may turn out to be for its owner alone (RFC 9111 §3.5). */
export const carriesOwnCredential = (read: CacheRead): boolean =>
  read.partition === 'public' && read.fields['authorization'] !== undefined

const emptyResponse = { status: 200, fields: [], content: Buffer.alloc(0) } as const

/** Tags that a response to this read will have, as far as the request tells. */
export const expectedTags = (read: CacheRead): readonly string[] => [
  targetKeyOf(read.key),
  ...read.tags(emptyResponse),
]
