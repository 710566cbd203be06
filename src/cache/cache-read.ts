import { type RequestFields, requestField } from '../http/fields.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CachePolicy } from './decide-caching.ts'

/** A GET or HEAD that is to be answered through the cache. */
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
  /** The value with which `forward` sends a field (lower-case name), undefined when it does not: for Vary. */
  sentField(name: string): string | undefined
  readonly policy: CachePolicy
  /** Tags of a complete response that is about to be kept, or of an empty one: what the request alone tells. Must not throw. */
  readonly tags: (response: GatewayResponse & { readonly content: Buffer }) => readonly string[]
  /** Is this what the target can answer? What is not is for the one who asked, and not kept. Not given: everything is. */
  readonly isReadable?: (response: GatewayResponse & { readonly content: Buffer }) => boolean
  readonly signal: AbortSignal
  /** Address of the reader, whose share of what may be buffered a fill takes. */
  readonly client?: string
}

/**
 * Asks the upstream with the method of the read and its fields, without those of `conditionalFields` (http/preconditions.ts)
 * and with `extra.fields`. May be called after the reader is gone, and twice.
 */
export type Forward = (extra: {
  readonly fields: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** No reader waits for it: a stale response is validated after it was served. */
  readonly background: boolean
}) => Answer

/** Fields with which a reader of a part asks alone: the upstream may have the part cheaper than the whole. */
export const rangeFields = (read: CacheRead): Record<string, string> => {
  const range = requestField(read.fields, 'range')
  const condition = requestField(read.fields, 'if-range')
  if (range === undefined || read.method === 'HEAD') return {}
  return condition === undefined ? { range } : { range, 'if-range': condition }
}

/** In the public part the answer to a credential may turn out to be its owner's alone (RFC 9111 §3.5). */
export const carriesOwnCredential = (read: CacheRead): boolean =>
  read.partition === 'public' && read.fields['authorization'] !== undefined

const nothingYet = { status: 200, fields: [], content: Buffer.alloc(0) } as const

/** Tags that an answer to this read will have, as far as the request tells. */
export const expectedTags = (read: CacheRead): readonly string[] => [
  targetKeyOf(read.key),
  ...read.tags(nothingYet),
]
