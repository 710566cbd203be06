import { targetKey } from '../cache/cache-read.ts'
import { type CachePolicy, identityCookies } from '../cache/decide-caching.ts'
import { readClock, systemClock } from '../clock.ts'
import {
  type Config,
  changesOf,
  heardLifetimeMs,
  interfacesBehind,
  type ServiceConfig,
  servesEveryReader,
} from '../config/config.ts'
import { durationText } from '../config/quantities.ts'
import { outwardTagsOf } from '../downstream/downstream.ts'
import { type Access, accessError, type Identity, lackingCredential } from '../exchange/access.ts'
import { credentialFieldsOf, keyedFieldsOf } from '../http/credential-fields.ts'
import { type RequestFields, requestField, targetParts } from '../http/message.ts'
import { isKeyedByContent, routedMethods } from '../http/methods.ts'
import { hostOf } from '../http/targets.ts'
import { type Contract, type Invalid, requestTags } from '../service/contract.ts'
import {
  type Canonical,
  canonicalOf,
  decide,
  isAccessWrite,
  type Matching,
  type Routing,
  routeOf,
} from '../service/decide.ts'
import type { Found } from '../service/row.ts'
import { createServiceTable, type ServiceChoice } from '../service/service-table.ts'
import { withoutRoot } from './build-service.ts'
import { contractOf, dependsOnHost } from './contracts.ts'
import { withAskedServices } from './upstream-findings.ts'

/** The request to explain; it is not sent. */
export type ExplainedRequest = {
  readonly method: string
  /** URL, or path and query, on the public side. */
  readonly target: string
  /** Lower-case names. */
  readonly fields: RequestFields
  /** Absent: the request has none, or it is not part of what is explained. */
  readonly content?: Buffer | undefined
}

/** What would happen, aspect by aspect, in the order in which it is decided. */
export type Explanation = Readonly<Record<string, unknown>>

type Sender = {
  readonly fields: RequestFields
  readonly content: Buffer | undefined
  readonly identity: Identity | undefined
  readonly host: string
}

const jsonType = 'application/json'

const nothingYet = { status: 200, fields: [], content: Buffer.alloc(0) } as const

