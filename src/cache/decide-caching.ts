import type { Moment } from '../clock.ts'
import { parseCacheControl } from '../http/headers/caching-headers.ts'
import { credentialExpiry, keyedHeaders, otherCredential } from '../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { type Effect, isCacheable, isKeyedByContent } from '../http/methods.ts'
import { type CookiePolicy, carriesIdentity } from './cookies.ts'

const none: readonly string[] = []

/** The program runs its scheduled tasks for the request. */
const tasksReason = 'cron'

/**
 * With these a GET may change something: the route creates, the program runs scheduled tasks, takes the GET for a write, or performs an
 * action of its administration.
 */
const actingReasons = ['creating-read', 'acting-script', tasksReason, 'method-override', 'nonce'] as const

/** Why the response to a target cannot be shared, or why a GET may change something. */
export type UncacheableReason =
  | (typeof actingReasons)[number]
  | 'password'
  | 'context-edit'
  | 'non-public-status'
  | 'api-key'

const acting: ReadonlySet<UncacheableReason> = new Set(actingReasons)

export const isActing = (uncacheableReason: UncacheableReason): boolean => acting.has(uncacheableReason)

export const startsTasks = (uncacheableReason: UncacheableReason | undefined): boolean =>
  uncacheableReason === tasksReason

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

/** The lifetime that replaces the one of a rule while a change feed reports every change that bypasses the gateway. */
export type FeedLifetime = { readonly lifetimeMs: number; readonly feed: FeedLease }

/** Whether the feed of a service is being read. */
export type FeedLease = {
  isCurrent(at: Moment): boolean
  /** Milliseconds since it was read for the last time; Infinity if never. */
  endedMs(at: Moment): number
}

export type CachePolicy = CookiePolicy & {
  readonly profile: CacheProfile
  readonly rule: CacheRule | undefined
  /** Servers may read the path as one of several rules, and which is the strictest is not known: nothing is stored. */
  readonly isAmbiguous?: boolean | undefined
  /** Absent for services without a change feed. */
  readonly feedLifetime?: FeedLifetime | undefined
  /** Request headers (lower case) that make no difference to a response, whatever their names look like. */
  readonly harmlessHeaders?: readonly string[]
  /** Response headers (lower case) that carry no token of their reader though their names look so. */
  readonly harmlessResponseHeaders?: readonly string[]
  /** Request headers (lower case) that are credentials though their names do not look so. */
  readonly credentialHeaders?: readonly string[]
  /** Request headers (lower case) whose values are part of the key by the description of the service. */
  readonly declaredHeaders?: readonly string[]
  /** Then a token of the request expires, for which the response is stored; milliseconds since 1970. Absent without one. */
  readonly endsAt?: number
  /** Declared for a GET that changes something, or a POST that does not; undefined: by the method (RFC 9110 §9.2.1). */
  readonly declaredEffect?: 'writes' | 'safe' | undefined
}

export type BypassReason =
  | 'method'
  | 'no-rule'
  | 'ambiguous-path'
  | 'request-content'
  | 'request-no-store'
  | 'authorization'
  | 'cookie'
  | UncacheableReason

export type CachingDecision =
  /**
   * `strip`: request headers not to forward, since the response will be shared and must not depend on them. `keyed`: those on which it
   * may depend, as one text; undefined for most requests.
   */
  | {
      readonly kind: 'read'
      readonly partition: 'public'
      readonly strip: readonly string[]
      readonly keyed?: string | undefined
    }
  | {
      readonly kind: 'read'
      readonly partition: 'credential'
      readonly credential: string
      /** When the first token in it expires; Infinity without one. */
      readonly endsAt: number
      readonly strip: readonly string[]
      readonly keyed?: string | undefined
    }
  | { readonly kind: 'bypass'; readonly reason: BypassReason }

export type CachingFacts = {
  readonly method: string
  readonly headers: RequestHeaders
  readonly hasContent: boolean
  /** By the content of the request; absent: by its method. */
  readonly effect?: Effect | undefined
  readonly uncacheable: UncacheableReason | undefined
  /** Credentials that the gateway has verified. */
  readonly identity?:
    | {
        readonly credential: string
        /** The upstream gets a token, whose header may have any name. */
        readonly hasToken: boolean
      }
    | undefined
}

const bypass = (reason: BypassReason): CachingDecision => ({ kind: 'bypass', reason })

const readPublic: CachingDecision = { kind: 'read', partition: 'public', strip: [] }
const readWithoutCookie: CachingDecision = { kind: 'read', partition: 'public', strip: ['cookie'] }

/** The content of a QUERY is part of the key of its response (RFC 10008 §2.7), so it is read whole where a rule stores that. */
export const keepsContent = (method: string, { rule }: CachePolicy): boolean =>
  isKeyedByContent(method) && rule !== undefined

const forbidsStoring = (headers: RequestHeaders): boolean =>
  headers['cache-control'] !== undefined &&
  parseCacheControl(requestHeader(headers, 'cache-control')).has('no-store')

