import type { CookieTable } from '../cache/cookies.ts'
import {
  type BypassReason,
  type CachePolicy,
  type CacheRule,
  type CachingDecision,
  type CachingFacts,
  decideCaching,
  type FeedLifetime,
  strictestPolicy,
  type UncacheableReason,
} from '../cache/decide-caching.ts'
import type { ServiceConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import { GatewayError } from '../errors.ts'
import { inTurns, nowOrInTurns, type Pieces } from '../http/bodies/turns.ts'
import { isPreflight } from '../http/headers/cors.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import { createRecentValues } from '../http/memo.ts'
import type { GatewayResponse } from '../http/message.ts'
import { type Effect, isSafe } from '../http/methods.ts'
import { targetOf } from '../http/targets.ts'
import {
  type ContentMeaning,
  type Contract,
  type Invalid,
  piecesOf,
  type UndeclaredParameters,
  type Validation,
} from './contract.ts'
import type { Found, RouteMatch, Row } from './row.ts'

// Everything that decides about a request: its route, whether it is valid, its canonical form, and what is done with it. The gateway
// acts on it; batches, `explain`, purges and the warming of the cache call the same functions.

export type Incoming = {
  readonly method: string
  /** Relative to the mount, as written. */
  readonly path: string
  /** As written, without `?`. */
  readonly query: string
  readonly headers: RequestHeaders
}

/** What a path matches; the other matches are refused. */
export type Matching = Exclude<RouteMatch, { kind: 'refused' | 'wrong-method' }>

type RefusedRouting = {
  readonly kind: 'refused'
  /** Where a row has the path. */
  readonly row: Row | undefined
  /** For an operator. */
  readonly reason: string
  /** For the client. */
  readonly error: GatewayError
}

export type Routing =
  | {
      readonly kind: 'matched'
      /** The method that the request means. */
      readonly method: string
      readonly matching: Matching
    }
  | RefusedRouting

const wrongMethod = (contract: Contract, row: Row): RefusedRouting => {
  const methods = new Set(row.endpoints.flatMap((endpoint) => endpoint.methods))
  const error = contract.wrongMethod(row)
  return {
    kind: 'refused',
    row,
    error,
    reason: `${error.facts.status}: the path takes ${[...methods].join(', ')}`,
  }
}

const refused = (reason: string, error: GatewayError): RefusedRouting => ({
  kind: 'refused',
  row: undefined,
  reason,
  error,
})

/** The method that a request means, and the row that its path is of. */
export const routeOf = (
  contract: Contract,
  { method: written, path, query, headers }: Incoming,
  find: Contract['find'] = contract.find,
): Routing => {
  const meaning = contract.meaning(written, query, headers)
  if (meaning.kind === 'refused') {
    const { detail } = meaning
    return refused(detail, new GatewayError('ambiguous_request', { detail }))
  }
  const { method } = meaning
  const routeMatch = find(method, path)
  switch (routeMatch.kind) {
    case 'refused': {
      const detail = `Path refused: ${routeMatch.reason}.`
      return refused(`path: ${routeMatch.reason}`, new GatewayError('ambiguous_request', { detail }))
    }
    case 'wrong-method':
      return wrongMethod(contract, routeMatch.row)
    case 'unlisted':
      return contract.unlisted === 'refuse'
        ? refused('404', new GatewayError('no_route'))
        : { kind: 'matched', method, matching: routeMatch }
    case 'options':
      return contract.options === 'refused' && !isPreflight(method, headers)
        ? wrongMethod(contract, routeMatch.row)
        : { kind: 'matched', method, matching: routeMatch }
    case 'found':
      return { kind: 'matched', method, matching: routeMatch }
  }
}

/** Headers and cookies that the route declares, without credentials. */
export type DeclaredHeaders = {
  /** In their one spelling. */
  readonly key: string
  /** Cookie header with the declared cookies alone: a response that is stored depends on no other. */
  readonly cookie: string | undefined
}

/** The one form of a request, which is keyed and sent. */
export type Canonical = {
  readonly kind: 'valid'
  /** Path and query, in public names, relative to the mount. */
  readonly target: string
  readonly query: string
  /** Typed values of the row's arguments; empty where no row applies. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** Parameters of the query that the row does not declare. */
  readonly undeclared: UndeclaredParameters | undefined
  /** They are sent, so it is unknown what the response depends on. */
  readonly sendsUndeclared: boolean
  readonly uncacheable: UncacheableReason | undefined
  /** Declared headers and cookies, which are part of the cache key; undefined where none are declared. */
  readonly variant: DeclaredHeaders | undefined
  /** From the rules for this route. */
  readonly policy: CachePolicy
  /** The content in its one spelling, for a request that is keyed; absent where it is sent as it is. */
  readonly keyedContent?: Buffer | undefined
  /** Absent where method and path alone say what the request does. */
  readonly meaning?: ContentMeaning | undefined
}

type RefusedArguments = Invalid & { readonly match: Found }

type Sent = Pick<Incoming, 'query'> & {
  /** Undefined: no argument is among them. */
  readonly headers: RequestHeaders | undefined
  /** Complete content; undefined when there is none or when it is streamed unread. */
  readonly content: Buffer | undefined
  readonly contentType: string | undefined
  /** There is content, which is streamed. */
  readonly isUnread?: boolean
}

/** A request without a row is not checked, and stays as it is. */
const uncheckedOf = (
  contract: Contract,
  method: string,
  { path }: Exclude<Matching, Found>,
  query: string,
): Canonical => ({
  kind: 'valid',
  target: targetOf(path, query),
  query,
  arguments: {},
  undeclared: undefined,
  sendsUndeclared: false,
  uncacheable: contract.uncacheableReasonOf(path, query),
  variant: undefined,
  policy: contract.policyFor(method, path),
})

const validationInput = (method: string, { row, endpoint, pathParameters }: Found, sent: Sent) => ({
  method,
  row,
  endpoint,
  pathParameters,
  ...sent,
})

/** Checks arguments and content against the row; in pieces for a long content. */
export function* canonicalInPieces(
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
): Pieces<Canonical | RefusedArguments> {
  if (matching.kind !== 'found') return uncheckedOf(contract, method, matching, sent.query)
  const input = validationInput(method, matching, sent)
  return validated(contract, method, matching, yield* piecesOf(contract.validator, input))
}

/** The same, for what has no content, or a short one. */
export const canonicalOf = (
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
): Canonical | RefusedArguments =>
  matching.kind === 'found'
    ? validated(
        contract,
        method,
        matching,
        contract.validator.validate(validationInput(method, matching, sent)),
      )
    : uncheckedOf(contract, method, matching, sent.query)

/** Most shorter contents are checked within a millisecond or two, in this turn. */
const shortContent = 16 * 1024

/**
 * The same for any content: what takes long is read and checked in several turns of the event loop, such as a content that is the first
 * one of its schema. `client`: the address that sent it.
 */
export const canonicalInTurns = (
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
  client: string,
): Canonical | RefusedArguments | Promise<Canonical | RefusedArguments> => {
  if (matching.kind !== 'found' || sent.content === undefined)
    return canonicalOf(contract, method, matching, sent)
  const work = canonicalInPieces(contract, method, matching, sent)
  return sent.content.length <= shortContent ? nowOrInTurns(work, client) : inTurns(work, client)
}

const validated = (
  contract: Contract,
  method: string,
  matching: Found,
  validation: Validation,
): Canonical | RefusedArguments => {
  if (validation.kind === 'invalid') return { ...validation, match: matching }
  const { undeclared, variant, cookie, meaning } = validation
  return {
    kind: 'valid',
    target: targetOf(matching.path, meaning?.keyedQuery ?? validation.query),
    query: validation.query,
    arguments: validation.arguments,
    undeclared,
    sendsUndeclared: undeclared?.handling === 'sent' || validation.mayShowAnything === true,
    uncacheable:
      validation.hasQueryCredential === true
        ? 'api-key'
        : contract.uncacheableReasonOf(matching.path, validation.query),
    variant: variant === undefined ? undefined : { key: variant, cookie },
    policy: meaning?.policy ?? contract.policyFor(method, matching.path),
    keyedContent: validation.keyedContent,
    meaning,
  }
}

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
  { effect }: Pick<CachePolicy, 'effect'>,
  { method, effect: byContent, uncacheable, sharesRoutes }: EffectFacts,
): 'method' | 'declared' | UncacheableReason | undefined => {
  if (effect === 'writes') return 'declared'
  const writes = byContent === undefined ? !isSafe(method) && effect !== 'safe' : byContent === 'write'
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

/** Headers of clients that `access` keeps from the upstream: no response depends on them. */
export const headersKeptByAccess = ({ access }: Pick<ServiceConfig, 'access'>): readonly string[] => [
  ...(access?.apiKeys === undefined ? [] : [access.apiKeys.header]),
  ...Object.values(access?.jwt?.forward ?? {}),
]

/** The cache rules of a service, by method and path. */
export const policiesByRule = (
  service: Pick<ServiceConfig, 'cache' | 'access'>,
  feedLifetime: FeedLifetime | undefined,
  cookieTable: CookieTable,
): Contract['policyFor'] => {
  const { rules, ...cache } = service.cache
  const harmlessHeaders = [...cache.harmlessFields, ...headersKeptByAccess(service)]
  const settings = {
    ...cache,
    harmlessFields: harmlessHeaders,
    harmlessResponseHeaders: cache.harmlessFields,
    feedLifetime,
    cookieTable,
  }
  const none: CachePolicy = { ...settings, rule: undefined }
  const byRule = new Map<CacheRule, CachePolicy>(rules.map((rule) => [rule, { ...settings, rule }]))
  return (method, path) => {
    const first = firstRules(rules, method, path)
    if (first.length > 1) return strictestPolicy(new Set(first), settings)
    const [rule] = first
    return (rule && byRule.get(rule)) ?? none
  }
}

/** Everything about a valid GET that follows from its target alone. */
export type ValidTarget = {
  readonly kind: 'valid'
  readonly matching: Found
  /** Canonical path and query, relative to the mount. */
  readonly target: string
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly sendsUndeclared: boolean
  readonly uncacheable: UncacheableReason | undefined
  /** Targets whose responses depend on declared headers are not remembered. */
  readonly variant: undefined
  readonly policy: CachePolicy
  /** Cache key of the public partition, for services whose responses do not depend on the host. */
  readonly publicKey: string
}

/** The refusal of a GET without content, Content-Type or credential: all that it depends on beside the target. */
export type RefusedTarget = {
  readonly kind: 'refused'
  readonly matching: Found
  /** For metrics and the log. */
  readonly code: string
  readonly response: GatewayResponse
}

export type RecalledTarget = ValidTarget | RefusedTarget

/** Longer ones are rare, and a flood of them could fill the memory. */
const longestTarget = 512

/**
 * Canonical forms of raw targets that were seen before, and refusals: a hit costs neither routing nor validation. Bounded in entries;
 * with `longestTarget` that bounds bytes too.
 */
export const createTargetMemo = (maxEntries: number) => {
  const recent = createRecentValues<RecalledTarget>(maxEntries)
  return {
    recall: recent.get,
    remember: (rawTarget: string, recalled: RecalledTarget) => {
      if (rawTarget.length <= longestTarget) recent.set(rawTarget, recalled)
    },
    clear: recent.clear,
  }
}

export type TargetMemo = ReturnType<typeof createTargetMemo>

/** The same where the content decides, which has been read: one that cannot be read counts by its method. */
export const isAccessWriteByContent = (
  contract: Contract,
  method: string,
  { policy, uncacheable, meaning }: Pick<Canonical, 'policy' | 'uncacheable' | 'meaning'>,
): boolean =>
  contract.effectByContent === true &&
  isWrite(contract, policy, { method, effect: meaning?.effect, uncacheable, sharesRoutes: () => true })
