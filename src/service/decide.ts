import {
  type BypassReason,
  type CachePolicy,
  type CachingDecision,
  type CachingFacts,
  decideCaching,
  type UncacheableReason,
} from '../cache/decide-caching.ts'
import { type Effect, isSafe } from '../http/methods.ts'
import type { Canonical } from './canonical.ts'
import type { Contract } from './contract.ts'
import type { Matching } from './route-request.ts'
import type { Row } from './row.ts'

/** What is done with a valid request; but for `own`, the kind is the effect of the request. */
export type Decision =
  /** The gateway makes the response. */
  | { readonly kind: 'own'; readonly what: 'index' | 'options' | 'batch'; readonly row: Row }
  /** Answered from the cache, or forwarded and stored. */
  | { readonly kind: 'read'; readonly caching: Extract<CachingDecision, { readonly kind: 'read' }> }
  /** Forwarded, not stored; it changes nothing. `reason` is undefined for a WebSocket. */
  | { readonly kind: 'pass'; readonly reason: BypassReason | undefined }
  /** Forwarded; then what it may have changed is dropped. `uncacheable`: why a GET counts as a write. */
  | { readonly kind: 'write'; readonly uncacheable: UncacheableReason | undefined }

/** What the decision depends on beside the rules. */
type DecisionFacts = CachingFacts & EffectFacts & { readonly isUpgrade: boolean }

/** The response that the gateway makes itself; undefined for all other requests. */
export const ownOf = (
  matching: Matching,
  makes: { readonly documents: boolean; readonly batch: boolean },
): Extract<Decision, { readonly kind: 'own' }> | undefined => {
  if (matching.kind === 'unlisted') return undefined
  const { kind, row } = matching
  if (kind === 'options') return makes.documents ? { kind: 'own', what: 'options', row } : undefined
  if (row.handledBy === 'discovery') return makes.documents ? { kind: 'own', what: 'index', row } : undefined
  return row.handledBy === 'batch' && makes.batch ? { kind: 'own', what: 'batch', row } : undefined
}

type EffectFacts = {
  readonly method: string
  /** By the content of the request; absent: by its method. */
  readonly effect?: Effect | undefined
  readonly uncacheable: UncacheableReason | undefined
  /** Does one of the services at the same upstream have routes? */
  sharesRoutes(): boolean
}

/**
 * Why a request is a write; undefined: it is none. A safe method writes where the service declares that, or where something in the
 * target acts: through a service without routes only if one with routes has the same upstream.
 */
const writeReason = (
  contract: Pick<Contract, 'actsAsWrite' | 'hasRoutes'>,
  { declaredEffect }: Pick<CachePolicy, 'declaredEffect'>,
  { method, effect: byContent, uncacheable, sharesRoutes }: EffectFacts,
): 'method' | 'declared' | UncacheableReason | undefined => {
  if (declaredEffect === 'writes') return 'declared'
  const writes =
    byContent === undefined ? !isSafe(method) && declaredEffect !== 'safe' : byContent === 'write'
  if (writes) return 'method'
  const acts = uncacheable !== undefined && contract.actsAsWrite(uncacheable)
  return acts && (contract.hasRoutes || sharesRoutes()) ? uncacheable : undefined
}

/** Does the request change what others read? For decisions before the request is complete: `access`, the order of a batch. */
export const isWrite = (...facts: Parameters<typeof writeReason>): boolean =>
  writeReason(...facts) !== undefined

/** What is done with a request that the gateway does not answer itself. */
export const decide = (
  contract: Contract,
  policy: CachePolicy,
  facts: DecisionFacts,
): Exclude<Decision, { readonly kind: 'own' }> => {
  const reason = writeReason(contract, policy, facts)
  if (reason !== undefined)
    return { kind: 'write', uncacheable: reason === 'method' || reason === 'declared' ? undefined : reason }
  // It is no response, and is for one client.
  if (facts.isUpgrade) return { kind: 'pass', reason: undefined }
  const caching = decideCaching(facts, policy)
  return caching.kind === 'read' ? { kind: 'read', caching } : { kind: 'pass', reason: caching.reason }
}

/**
 * Must `access` treat a request as a write, before its content is read? A target that may act is one wherever its upstream is. The
 * envelope of a batch is none: each of its items is checked when it runs.
 */
export const isAccessWrite = (
  contract: Contract,
  method: string,
  matching: Matching,
  uncacheable: UncacheableReason | undefined,
): boolean => {
  if ('row' in matching && matching.row.handledBy === 'batch') return false
  if (contract.effectByContent === true && matching.kind === 'found') return false
  const policy = contract.policyFor(method, matching.path)
  return isWrite(contract, policy, { method, uncacheable, sharesRoutes: () => true })
}

/** The same where the content decides, which has been read: one that cannot be read counts by its method. */
export const isAccessWriteByContent = (
  contract: Contract,
  method: string,
  { policy, uncacheable, meaning }: Pick<Canonical, 'policy' | 'uncacheable' | 'meaning'>,
): boolean =>
  contract.effectByContent === true &&
  isWrite(contract, policy, { method, effect: meaning?.effect, uncacheable, sharesRoutes: () => true })