/** What caches in front of the gateway get. */
const forReceivers = (
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
  host: string,
): Explanation => {
  const { tagger } = contract
  const tags = requestTags(
    tagger,
    tagger.storedTags(match, canonical.arguments, nothingYet),
    partition === 'public',
    canonical.sendsUndeclared,
  )
  return {
    cacheKey: [service.name, canonical.target, partition, ...(host === '' ? [] : [host])].join(', '),
    tags,
    ...(partition === 'public'
      ? forReceivers(service, contract, [targetKey(service.name, canonical.target), ...tags])
      : {}),
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
): readonly string[] => (hasRoutes ? tagger.writtenTags(match, () => undefined, method, undefined) : [target])

/** The fields that make a request credentialed, beside Authorization; `harmlessFields` can name them. */
const credentialsIn = (
  fields: RequestFields,
  { profile, harmlessFields = [], credentialFields }: CachePolicy,
): Explanation => {
  const names = profile === 'safe' ? credentialFieldsOf(fields, harmlessFields, credentialFields) : []
  return names.length === 0 ? {} : { fieldsThatCountAsCredentials: names }
}

/** The fields whose values are part of the key; `harmlessFields` can name them. */
const keyedIn = (fields: RequestFields, { profile, harmlessFields = [] }: CachePolicy): Explanation => {
  const names = profile === 'safe' ? keyedFieldsOf(fields, harmlessFields) : []
  return names.length === 0 ? {} : { fieldsInTheKey: names }
}

/** The cookies for which a request bypasses the cache, without their values; `harmlessCookies` can name them. */
const cookiesIn = (fields: RequestFields, { harmlessCookies = [] }: CachePolicy): Explanation => {
  const cookies = identityCookies(requestField(fields, 'cookie') ?? '', harmlessCookies)
  return { cookiesThatMayChangeTheAnswer: cookies.map(({ name, meaning }) => `${name} (${meaning})`) }
}

/** The lifetime that replaces the ttl of the rule while the change feed is heard, and whether it is. */
const feedOf = (service: ServiceConfig, { rule, whileHeard }: CachePolicy): Explanation => {
  const lifetimeMs = heardLifetimeMs(service)
  if (lifetimeMs === undefined || rule === undefined) return {}
  const isHeard = whileHeard?.feed.isCurrent(readClock(systemClock))
  const now = isHeard === undefined ? '' : isHeard ? ': it is heard' : ': it is not heard'
  return { whileChangesAreHeard: `ttl ${durationText(Math.max(rule.ttlMs, lifetimeMs))}${now}` }
}

/** What a write would drop less than everything for; its content and its answer decide. */
const spared = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
  contract: Contract,
  method: string,
  path: string,
  query: string,
): Explanation => {
  const interfaces = interfacesBehind(service, services)
  const claim = contract.harmlessWrite?.(method, path, query, () => interfaces)
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
          invalidatesNothing: `${claim.by}: ${claim.text}, if its content${claim.shownBy === undefined ? ' fits' : ' and the answer fit'}`,
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
  { fields, content, identity, host }: Sender,
): Explanation => {
  const { policy, query, sensitive, meaning } = canonical
  const match = matching.kind === 'found' ? matching : undefined
  const decision = decide(contract, policy, {
    method,
    fields,
    hasContent: content !== undefined,
    effect: meaning?.effect,
    isUpgrade: false,
    sensitive,
    identity,
    sharesRoutes: () => interfacesBehind(service, services).length > 0,
  })
  const rule = policy.rule === undefined ? 'none' : ruleText(policy.rule)
  switch (decision.kind) {
    case 'write':
      return {
        cache:
          decision.sensitive === undefined
            ? 'write: invalidates'
            : `write, by ${decision.sensitive}: invalidates`,
        profile: policy.profile,
        mayInvalidate: mayInvalidate(contract, method, match, canonical),
        ...spared(service, services, contract, method, matching.path, query),
      }
    case 'read':
      return {
        cache: `read, ${decision.caching.partition}`,
        ...(decision.caching.partition === 'credential' ? credentialsIn(fields, policy) : {}),
        ...keyedIn(fields, policy),
        rule,
        ...feedOf(service, policy),
        profile: policy.profile,
        ...storedAs(service, contract, match, canonical, decision.caching.partition, host),
        ...(isKeyedByContent(method) ? { contentInTheKey: 'as sent; this explanation has none' } : {}),
      }
    case 'pass':
      return {
        cache: `bypass: ${decision.reason}`,
        ...credentialsIn(fields, policy),
        ...(decision.reason === 'cookie' ? cookiesIn(fields, policy) : {}),
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
const rowOf = ({ announces, hasRoutes, rows }: Contract, matching: Matching): Explanation => {
  if (matching.kind === 'unlisted') {
    const learns = announces ? '; routes announced by the upstream are learned (see --upstreams)' : ''
    return { row: 'unlisted', answer: `passed on${learns}` }
  }
  const { template } = matching.row
  const isListed = rows.some((row) => row.template === template)
  if (isListed) return { row: template }
  return { row: template, rowFrom: hasRoutes ? 'learned from the index of the upstream' : 'cache.rules' }
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
  const { fields, content } = sender
  const challenge = contract.challenge?.(endpoint, fields, query)
  if (challenge !== undefined) {
    const lacking = challenge === 'Bearer' ? 'no bearer token' : `no ${challenge} credential`
    return { ...row, refused: `401: ${lacking}` }
  }
  const canonical = canonicalOf(contract, method, matching, {
    query,
    contentType: requestField(fields, 'content-type') ?? (content === undefined ? undefined : jsonType),
    content,
    // A body that is not given counts as one that streams.
    fields: content === undefined ? { 'transfer-encoding': 'chunked', ...fields } : fields,
  })
  if (canonical.kind === 'invalid') return { ...row, refused: invalidity(canonical) }
  return {
    ...row,
    ...contract.describe(endpoint),
    canonicalTarget: canonical.target,
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
  fields: RequestFields,
): Promise<AccessDecision> => {
  if (access === undefined || config.access === undefined) return { explanation: {}, identity: undefined }
  const { allow, deny } = config.access
  const isWrite =
    route.kind === 'matched' &&
    isAccessWrite(contract, route.method, route.matching, contract.sensitivityOf(route.matching.path, query))
  const verdict = await access.verify(fields)
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

/** Explains a request to one of the services with the functions that decide about requests. */
export const explainAt = async (
  targets: PublicTargets,
  { method, target, fields, content }: ExplainedRequest,
): Promise<Explanation> => {
  const unrouted = unroutedMethod(method)
  if (unrouted !== undefined) return { refused: unrouted }
  const choice = targets(target, requestField(fields, 'host'))
  if (choice.kind !== 'found') {
    return { refused: `${choice.kind === 'no-service' ? 404 : 421}: ${noServiceTexts[choice.kind]}` }
  }
  const { query, path, host, services } = choice
  const { config, contract } = choice.service
  const service = {
    service: config.name,
    ...(config.hosts.length === 0 ? {} : { hosts: config.hosts.join(', ') }),
  }
  const route = routeOf(contract, { method, path, query, fields })
  const { explanation, identity } = await decideAccess(choice.service, route, query, fields)
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
    ...routed(config, services, contract, route, query, { fields, content, identity, host }),
  }
}

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
  const services = config.services.map(async (service) => ({
    config: service,
    contract: await contractOf(service, config.limits),
    access: await accessAlone(service),
  }))
  return explainAt(createPublicTargets(await Promise.all(services), config.publicUrl), request)
}

/** The same with the routes that upstreams announce and the keys of issuers; fetches each once. */
export const explainLearned = (config: Config, request: ExplainedRequest): Promise<Explanation> =>
  withAskedServices(config.services, config, (checkedServices) =>
    explainAt(
      createPublicTargets(
        checkedServices.map(({ built }) => built),
        config.publicUrl,
      ),
      request,
    ),
  )

/** The facts of a service that explanations need. */
export type AskedService = {
  readonly config: ServiceConfig
  readonly contract: Contract
  readonly access: Access | undefined
}

export type PublicTarget = {
  readonly kind: 'found'
  readonly service: AskedService
  readonly services: readonly ServiceConfig[]
  /** The host, where responses of the service depend on it; otherwise ''. */
  readonly host: string
  /** Relative to the mount, as written. */
  readonly path: string
  readonly query: string
}

/** Finds the service for a public URL or path; `host` is the requested host of a path. */
export type PublicTargets = (
  url: string,
  host?: string,
) => PublicTarget | Exclude<ServiceChoice<AskedService>, { kind: 'found' }>

/** The parts of a URL or path, as written. A path of one of the prefixes is one that a proxy in front removes. */
const readUrl = (
  url: string,
  prefixes: readonly string[],
): { readonly authority: string | undefined; readonly target: string } => {
  const bare = url.split('#', 1)[0] ?? ''
  const absolute = /^https?:\/\/([^/?]*)(.*)$/is.exec(bare)
  const prefix = prefixes.find((root) => bare.startsWith(root) && /^(?:[/?]|$)/.test(bare.slice(root.length)))
  const rest = prefix === undefined ? (absolute?.[2] ?? bare) : bare.slice(prefix.length)
  return { authority: absolute?.[1], target: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Chooses as the public port does. `publicUrl` is the top-level one. */
export const createPublicTargets = (services: readonly AskedService[], publicUrl: string): PublicTargets => {
  const located = services.map((service) => ({
    service,
    hosts: service.config.hosts,
    mount: withoutRoot(service.config.mount),
  }))
  const table = createServiceTable(located)
  const configs = services.map(({ config }) => config)
  const ownUrls = services.map(({ config }) => config.publicUrl).filter((url) => url !== '')
  const prefixes = [...new Set([publicUrl, ...ownUrls])].sort((a, b) => b.length - a.length)
  return (url, host = '') => {
    const { authority = host, target } = readUrl(url, prefixes)
    const choice = table.find(authority, target)
    if (choice.kind !== 'found') return choice
    const { service, mount } = choice.service
    const { path, query } = targetParts(target.slice(mount.length))
    return {
      kind: 'found',
      service,
      services: configs,
      host: dependsOnHost(service.config) ? hostOf(authority) : '',
      path: path === '' ? '/' : path,
      query,
    }
  }
}

export const noServiceTexts = {
  'unknown-host': 'no service answers this host; give the whole URL',
  'no-service': 'no service is mounted there; trellis routes lists the paths',
  ambiguous: 'an upstream may read this path as one of another service',
} as const

/** The one spelling under which answers to a GET are stored, or why there is none. */
type CanonicalTarget =
  | { readonly kind: 'target'; readonly target: string }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (reason: string): CanonicalTarget => ({
  kind: 'refused',
  detail: `GET of this URL is refused, so nothing is stored for it: ${reason}`,
})

/** The form under which responses to an anonymous GET, or to a QUERY with any content, of a target are stored. */
export const canonicalTarget = (
  { service: { contract }, path, query }: PublicTarget,
  method: 'GET' | 'QUERY' = 'GET',
): CanonicalTarget => {
  const route = routeOf(contract, { method, path, query, fields: {} })
  if (route.kind === 'refused') return refused(route.reason)
  const canonical = canonicalOf(contract, method, route.matching, {
    query,
    fields: undefined,
    contentType: undefined,
    content: undefined,
  })
  return canonical.kind === 'valid' ? { kind: 'target', target: canonical.target } : refused(canonical.code)
}
