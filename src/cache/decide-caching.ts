import type { Moment } from '../clock.ts'
import { parseCacheControl } from '../http/cache-control.ts'
import { otherCredential } from '../http/credential-fields.ts'
import { type RequestFields, requestField } from '../http/fields.ts'
import { carriesIdentity, isActing, type Sensitivity } from './sensitivity.ts'

/** `rfc-shared-cache` does all that RFC 9111 allows a shared cache; `safe` stores less (see docs/caching.md). */
export type CacheProfile = 'safe' | 'rfc-shared-cache'

/** The configuration of a route; the upstream's own directives come first. */
export type CacheRule = {
  readonly ttlMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  /** The rule comes before the upstream's directives; `private` and Set-Cookie still keep a response out of the public partition. */
  readonly override: boolean
  /** Lifetime of 404 and 410; 0 = never stored. */
  readonly negativeTtlMs: number
  readonly scope: 'public' | 'credential'
}

/** The lifetime that replaces the one of a rule while a change feed tells of every change behind the gateway. */
export type WhileHeard = { readonly lifetimeMs: number; readonly feed: FeedLease }

/** Whether the feed of a service is heard. */
export type FeedLease = {
  isCurrent(at: Moment): boolean
  /** Milliseconds since it was heard for the last time; Infinity if never. */
  endedMs(at: Moment): number
}

export type CachePolicy = {
  readonly profile: CacheProfile
  readonly rule: CacheRule | undefined
  /** Absent for services without a change feed. */
  readonly whileHeard?: WhileHeard | undefined
  /** Request fields (lower case) that are no credentials though their names look so. */
  readonly harmlessFields?: readonly string[]
  /** Names of cookies that make no difference to a response (sensitivity.ts); `*` at the end stands for any rest. */
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

export type CachingDecision =
  /** `withhold`: request fields not to forward, since the response will be shared and must not depend on them. */
  | { readonly kind: 'read'; readonly partition: 'public'; readonly withhold: readonly string[] }
  | {
      readonly kind: 'read'
      readonly partition: 'credential'
      readonly credential: string
      readonly withhold: readonly string[]
    }
  | { readonly kind: 'bypass'; readonly reason: BypassReason }
  | { readonly kind: 'write' }

type CachingFacts = {
  readonly method: string
  readonly fields: RequestFields
  readonly hasContent: boolean
  readonly sensitive: Sensitivity | undefined
  /** Credentials that the gateway has verified. */
  readonly identity?:
    | {
        readonly credential: string
        /** The upstream gets a token, whose field may have any name. */
        readonly hasToken: boolean
      }
    | undefined
}

const bypass = (reason: BypassReason): CachingDecision => ({ kind: 'bypass', reason })

const none: readonly string[] = []
const write: CachingDecision = { kind: 'write' }
const readPublic: CachingDecision = { kind: 'read', partition: 'public', withhold: [] }
const readWithoutCookie: CachingDecision = { kind: 'read', partition: 'public', withhold: ['cookie'] }

/** An unknown method counts as a write (RFC 9111 §4.4). */
const isSafe = (method: string): boolean => method === 'OPTIONS' || method === 'TRACE'

export const forbidsStoring = (fields: RequestFields): boolean =>
  fields['cache-control'] !== undefined &&
  parseCacheControl(requestField(fields, 'cache-control')).has('no-store')

/** In both profiles. */
const generalReason = (facts: CachingFacts): BypassReason | undefined => {
  if (facts.hasContent) return 'request-content'
  return forbidsStoring(facts.fields) ? 'request-no-store' : undefined
}

/** What a credential allows; undefined without any that a response may depend on. */
const decideCredential = (
  { fields, identity }: CachingFacts,
  { harmlessFields }: CachePolicy,
  scope: CacheRule['scope'],
  withhold: readonly string[],
): CachingDecision | undefined => {
  const sent = otherCredential(fields, harmlessFields ?? none) ?? requestField(fields, 'authorization')
  const verified = identity?.credential
  if (scope === 'credential' && (sent !== undefined || verified !== undefined)) {
    // A field has no line break, so that no client can send the text of another client's verified credential.
    const credential = verified === undefined ? (sent ?? '') : `${sent ?? ''}\n${verified}`
    return { kind: 'read', partition: 'credential', credential, withhold }
  }
  // An API key is not forwarded: a response does not depend on it, and a `public` rule shares it among the clients that `access` admits.
  return sent !== undefined || identity?.hasToken === true ? bypass('authorization') : undefined
}

const decideSafely = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  const { fields, sensitive } = facts
  if (policy.rule === undefined) return bypass('no-rule')
  if (fields['x-wp-nonce'] !== undefined) return bypass('nonce')
  if (sensitive !== undefined && isActing(sensitive)) return bypass(sensitive)
  const cookie = requestField(fields, 'cookie')
  if (cookie !== undefined && carriesIdentity(cookie, policy.harmlessCookies)) return bypass('cookie')
  const withhold = cookie === undefined ? [] : ['cookie']
  const decision = decideCredential(facts, policy, policy.rule.scope, withhold)
  if (decision !== undefined) return decision
  if (sensitive !== undefined) return bypass(sensitive)
  return cookie === undefined ? readPublic : readWithoutCookie
}

/** Whether a request reads through the cache, bypasses it, or invalidates as a write. */
export const decideCaching = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  if (facts.method !== 'GET' && facts.method !== 'HEAD')
    return isSafe(facts.method) ? bypass('method') : write
  const general = generalReason(facts)
  if (general !== undefined) return bypass(general)
  if (policy.profile === 'safe') return decideSafely(facts, policy)
  // RFC 9111 §3.5 names Authorization only: a token in another field would not restrict what is shared.
  const hasOtherToken = facts.identity?.hasToken === true && facts.fields['authorization'] === undefined
  return hasOtherToken ? bypass('authorization') : readPublic
}
