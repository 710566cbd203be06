import { shownTags, targetKey } from '../cache/cache-key.ts'
import { identityCookies } from '../cache/cookies.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import { usualSteps } from '../cache/events.ts'
import { readClock, systemClock } from '../clock.ts'
import {
  type Config,
  changesOf,
  feedLifetimeMs,
  interfacesBehind,
  type ServiceConfig,
  servesEveryReader,
} from '../config/config.ts'
import { durationText } from '../config/quantities.ts'
import { outwardTagsOf } from '../downstream/downstream.ts'
import { type Access, accessError, type Identity, lackingCredential } from '../exchange/access.ts'
import { usualWriteSteps } from '../exchange/events.ts'
import { credentialHeadersOf, keyedHeadersOf } from '../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { isKeyedByContent, routedMethods } from '../http/methods.ts'
import { Redaction } from '../http/redaction.ts'
import { type Canonical, canonicalOf } from '../service/canonical.ts'
import type { Contract, Invalid } from '../service/contract.ts'
import { decide, isAccessWrite, isAccessWriteByContent } from '../service/decide.ts'
import { type Matching, type Routing, routeOf } from '../service/route-request.ts'
import type { Found } from '../service/row.ts'
import { requestTags } from '../service/tagger.ts'
import {
  type AskedService,
  createPublicTargets,
  noServiceTexts,
  type PublicTargets,
} from './admin/public-targets.ts'
import { contractOf } from './contracts.ts'
import { type ExplainedRequest, type Explanation, explanationSentences } from './explain-sentences.ts'
import { withoutRoot } from './snapshot/build-service.ts'
import { withAskedServices } from './upstream-issues.ts'

type Sender = {
  readonly headers: RequestHeaders
  readonly content: Buffer | undefined
  readonly identity: Identity | undefined
  readonly host: string
  /** An explanation is copied into tickets. */
  readonly redaction: Redaction
}

const jsonType = 'application/json'

const nothingYet = { status: 200, headers: [], content: Buffer.alloc(0) } as const

/** What caches in front of the gateway get. */
const forDownstream = (
  { name, downstream, access }: ServiceConfig,
  { tagger: { everything } }: Contract,
  tags: readonly string[],
): Explanation => {
  if (downstream === undefined || !servesEveryReader({ access })) return {}
  const outward = outwardTagsOf(name, downstream, everything)
  return { downstream: { field: downstream.tags, tags: outward.of(tags), coarseTags: outward.coarse } }
}

/** Key and tags of the stored response, as far as the request determines them. */
const storedAs = (
  service: ServiceConfig,
  contract: Contract,
  match: Found | undefined,
  canonical: Canonical,
  partition: string,
  { host, redaction }: Sender,
): Explanation => {
  const rowTags = contract.tagger.storedTags(match, canonical.arguments, nothingYet)
  const { target, sendsUndeclared } = canonical
  const isPublic = partition === 'public'
  const key = targetKey(service.name, target)
  const tags = requestTags(contract, rowTags, { service: service.name, target, isPublic, sendsUndeclared })
  return {
    cacheKey: [service.name, redaction.target(target), partition, ...(host === '' ? [] : [host])].join(', '),
    tags: shownTags(tags, [key]).map((tag) => redaction.target(tag)),
    ...(isPublic ? forDownstream(service, contract, [key, ...tags]) : {}),
  }
}

const undeclaredOf = ({ undeclared }: Canonical): Explanation =>
  undeclared === undefined
    ? {}
    : {
        [undeclared.handling === 'sent' ? 'undeclaredParametersSent' : 'undeclaredParametersStripped']:
          undeclared.names.join(', '),
      }

/** Tags that the write invalidates, as far as the request determines them: its response may narrow or extend them. */
const mayInvalidate = (
  { hasRoutes, tagger }: Contract,
  method: string,
  match: Found | undefined,
  { target }: Canonical,
  redaction: Redaction,
): readonly string[] => {
  const tags = hasRoutes ? tagger.writtenTags(match, () => undefined, method, undefined) : [target]
  return tags.map((tag) => redaction.target(tag))
}

/** The headers that make a request credentialed, beside Authorization; `harmlessHeaders` can name them. */
const credentialsIn = (
  headers: RequestHeaders,
  { profile, harmlessHeaders = [], credentialHeaders }: CachePolicy,
): Explanation => {
  const names = profile === 'safe' ? credentialHeadersOf(headers, harmlessHeaders, credentialHeaders) : []
  return names.length === 0 ? {} : { fieldsThatCountAsCredentials: names }
}