/** How responses to a credential are stored; undefined for a request without a credential that a response may depend on. */
const decideCredential = (
  { headers, identity }: CachingFacts,
  { harmlessHeaders, credentialHeaders }: CachePolicy,
  scope: CacheRule['scope'],
  strip: readonly string[],
): CachingDecision | undefined => {
  const requestCredential =
    otherCredential(headers, harmlessHeaders ?? none, credentialHeaders) ??
    requestHeader(headers, 'authorization')
  const verified = identity?.credential
  if (scope === 'credential' && (requestCredential !== undefined || verified !== undefined)) {
    // A header has no line break, so that no client can send the text of another client's verified credential.
    const credential =
      verified === undefined ? (requestCredential ?? '') : `${requestCredential ?? ''}\n${verified}`
    const endsAt = credentialExpiry(headers, harmlessHeaders ?? none, credentialHeaders)
    return { kind: 'read', partition: 'credential', credential, endsAt, strip }
  }
  // An API key is not forwarded: a response does not depend on it, and a `public` rule shares it among the clients that `access` admits.
  return requestCredential !== undefined || identity?.hasToken === true ? bypass('authorization') : undefined
}

/** A header that is neither a credential nor known to be harmless may change the response, whether Vary names it or not. */
const withKeyedHeaders = (
  decision: CachingDecision,
  { headers }: CachingFacts,
  policy: CachePolicy,
): CachingDecision => {
  if (decision.kind !== 'read') return decision
  const { harmlessHeaders = none, declaredHeaders } = policy
  const excepted = declaredHeaders === undefined ? harmlessHeaders : [...harmlessHeaders, ...declaredHeaders]
  const keyed = keyedHeaders(headers, excepted)
  return keyed === undefined ? decision : { ...decision, keyed }
}

const decideSafely = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  const { headers, uncacheable } = facts
  if (policy.rule === undefined) return bypass('no-rule')
  if (headers['x-wp-nonce'] !== undefined) return bypass('nonce')
  if (uncacheable !== undefined && isActing(uncacheable)) return bypass(uncacheable)
  const cookie = requestHeader(headers, 'cookie')
  if (cookie !== undefined && carriesIdentity(cookie, policy)) return bypass('cookie')
  // A signed URL may be valid once, and a key may be revoked.
  if (uncacheable === 'api-key') return bypass(uncacheable)
  const strip = cookie === undefined ? [] : ['cookie']
  const decision = decideCredential(facts, policy, policy.rule.scope, strip)
  if (decision !== undefined) return decision
  if (uncacheable !== undefined) return bypass(uncacheable)
  return cookie === undefined ? readPublic : readWithoutCookie
}

/** Whether a request that writes nothing reads through the cache, or bypasses it. */
export const decideCaching = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  const { effect } = facts
  if (effect === undefined) return decideByMethod(facts, policy)
  if (effect !== 'read') return bypass('method')
  return forbidsStoring(facts.headers)
    ? bypass('request-no-store')
    : withKeyedHeaders(decideSafely(facts, policy), facts, policy)
}

const decideByMethod = (facts: CachingFacts, policy: CachePolicy): CachingDecision => {
  const { method } = facts
  if (!isCacheable(method)) return bypass('method')
  if (policy.isAmbiguous === true) return bypass('ambiguous-path')
  if (isKeyedByContent(method)) {
    if (!keepsContent(method, policy)) return bypass('no-rule')
  } else if (facts.hasContent) return bypass('request-content')
  if (forbidsStoring(facts.headers)) return bypass('request-no-store')
  if (policy.profile === 'safe') return withKeyedHeaders(decideSafely(facts, policy), facts, policy)
  // RFC 9111 §3.5 names Authorization only: a token in another header would not restrict what is shared.
  const hasOtherToken = facts.identity?.hasToken === true && facts.headers['authorization'] === undefined
  return hasOtherToken ? bypass('authorization') : readPublic
}

/** The lower lifetimes, and the narrower scope. */
const stricter = (rule: CacheRule, other: CacheRule): CacheRule => ({
  ttlMs: Math.min(rule.ttlMs, other.ttlMs),
  staleWhileRevalidateMs: Math.min(rule.staleWhileRevalidateMs, other.staleWhileRevalidateMs),
  staleIfErrorMs: Math.min(rule.staleIfErrorMs, other.staleIfErrorMs),
  override: rule.override,
  negativeTtlMs: Math.min(rule.negativeTtlMs, other.negativeTtlMs),
  scope: rule.scope === 'credential' ? rule.scope : other.scope,
})

/** Does the upstream decide about the lifetime under both rules, or under neither, and a heuristic under both or neither? */
const isComparable =
  (profile: CachePolicy['profile'], rule: CacheRule) =>
  (other: CacheRule): boolean =>
    rule.override === other.override &&
    (profile === 'safe' || rule.override || rule.ttlMs > 0 === other.ttlMs > 0)

/**
 * The policy for a path that servers read in several ways, for each of which another rule may come first: no response lives longer or
 * is shared more widely than under any of them.
 */
export const strictestPolicy = (
  rules: ReadonlySet<CacheRule | undefined>,
  general: Omit<CachePolicy, 'rule'>,
): CachePolicy => {
  const [first, ...others] = [...rules].filter((rule) => rule !== undefined)
  if (first === undefined) return { ...general, rule: undefined }
  const { profile } = general
  if (rules.has(undefined)) return { ...general, rule: undefined, isAmbiguous: profile !== 'safe' }
  if (!others.every(isComparable(profile, first))) return { ...general, rule: undefined, isAmbiguous: true }
  return { ...general, rule: others.reduce(stricter, first) }
}
