import { parseCacheControl } from '../http/cache-control.ts'
import { otherCredential } from '../http/credential-fields.ts'
import { type RequestFields, requestField } from '../http/fields.ts'
import { carriesIdentity, isActing, type Sensitivity } from './sensitivity.ts'

/** `rfc-shared-cache` does all that RFC 9111 allows a shared cache; `safe` is narrower (docs/caching.md lists how). */
export type CacheProfile = 'safe' | 'rfc-shared-cache'

/** What the operator says about one route, for where the upstream says nothing. */
export type CacheRule = {
  readonly ttlMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  /** The rule wins over what the upstream states; `private` and Set-Cookie still keep a response out of the public part. */
  readonly override: boolean
  /** Lifetime of 404 and 410; 0 = never stored. */
  readonly negativeTtlMs: number
  readonly scope: 'public' | 'credential'
}

export type CachePolicy = {
  readonly profile: CacheProfile
  readonly rule: CacheRule | undefined
  /** Request fields (lower case) whose names look like credentials and that are none; all others that look so count. */
  readonly harmlessFields?: readonly string[]
  /** Names of cookies, `*` at the end for any rest, that make no difference to an answer (identity-cookies.ts). */
  readonly harmlessCookies?: readonly string[]
}

/** Why a request bypasses the cache. */
export type BypassReason =
  | 'method'
  | 'no-rule'
  | 'request-content'
  | 'request-no-store'
  | 'authorization'
  | 'cookie'
  | Sensitivity

/** What the cache has to do with a request. */
export type CachingDecision =
  /** `withhold`: request fields not to send on, since the answer will be shared and must not depend on them. */
  | { readonly kind: 'read'; readonly partition: 'public'; readonly withhold: readonly string[] }
  | {
      readonly kind: 'read'
      readonly partition: 'credential'
      readonly credential: string
      readonly withhold: readonly string[]
    }
  | { readonly kind: 'bypass'; readonly reason: BypassReason }
  | { readonly kind: 'write' }

/** What is known of a request when the decision is made. */
type CachingFacts = {
  readonly method: string
  readonly fields: RequestFields
  readonly hasContent: boolean
  readonly sensitive: Sensitivity | undefined
}

const bypass = (reason: BypassReason): CachingDecision => ({ kind: 'bypass', reason })

const none: readonly string[] = []
const write: CachingDecision = { kind: 'write' }
const readPublic: CachingDecision = { kind: 'read', partition: 'public', withhold: [] }
const readWithoutCookie: CachingDecision = { kind: 'read', partition: 'public', withhold: ['cookie'] }

/** Anything that is not known to be safe counts as a write (RFC 9111 §4.4). */
const isSafe = (method: string): boolean => method === 'OPTIONS' || method === 'TRACE'

/** Does the request ask that nothing of it is kept? */
export const forbidsStoring = (fields: RequestFields): boolean =>
  fields['cache-control'] !== undefined &&
  parseCacheControl(requestField(fields, 'cache-control')).has('no-store')

/** Parts of the way that both profiles share: neither caches a read with content, or one that asks not to be stored. */
const generalReason = (facts: CachingFacts): BypassReason | undefined => {
  if (facts.hasContent) return 'request-content'
  return forbidsStoring(facts.fields) ? 'request-no-store' : undefined
}

const decideSafely = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  const { fields, sensitive } = facts
  // Only what an operator named is cached.
  if (policy.rule === undefined) return bypass('no-rule')
  if (fields['x-wp-nonce'] !== undefined) return bypass('nonce')
  if (sensitive !== undefined && isActing(sensitive)) return bypass(sensitive)
  const cookie = requestField(fields, 'cookie')
  if (cookie !== undefined && carriesIdentity(cookie, policy.harmlessCookies)) return bypass('cookie')
  const withhold = cookie === undefined ? [] : ['cookie']
  const credential =
    otherCredential(fields, policy.harmlessFields ?? none) ?? requestField(fields, 'authorization')
  if (credential !== undefined) {
    return policy.rule.scope === 'credential'
      ? { kind: 'read', partition: 'credential', credential, withhold }
      : bypass('authorization')
  }
  if (sensitive !== undefined) return bypass(sensitive)
  return cookie === undefined ? readPublic : readWithoutCookie
}

/** Read through the cache, go past it, or invalidate: decided before anything is looked up. */
export const decideCaching = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  if (facts.method !== 'GET' && facts.method !== 'HEAD')
    return isSafe(facts.method) ? bypass('method') : write
  const general = generalReason(facts)
  if (general !== undefined) return bypass(general)
  return policy.profile === 'safe' ? decideSafely(facts, policy) : readPublic
}
