import { fieldValue } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import { parseVary } from '../http/vary.ts'
import type { Freshness } from './freshness.ts'
import type { CachePolicy } from './policy.ts'
import type { ResponseControl } from './response-control.ts'
import { isHeuristicallyCacheable, isUnderstood } from './statuses.ts'

/** Why a response is not kept. */
export type NoStoreReason =
  | 'status'
  /** A 206 that does not say plainly which part it is of what. */
  | 'part'
  | 'no-store'
  | 'private'
  | 'set-cookie'
  | 'nonce'
  | 'authorization'
  | 'vary-any'
  | 'must-understand'
  | 'no-freshness'
  | 'too-large'
  /** Too much is buffered already (limits.bufferedBytes). */
  | 'no-room'
  /** Something it holds was written while it was on its way. */
  | 'overtaken'
  /** A write to something it holds may still be carried out. */
  | 'unsettled'
  /** Asked for the first time while the cache is nearly full. */
  | 'not-admitted'
  /** An error page with status 200, JSON that breaks off: no answer that its row can give. */
  | 'unreadable'
  | 'method'

/** May it be kept for later readers? */
export type StorageDecision =
  | { readonly kind: 'store' }
  | { readonly kind: 'no-store'; readonly reason: NoStoreReason }

/** What the answer was asked with. */
export type AskedWith = {
  /** `credential` when the key holds the hash of the credential. */
  readonly partition: 'public' | 'credential'
  readonly authorized: boolean
}

const no = (reason: NoStoreReason): StorageDecision => ({ kind: 'no-store', reason })
const store: StorageDecision = { kind: 'store' }

const statusReason = (
  status: number,
  policy: CachePolicy,
  control: ResponseControl,
): NoStoreReason | undefined => {
  // A 304 belongs to another response; 1xx are not final.
  if (status < 200 || status === 304) return 'status'
  if (policy.profile === 'rfc-shared-cache') {
    return control.mustUnderstand && !isUnderstood(status) ? 'must-understand' : undefined
  }
  const negative = (status === 404 || status === 410) && (policy.rule?.negativeTtlMs ?? 0) > 0
  return status === 200 || negative ? undefined : 'status'
}

const directiveReason = (
  asked: AskedWith,
  policy: CachePolicy,
  control: ResponseControl,
): NoStoreReason | undefined => {
  const override = policy.rule?.override === true
  const wide = policy.profile === 'rfc-shared-cache'
  // An override speaks for what is everybody's, or for one caller's own part; never for sharing what is private.
  if (control.isPrivate && !(override && asked.partition === 'credential')) return 'private'
  if (control.hasQualifiedPrivate && !wide) return 'private'
  // must-understand makes no-store void for a status that is understood (RFC 9111 §5.2.2.3).
  if (control.noStore && !override && !(wide && control.mustUnderstand)) return 'no-store'
  const credentialsForbid = asked.authorized && asked.partition === 'public' && !control.permitsCredentials
  return credentialsForbid ? 'authorization' : undefined
}

const fieldReason = (head: ResponseHead, policy: CachePolicy): NoStoreReason | undefined => {
  if (parseVary(head.fields).kind === 'any') return 'vary-any'
  if (policy.profile === 'rfc-shared-cache') return undefined
  if (fieldValue(head.fields, 'set-cookie') !== undefined) return 'set-cookie'
  return fieldValue(head.fields, 'x-wp-nonce') !== undefined ? 'nonce' : undefined
}

/** Stored without being fresh only for the sake of its validators. */
const freshnessReason = (
  head: ResponseHead,
  policy: CachePolicy,
  control: ResponseControl,
  freshness: Freshness,
): NoStoreReason | undefined => {
  const validator =
    fieldValue(head.fields, 'etag') !== undefined || fieldValue(head.fields, 'last-modified') !== undefined
  // no-cache asks for a validation before each reuse: without a validator nothing could ever be reused.
  const reusable = validator || !control.noCache || freshness.source === 'override'
  if (freshness.lifetimeMs > 0 && reusable) return undefined
  // Storing at all needs explicit freshness, public, or a heuristically cacheable status (RFC 9111 §3).
  const allowed =
    freshness.source === 'upstream' ||
    control.isPublic ||
    isHeuristicallyCacheable(head.status) ||
    policy.rule !== undefined
  return validator && allowed ? undefined : 'no-freshness'
}

/** Storing responses in caches (RFC 9111 §3), narrowed by the profile. */
export const decideStorage = (
  head: ResponseHead,
  asked: AskedWith,
  policy: CachePolicy,
  control: ResponseControl,
  freshness: Freshness,
): StorageDecision => {
  const reason =
    statusReason(head.status, policy, control) ??
    directiveReason(asked, policy, control) ??
    fieldReason(head, policy) ??
    freshnessReason(head, policy, control, freshness)
  return reason === undefined ? store : no(reason)
}