/** The headers whose values are part of the key; `harmlessHeaders` can name them. */
const keyedIn = (headers: RequestHeaders, { profile, harmlessHeaders = [] }: CachePolicy): Explanation => {
  const names = profile === 'safe' ? keyedHeadersOf(headers, harmlessHeaders) : []
  return names.length === 0 ? {} : { headersInTheKey: names }
}

/** The cookies for which a request bypasses the cache, without their values; `harmlessCookies` can name them. */
const cookiesIn = (headers: RequestHeaders, policy: CachePolicy): Explanation => {
  const cookies = identityCookies(requestHeader(headers, 'cookie') ?? '', policy)
  return { cookiesThatMayChangeTheAnswer: cookies.map(({ name, meaning }) => `${name} (${meaning})`) }
}

/** The lifetime that replaces the ttl of the rule while the change feed is read, and whether it is. */
const feedOf = (service: ServiceConfig, { rule, feedLifetime }: CachePolicy): Explanation => {
  const lifetimeMs = feedLifetimeMs(service)
  if (lifetimeMs === undefined || rule === undefined) return {}
  const isCurrent = feedLifetime?.feed.isCurrent(readClock(systemClock))
  const now = isCurrent === undefined ? '' : isCurrent ? ': it is being read' : ': it cannot be read'
  return { whileChangesAreHeard: `ttl ${durationText(Math.max(rule.ttlMs, lifetimeMs))}${now}` }
}

/** What a write would drop less than everything for; its content and its response decide. */
const spared = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
  contract: Contract,
  method: string,
  path: string,
  query: string,
): Explanation => {
  const interfaces = interfacesBehind(service, services)
  const claim = contract.noChangeClaim?.(method, path, query, () => interfaces)
  const hasCompanion = [service, ...services].some(
    (candidate) =>
      (candidate === service || interfaces.includes(withoutRoot(candidate.upstream.basePath))) &&
      changesOf(candidate) !== undefined,
  )
  return {
    ...(hasCompanion ? { withCompanion: 'invalidates what the companion states' } : {}),
    ...(claim === undefined
      ? {}
      : {
          invalidatesNothing: `${claim.by}: ${claim.text}, if its content${claim.confirmedBy === undefined ? ' fits' : ' and the answer fit'}`,
        }),
  }
}

const ruleText = ({ ttlMs, ...rule }: NonNullable<CachePolicy['rule']>): string =>
  [
    `ttl ${durationText(ttlMs)}`,
    `staleWhileRevalidate ${durationText(rule.staleWhileRevalidateMs)}`,
    `staleIfError ${durationText(rule.staleIfErrorMs)}`,
  ].join(', ')

const cachingOf = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
  contract: Contract,
  method: string,
  matching: Matching,
  canonical: Canonical,
  sender: Sender,
): Explanation => {
  const { headers, content, identity } = sender
  const { policy, query, uncacheable, meaning } = canonical
  const match = matching.kind === 'found' ? matching : undefined
  const decision = decide(contract, policy, {
    method,
    headers,
    hasContent: content !== undefined,
    effect: meaning?.effect,
    isUpgrade: false,
    uncacheable,
    identity,
    sharesRoutes: () => interfacesBehind(service, services).length > 0,
  })
  const rule = policy.rule === undefined ? 'none' : ruleText(policy.rule)
  switch (decision.kind) {
    case 'write':
      return {
        cache:
          decision.uncacheable === undefined
            ? 'write: invalidates'
            : `write, by ${decision.uncacheable}: invalidates`,
        profile: policy.profile,
        stepsOfAWrite: usualWriteSteps.whole.join(', '),
        stepsOfAStreamedWrite: usualWriteSteps.streamed.join(', '),
        mayInvalidate: mayInvalidate(contract, method, match, canonical, sender.redaction),
        ...spared(service, services, contract, method, matching.path, query),
      }
    case 'read':
      return {
        cache: `read, ${decision.caching.partition}`,
        ...(decision.caching.partition === 'credential' ? credentialsIn(headers, policy) : {}),
        ...keyedIn(headers, policy),
        rule,
        ...feedOf(service, policy),
        profile: policy.profile,
        ...storedAs(service, contract, match, canonical, decision.caching.partition, sender),
        stepsOfAHit: usualSteps.hit.join(', '),
        stepsOfAMiss: usualSteps.miss.join(', '),
        ...(isKeyedByContent(method) ? { contentInTheKey: 'as sent; this explanation has none' } : {}),
      }
    case 'pass':
      return {
        cache: `bypass: ${decision.reason}`,
        ...credentialsIn(headers, policy),
        ...(decision.reason === 'cookie' ? cookiesIn(headers, policy) : {}),
        rule,
        profile: policy.profile,
      }
  }
}

