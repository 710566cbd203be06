import { hash } from 'node:crypto'
import { cacheKey } from '../../cache/cache-key.ts'
import type { CacheRead } from '../../cache/cache-read.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import { memoizeByObject } from '../../http/memo.ts'
import { isKeyedByContent } from '../../http/methods.ts'
import type { ContentMeaning } from '../../service/contract.ts'
import type { Decision } from '../../service/decide.ts'
import type { CacheDeps } from '../ports.ts'
import type { ValidatedContext } from '../request-context.ts'

export type ReadCaching = Extract<Decision, { readonly kind: 'read' }>['caching']

/** The partition of the cache that a request reads from; `name` as in the key. */
export type ReadPartition = {
  readonly kind: CacheRead['partition']
  readonly name: string
  /** The key has a header that the contract does not declare. */
  readonly hasUndeclared?: boolean
  /** When the credential expires; absent for all others. */
  readonly endsAt?: number
  /** The whole key, made once, of a partition that one meaning has for itself. */
  readonly keyAt?: (service: string, target: string) => string
}

export const publicPart: ReadPartition = { kind: 'public', name: 'public' }

/** Headers that say what the content of a request means (RFC 9110 §8.3 to §8.7). */
const contentHeaders = ['content-type', 'content-encoding', 'content-language', 'content-location'] as const

/** RFC 10008 §2.7: the content, and what it means. Undefined for GET and HEAD. */
const contentPart = ({
  method,
  content,
  meaning,
  request: { headers },
}: ValidatedContext): readonly unknown[] | undefined => {
  if (meaning !== undefined) return [meaning.key]
  return isKeyedByContent(method)
    ? [
        ...contentHeaders.map((name) => requestHeader(headers, name) ?? null),
        Buffer.isBuffer(content) ? hash('sha256', content, 'base64url') : null,
      ]
    : undefined
}

/** Of requests that only their meaning tells apart: contracts give the same object for the same content, as long as they remember it. */
const partitionsByMeaning = memoizeByObject((partitionOf: CacheDeps['partitionOf']) =>
  memoizeByObject((meaning: ContentMeaning): ReadPartition => {
    const name = partitionOf(JSON.stringify([null, null, null, [meaning.key]]))
    let key: string | undefined
    // A meaning is of one service and of one target.
    const keyAt = (service: string, target: string): string => {
      key ??= cacheKey({ service, target, partition: name })
      return key
    }
    return { kind: 'public', hasUndeclared: false, name, keyAt }
  }),
)

/** The one owner of the key's partition: that of the credential and of the headers and content in the key, or the one that all share. */
export const partitionFor = (
  deps: CacheDeps,
  decision: ReadCaching,
  requestContext: ValidatedContext,
): ReadPartition => {
  const { variant, meaning } = requestContext
  const isPublic = decision.partition === 'public' && decision.keyed === undefined
  if (meaning !== undefined && isPublic && variant === undefined)
    return partitionsByMeaning(deps.partitionOf)(meaning)
  const content = contentPart(requestContext)
  const perCredential = decision.partition === 'credential' ? decision : undefined
  const kind = {
    kind: decision.partition,
    hasUndeclared: decision.keyed !== undefined,
    ...(perCredential === undefined ? {} : { endsAt: perCredential.endsAt }),
  }
  if ([variant, perCredential, decision.keyed, content].every((part) => part === undefined)) return publicPart
  // Each part as JSON: no credential can be read as another combination of parts.
  const parts = [variant?.key, perCredential?.credential, decision.keyed, content].map((part) => part ?? null)
  return { ...kind, name: deps.partitionOf(JSON.stringify(parts)) }
}
