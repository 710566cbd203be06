import {
  type BypassReason,
  type CachePolicy,
  type CacheRule,
  type CachingDecision,
  type CachingFacts,
  decideCaching,
  type Sensitivity,
  strictestPolicy,
  type WhileHeard,
} from '../cache/decide-caching.ts'
import type { ServiceConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import { GatewayError } from '../errors.ts'
import { inTurns } from '../http/bodies/turns.ts'
import { createRecentValues } from '../http/memo.ts'
import { type GatewayResponse, type RequestFields, targetOf } from '../http/message.ts'
import { type Effect, isSafe } from '../http/methods.ts'
import {
  type ContentMeaning,
  type Contract,
  type Invalid,
  piecesOf,
  type UndeclaredParameters,
  type Validation,
} from './contract.ts'
import type { Found, RouteFinding, Row } from './row.ts'

// Everything that decides about a request: its route, whether it is valid, its canonical form, and what is done with it. The gateway
// acts on it; batches, `explain`, purges and the warming of the cache call the same functions.

export type Incoming = {
  readonly method: string
  /** Relative to the mount, as written. */
  readonly path: string
  /** As written, without `?`. */
  readonly query: string
  readonly fields: RequestFields
}

/** What a path is of; other findings are refused. */
export type Matching = Exclude<RouteFinding, { kind: 'refused' | 'wrong-method' }>

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

/** A preflight is no request for the path (Fetch standard, CORS-preflight fetch): its upstream says who may read its responses. */
const isPreflight = (fields: RequestFields): boolean =>
  fields['access-control-request-method'] !== undefined && fields['origin'] !== undefined

/** The method that a request means, and the row that its path is of. */
export const routeOf = (
  contract: Contract,
  { method: written, path, query, fields }: Incoming,
  find: Contract['find'] = contract.find,
): Routing => {
  const meaning = contract.meaning(written, query, fields)
  if (meaning.kind === 'refused') {
    const { detail } = meaning
    return refused(detail, new GatewayError('ambiguous_request', { detail }))
  }
  const { method } = meaning
  const finding = find(method, path)
  switch (finding.kind) {
    case 'refused': {
      const detail = `Path refused: ${finding.reason}.`
      return refused(`path: ${finding.reason}`, new GatewayError('ambiguous_request', { detail }))
    }
    case 'wrong-method':
      return wrongMethod(contract, finding.row)
    case 'unlisted':
      return contract.unlisted === 'refuse'
        ? refused('404', new GatewayError('no_route'))
        : { kind: 'matched', method, matching: finding }
    case 'options':
      return contract.options === 'refused' && !isPreflight(fields)
        ? wrongMethod(contract, finding.row)
        : { kind: 'matched', method, matching: finding }
    case 'found':
      return { kind: 'matched', method, matching: finding }
  }
}

/** Headers and cookies that the route declares, without credentials. */
export type DeclaredFields = {
  /** In their one spelling. */
  readonly key: string
  /** Cookie field with the declared cookies alone: a response that is stored depends on no other. */
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
  readonly sensitive: Sensitivity | undefined
  /** Declared headers and cookies, which are part of the cache key; undefined where none are declared. */
  readonly variant: DeclaredFields | undefined
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
  readonly fields: RequestFields | undefined
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
  sensitive: contract.sensitivityOf(path, query),
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

/** Checks arguments and content against the row. */
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

/** Shorter contents are checked within a millisecond or two. */
const shortContent = 16 * 1024

/** The same for any content: a long one is read and checked in several turns of the event loop. `client`: the address that sent it. */
export const canonicalInTurns = (
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
  client: string,
): Canonical | RefusedArguments | Promise<Canonical | RefusedArguments> => {
  if (matching.kind !== 'found' || sent.content === undefined || sent.content.length <= shortContent)
    return canonicalOf(contract, method, matching, sent)
  return inTurns(piecesOf(contract.validator, validationInput(method, matching, sent)), client).then(
    (validation) => validated(contract, method, matching, validation),
  )
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
    sensitive:
      validation.hasQueryCredential === true
        ? 'api-key'
        : contract.sensitivityOf(matching.path, validation.query),
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
  /** Forwarded; then what it may have changed is dropped. `sensitive`: why a GET counts as a write. */
  | { readonly kind: 'write'; readonly sensitive: Sensitivity | undefined }

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
  readonly sensitive: Sensitivity | undefined
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
  { method, effect: byContent, sensitive, sharesRoutes }: EffectFacts,
): 'method' | 'declared' | Sensitivity | undefined => {
  if (effect === 'writes') return 'declared'
  const writes = byContent === undefined ? !isSafe(method) && effect !== 'safe' : byContent === 'write'
  if (writes) return 'method'
  const acts = sensitive !== undefined && contract.actsAsWrite(sensitive)
  return acts && (contract.hasRoutes || sharesRoutes()) ? sensitive : undefined
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
    return { kind: 'write', sensitive: reason === 'method' || reason === 'declared' ? undefined : reason }
  // It is no response, and is for one client.
  if (facts.isUpgrade) return { kind: 'pass', reason: undefined }
  const caching = decideCaching(facts, policy)
  return caching.kind === 'read' ? { kind: 'read', caching } : { kind: 'pass', reason: caching.reason }
}

/**
 * Must `access` treat a request as a write? A target that may act is one wherever its upstream is. The envelope of a batch is none:
 * each of its items is checked when it runs.
 */
export const isAccessWrite = (
  contract: Contract,
  method: string,
  matching: Matching,
  sensitive: Sensitivity | undefined,
): boolean => {
  if ('row' in matching && matching.row.handledBy === 'batch') return false
  const policy = contract.policyFor(method, matching.path)
  return isWrite(contract, policy, { method, sensitive, sharesRoutes: () => true })
}

/** Fields of clients that `access` keeps from the upstream: no response depends on them. */
export const withheldFields = ({ access }: Pick<ServiceConfig, 'access'>): readonly string[] => [
  ...(access?.apiKeys === undefined ? [] : [access.apiKeys.header]),
  ...Object.values(access?.jwt?.forward ?? {}),
]

/** The cache rules of a service, by method and path. */
export const policiesByRule = (
  service: Pick<ServiceConfig, 'cache' | 'access'>,
  whileHeard: WhileHeard | undefined,
): Contract['policyFor'] => {
  const { rules, ...cache } = service.cache
  const harmlessFields = [...cache.harmlessFields, ...withheldFields(service)]
  const settings = { ...cache, harmlessFields, harmlessResponseFields: cache.harmlessFields, whileHeard }
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
  readonly sensitive: Sensitivity | undefined
  /** Targets whose responses depend on declared fields are not remembered. */
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
export const createTargetMemo = (mostEntries: number) => {
  const recent = createRecentValues<RecalledTarget>(mostEntries)
  return {
    recall: recent.get,
    remember: (rawTarget: string, recalled: RecalledTarget) => {
      if (rawTarget.length <= longestTarget) recent.set(rawTarget, recalled)
    },
    clear: recent.clear,
  }
}

export type TargetMemo = ReturnType<typeof createTargetMemo>