/** Of a refusal in the shape of RFC 9457. */
type ErrorMember = { readonly pointer: string; readonly parameter?: string; readonly detail: string }

/** The message names the arguments; both contracts have one in their errors. */
const invalidity = ({ status, code, body }: Invalid): string => {
  const { message, errors } = body as { readonly message?: string; readonly errors?: readonly ErrorMember[] }
  const [first] = errors ?? []
  const fault =
    first && `${first.parameter ?? 'body'} ${first.pointer === '#' ? '' : `${first.pointer} `}${first.detail}`
  const text = message ?? fault
  return `${status} ${code}${text === undefined ? '' : `: ${text}`}`
}

/** Where the row comes from, or what becomes of a path without a row. */
const rowOf = ({ hasIndex, hasRoutes, rows }: Contract, matching: Matching): Explanation => {
  if (matching.kind === 'unlisted') {
    const learns = hasIndex ? '; routes announced by the upstream are learned (see --upstreams)' : ''
    return { row: 'unlisted', answer: `passed on${learns}` }
  }
  const { template } = matching.row
  const isListed = rows.some((row) => row.template === template)
  if (isListed) return { row: template }
  return { row: template, rowFrom: hasRoutes ? 'learned from the index of the upstream' : 'cache.rules' }
}

const canonicalRequest = (
  contract: Contract,
  method: string,
  matching: Matching,
  query: string,
  { headers, content }: Pick<Sender, 'headers' | 'content'>,
): ReturnType<typeof canonicalOf> =>
  canonicalOf(contract, method, matching, {
    query,
    contentType: requestHeader(headers, 'content-type') ?? (content === undefined ? undefined : jsonType),
    content,
    // A body that is not given counts as one that streams.
    headers: content === undefined ? { 'transfer-encoding': 'chunked', ...headers } : headers,
  })

/** Is it a write for `access`? */
const needsWriteAccess = (
  contract: Contract,
  { method, matching }: Extract<Routing, { kind: 'matched' }>,
  query: string,
  sender: Pick<Sender, 'headers' | 'content'>,
): boolean => {
  if (isAccessWrite(contract, method, matching, contract.uncacheableReasonOf(matching.path, query)))
    return true
  if (contract.effectByContent !== true || matching.kind !== 'found') return false
  const canonical = canonicalRequest(contract, method, matching, query, sender)
  return canonical.kind === 'valid' && isAccessWriteByContent(contract, method, canonical)
}

const routed = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
  contract: Contract,
  { method, matching }: Extract<Routing, { kind: 'matched' }>,
  query: string,
  sender: Sender,
): Explanation => {
  const row = rowOf(contract, matching)
  if (matching.kind === 'unlisted') return row
  if (matching.kind === 'options')
    return { ...row, answer: contract.options === 'own' ? 'schema of the route' : 'passed on' }
  const { endpoint } = matching
  const { headers, redaction } = sender
  const challenge = contract.challenge?.(endpoint, headers, query)
  if (challenge !== undefined) {
    const lacking = challenge === 'Bearer' ? 'no bearer token' : `no ${challenge} credential`
    return { ...row, refused: `401: ${lacking}` }
  }
  const canonical = canonicalRequest(contract, method, matching, query, sender)
  if (canonical.kind === 'invalid') return { ...row, refused: invalidity(canonical) }
  return {
    ...row,
    ...contract.describe(endpoint),
    canonicalTarget: redaction.target(canonical.target),
    ...undeclaredOf(canonical),
    ...(canonical.meaning === undefined ? {} : { operation: canonical.meaning.operation }),
    ...(matching.row.handledBy === 'upstream'
      ? cachingOf(service, services, contract, method, matching, canonical, sender)
      : { answer: 'by the gateway' }),
  }
}

const listed = (addresses: readonly string[]): string =>
  addresses.length === 0 ? 'none' : addresses.join(', ')

const verifiedOf = ({ apiKey, claims, hasToken }: Identity): string =>
  [
    hasToken ? `token of ${claims.get('sub') ?? 'no sub'}` : undefined,
    apiKey === undefined ? undefined : `API key ${apiKey}`,
  ]
    .filter((text) => text !== undefined)
    .join(', ')

type AccessDecision = { readonly explanation: Explanation; readonly identity: Identity | undefined }

