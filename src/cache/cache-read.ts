import type { RequestFields } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { CachePolicy } from './policy.ts'

/** A GET or HEAD that is to be answered through the cache. */
export type CacheRead = {
  /** For events: the name of the service. */
  readonly service: string
  /** From `cacheKey`. */
  readonly key: string
  /** The partition that the key was made with. */
  readonly partition: 'public' | 'credential'
  readonly method: 'GET' | 'HEAD'
  /** As the client sent them: for Vary, request directives, preconditions and ranges. */
  readonly fields: RequestFields
  readonly policy: CachePolicy
  /** Tags of a complete response; asked once, when it is about to be kept. Must not throw. */
  readonly tags: (response: GatewayResponse & { readonly content: Buffer }) => readonly string[]
  readonly signal: AbortSignal
}

/**
 * Asks the upstream with the method of the read and its fields, without those of `conditionalFields` (http/preconditions.ts)
 * and with `extra.fields`. May be called after the reader is gone, and twice.
 */
export type Forward = (extra: {
  readonly fields: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}) => Promise<GatewayResponse>