/** What `access` decides about the credentials of a request; its address is not known here. */
const decideAccess = async (
  { config, contract, access }: AskedService,
  route: Routing,
  query: string,
  sender: Pick<Sender, 'headers' | 'content'>,
): Promise<AccessDecision> => {
  if (access === undefined || config.access === undefined) return { explanation: {}, identity: undefined }
  const { allow, deny } = config.access
  const isWrite = route.kind === 'matched' && needsWriteAccess(contract, route, query, sender)
  const verdict = await access.verify(sender.headers)
  const identity = verdict.kind === 'verified' ? verdict.identity : undefined
  const refusal = verdict.kind === 'refused' ? verdict.reason : lackingCredential(access, identity, isWrite)
  const admitted =
    identity === undefined ? 'admitted without a credential' : `admitted: ${verifiedOf(identity)}`
  return {
    explanation: {
      access:
        refusal === undefined ? admitted : `${accessError(config.name, refusal).facts.status}: ${refusal}`,
      ...(allow.length + deny.length === 0
        ? {}
        : { addressesNotCheckedHere: `allow ${listed(allow)}; deny ${listed(deny)}` }),
    },
    identity,
  }
}

/** What the listener and the router do with a method that no service gets. */
const unroutedMethod = (method: string): string | undefined => {
  if (routedMethods.includes(method)) return undefined
  if (method === 'CONNECT') return 'CONNECT asks for a tunnel: the connection is closed'
  if (method === 'TRACE')
    return '404: TRACE is not routed, since its response would show what the gateway adds'
  return `400: no HTTP method has this name${routedMethods.includes(method.toUpperCase()) ? '; methods are in capitals' : ''}`
}

const decided = async (
  targets: PublicTargets,
  { method, target, headers, content }: ExplainedRequest,
  redaction: Redaction,
): Promise<Explanation> => {
  const unrouted = unroutedMethod(method)
  if (unrouted !== undefined) return { refused: unrouted }
  const choice = targets(target, requestHeader(headers, 'host'))
  if (choice.kind !== 'found') {
    return { refused: `${choice.kind === 'no-service' ? 404 : 421}: ${noServiceTexts[choice.kind]}` }
  }
  const { query, path, host, services } = choice
  const { config, contract } = choice.service
  const service = {
    service: config.name,
    ...(config.hosts.length === 0 ? {} : { hosts: config.hosts.join(', ') }),
  }
  const route = routeOf(contract, { method, path, query, headers })
  const { explanation, identity } = await decideAccess(choice.service, route, query, { headers, content })
  if (route.kind === 'refused') {
    const { reason, row } = route
    return {
      ...service,
      ...explanation,
      ...(row === undefined ? {} : { row: row.template }),
      refused: reason,
    }
  }
  return {
    ...service,
    method: route.method,
    ...explanation,
    ...routed(config, services, contract, route, query, { headers, content, identity, host, redaction }),
  }
}

/** Explains a request to one of the services with the functions that decide about requests, in words and by aspects. */
export const explainAt = async (
  targets: PublicTargets,
  request: ExplainedRequest,
  redaction: Redaction,
): Promise<Explanation> => {
  const explanation = await decided(targets, request, redaction)
  const target = redaction.target(request.target)
  return { inWords: explanationSentences({ method: request.method, target }, explanation), ...explanation }
}

const declaredIn = (services: readonly Pick<AskedService, 'contract'>[]): Redaction =>
  new Redaction(services.flatMap(({ contract }) => contract.secretParameters))

/** No key: the ones of a URL are not fetched without `--upstreams`. */
const noKeys = '{"keys":[]}'

const accessAlone = async ({ name, access }: ServiceConfig): Promise<Access | undefined> => {
  if (access === undefined) return undefined
  const { createAccess } = await import('../server/access.ts')
  const jwt = access.jwt && { ...access.jwt, jwks: /^http/i.test(access.jwt.jwks) ? noKeys : access.jwt.jwks }
  return createAccess({ ...access, jwt }, { service: name, clock: systemClock, report: () => {} }, undefined)
}

/** Explains a request from the configuration alone, without an upstream. */
export const explain = async (config: Config, request: ExplainedRequest): Promise<Explanation> => {
  const building = config.services.map(async (service) => ({
    config: service,
    contract: await contractOf(service, config.limits),
    access: await accessAlone(service),
  }))
  const services = await Promise.all(building)
  return explainAt(createPublicTargets(services, config.publicUrl), request, declaredIn(services))
}

/** The same with the routes that upstreams announce and the keys of issuers; fetches each once. */
export const explainLearned = (config: Config, request: ExplainedRequest): Promise<Explanation> =>
  withAskedServices(config.services, config, (checkedServices) => {
    const services = checkedServices.map(({ built }) => built)
    return explainAt(createPublicTargets(services, config.publicUrl), request, declaredIn(services))
  })
