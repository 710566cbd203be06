import { type CachePolicy, decideCaching } from '../cache/decide-caching.ts'
import { identityCookies, sensitivityOf } from '../cache/sensitivity.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import type { Found } from '../contracts/finding.ts'
import type { Row } from '../contracts/row.ts'
import type { Validation } from '../contracts/validation.ts'
import { credentialFieldsOf, hasBearer } from '../http/credential-fields.ts'
import { type RequestFields, requestField } from '../http/fields.ts'
import { hostOf } from '../http/hosts.ts'
import { requestMeaning } from '../request/request-meaning.ts'
import { createServiceTable, type ServiceChoice } from '../request/service-table.ts'
import { dependsOnHost, type ServiceContract, serviceContract } from './service-contract.ts'
import { withAskedServices } from './upstream-findings.ts'

/** The facts of a service that explanations need. */
export type AskedService = { readonly config: ServiceConfig; readonly contract: ServiceContract }

/** Where a public URL leads. */
type PublicTarget = {
  readonly kind: 'found'
  readonly service: AskedService
  /** The host, where responses of the service depend on it; otherwise ''. */
  readonly host: string
  /** Relative to the mount, as written. */
  readonly path: string
  readonly query: string
}

/** Finds the service that a public URL or path leads to; `host` is what a path is asked of. */
export type PublicTargets = (
  url: string,
  host?: string,
) => PublicTarget | Exclude<ServiceChoice<AskedService>, { kind: 'found' }>

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

/** The parts of a URL or path, as written. A path of one of the prefixes is one that a proxy in front removes. */
const readUrl = (
  url: string,
  prefixes: readonly string[],
): { readonly authority: string | undefined; readonly target: string } => {
  const bare = url.split('#', 1)[0] ?? ''
  const absolute = /^https?:\/\/([^/?]*)(.*)$/is.exec(bare)
  const prefix = prefixes.find((one) => bare.startsWith(one) && /^(?:[/?]|$)/.test(bare.slice(one.length)))
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
  const ownUrls = services.map(({ config }) => config.publicUrl).filter((url) => url !== '')
  const prefixes = [...new Set([publicUrl, ...ownUrls])].sort((a, b) => b.length - a.length)
  return (url, host = '') => {
    const { authority = host, target } = readUrl(url, prefixes)
    const choice = table.find(authority, target)
    if (choice.kind !== 'found') return choice
    const { service, mount } = choice.service
    const relative = target.slice(mount.length)
    const at = relative.indexOf('?')
    const path = at === -1 ? relative : relative.slice(0, at)
    return {
      kind: 'found',
      service,
      host: dependsOnHost(service.config) ? hostOf(authority) : '',
      path: path === '' ? '/' : path,
      query: at === -1 ? '' : relative.slice(at + 1),
    }
  }
}

/** Why a URL leads to no service. */
export const noServiceTexts = {
  'unknown-host': 'no service answers this host; give the whole URL',
  'no-service': 'no service is mounted there',
} as const

/** The one spelling under which answers to a GET are stored, or why there is none. */
type CanonicalTarget =
  | { readonly kind: 'target'; readonly target: string }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (detail: string): CanonicalTarget => ({ kind: 'refused', detail })

const joined = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`)

/** Brings a target to its canonical form by the functions that do it for requests. */
export const canonicalTarget = ({ service, path, query }: PublicTarget): CanonicalTarget => {
  const { config, contract } = service
  if (config.contract === 'site' && requestMeaning('GET', query, {}).kind === 'refused') {
    return refused('GET of this URL is refused, so nothing is stored for it: it overrides its method or path')
  }
  const finding = contract.find('GET', path)
  switch (finding.kind) {
    case 'refused':
      return refused(`this path is refused, so nothing is stored for it: ${finding.reason}`)
    case 'wrong-method':
    case 'options':
      return refused('this path has no GET, so nothing is stored for it')
    case 'unlisted':
      return { kind: 'target', target: joined(finding.path, query) }
    case 'found': {
      const { row, endpoint, pathParameters } = finding
      const request = { method: 'GET', row, endpoint, pathParameters, query }
      const validation = contract.validator.validate({
        ...request,
        contentType: undefined,
        content: undefined,
      })
      return validation.kind === 'valid'
        ? { kind: 'target', target: joined(finding.path, validation.query) }
        : refused(`GET of this URL is refused, so nothing is stored for it: ${validation.code}`)
    }
  }
}

/** The request to explain; it is not sent. */
export type ExplainedRequest = {
  readonly method: string
  /** URL, or path and query, on the public side. */
  readonly target: string
  /** Lower-case names. */
  readonly fields: RequestFields
}

/** What would happen, aspect by aspect, in the order in which it is decided. */
export type Explanation = Readonly<Record<string, unknown>>

type Valid = Extract<Validation, { kind: 'valid' }>

const nothingYet = { status: 200, fields: [], content: Buffer.alloc(0) } as const

/** Key and tags of the stored response, as far as the request determines them. */
const storedAs = (
  service: ServiceConfig,
  contract: ServiceContract,
  found: Found,
  valid: Valid,
  partition: string,
  host: string,
): Explanation => ({
  'cache key': [service.name, targetOf(found, valid), partition, ...(host === '' ? [] : [host])].join(', '),
  tags: [
    ...contract.tagger.storedTags(found, valid.arguments, nothingYet),
    ...[
      partition === 'public' ? undefined : contract.tagger.callers,
      valid.undeclared?.handling === 'sent' ? contract.tagger.undeclared : undefined,
    ].filter((tag) => tag !== undefined),
  ],
})

const targetOf = ({ path }: Found, { query }: Valid): string => (query === '' ? path : `${path}?${query}`)

const undeclaredOf = ({ undeclared }: Valid): Explanation =>
  undeclared === undefined
    ? {}
    : { [`undeclared parameters, ${undeclared.handling}`]: undeclared.names.join(', ') }

/** Tags that the write invalidates, as far as the request determines them: its response may narrow or extend them. */
const mayInvalidate = (
  { contract: kind }: ServiceConfig,
  { tagger }: ServiceContract,
  method: string,
  found: Found,
  valid: Valid,
): readonly string[] =>
  kind === 'open' ? [targetOf(found, valid)] : tagger.writtenTags(found, () => undefined, method, undefined)

/** The fields that make a request credentialed, beside Authorization; `harmlessFields` can name them. */
const credentialsIn = (fields: RequestFields, { profile, harmlessFields = [] }: CachePolicy): Explanation => {
  const names = profile === 'safe' ? credentialFieldsOf(fields, harmlessFields) : []
  return names.length === 0 ? {} : { 'fields that count as credentials': names }
}

/** The cookies for which a request bypasses the cache, without their values; `harmlessCookies` can name them. */
const cookiesIn = (fields: RequestFields, { harmlessCookies = [] }: CachePolicy): Explanation => {
  const cookies = identityCookies(requestField(fields, 'cookie') ?? '', harmlessCookies)
  return { 'cookies that may change the answer': cookies.map(({ name, meaning }) => `${name} (${meaning})`) }
}

const cachingOf = (
  service: ServiceConfig,
  contract: ServiceContract,
  method: string,
  found: Found,
  valid: Valid,
  fields: RequestFields,
  host: string,
): Explanation => {
  const { query } = valid
  const policy = contract.policyFor(method, found.path)
  const sensitive = sensitivityOf(found.path, query)
  const decision = decideCaching({ method, fields, hasContent: false, sensitive }, policy)
  const rule =
    policy.rule === undefined
      ? 'none'
      : `ttl ${policy.rule.ttlMs} ms, stale-while-revalidate ${policy.rule.staleWhileRevalidateMs} ms, stale-if-error ${policy.rule.staleIfErrorMs} ms`
  switch (decision.kind) {
    case 'read':
      return {
        cache: `read, ${decision.partition}`,
        ...(decision.partition === 'credential' ? credentialsIn(fields, policy) : {}),
        rule,
        profile: policy.profile,
        ...storedAs(service, contract, found, valid, decision.partition, host),
      }
    case 'write':
      return {
        cache: 'write: invalidates',
        profile: policy.profile,
        'may invalidate': mayInvalidate(service, contract, method, found, valid),
      }
    case 'bypass':
      return {
        cache: `bypass: ${decision.reason}`,
        ...credentialsIn(fields, policy),
        ...(decision.reason === 'cookie' ? cookiesIn(fields, policy) : {}),
        rule,
        profile: policy.profile,
      }
  }
}

/** WordPress hides behind 404 that there is something under the path. */
const wrongMethod = ({ contract }: ServiceConfig, { endpoints }: Row): string => {
  const methods = new Set(endpoints.flatMap((endpoint) => endpoint.methods))
  return `${contract === 'site' ? 404 : 405}: the path takes ${[...methods].join(', ')}`
}

/** The message names the arguments; both contracts have one in their errors. */
const invalidity = ({ status, code, body }: Extract<Validation, { kind: 'invalid' }>): string => {
  const message = typeof body === 'object' && body !== null && 'message' in body ? `: ${body.message}` : ''
  return `${status} ${code}${message}`
}

const known = (
  service: ServiceConfig,
  contract: ServiceContract,
  method: string,
  path: string,
  query: string,
  fields: RequestFields,
  host: string,
): Explanation => {
  const finding = contract.find(method, path)
  switch (finding.kind) {
    case 'refused':
      return { refused: `path: ${finding.reason}` }
    case 'wrong-method':
      return { row: finding.row.template, refused: wrongMethod(service, finding.row) }
    case 'options':
      return { row: finding.row.template, answer: 'schema of the route' }
    case 'unlisted': {
      const passes = service.contract === 'site' && service.unlistedRoutes !== 'refuse'
      return {
        row: 'unlisted',
        answer: passes ? 'passed on; routes announced by the upstream are learned (see --upstreams)' : '404',
      }
    }
    case 'found': {
      const { row, endpoint, pathParameters } = finding
      if (contract.requiresBearer && !hasBearer(fields)) {
        return { row: row.template, refused: '401: no bearer token' }
      }
      const validation = contract.validator.validate({
        method,
        row,
        endpoint,
        pathParameters,
        query,
        contentType: requestField(fields, 'content-type'),
        content: undefined,
      })
      if (validation.kind === 'invalid') {
        return { row: row.template, refused: invalidity(validation) }
      }
      return {
        row: row.template,
        ...(contract.rows.includes(row) ? {} : { 'row from': 'learned from the index of the upstream' }),
        'canonical target': targetOf(finding, validation),
        ...undeclaredOf(validation),
        ...(row.handledBy === 'upstream'
          ? cachingOf(service, contract, method, finding, validation, fields, host)
          : { answer: 'by the gateway' }),
      }
    }
  }
}

/** Explains a request to one of the services with the functions that decide about requests. */
export const explainAt = (
  targets: PublicTargets,
  { method, target, fields }: ExplainedRequest,
): Explanation => {
  const found = targets(target, requestField(fields, 'host'))
  if (found.kind !== 'found') {
    return { refused: `${found.kind === 'no-service' ? 404 : 421}: ${noServiceTexts[found.kind]}` }
  }
  const { query, path, host } = found
  const { config, contract } = found.service
  const meaning =
    config.contract === 'site' ? requestMeaning(method, query, fields) : { kind: 'method' as const, method }
  const service = {
    service: config.name,
    ...(config.hosts.length === 0 ? {} : { hosts: config.hosts.join(', ') }),
  }
  if (meaning.kind === 'refused') return { ...service, refused: meaning.reason }
  return {
    ...service,
    method: meaning.method,
    ...known(config, contract, meaning.method, path, query, fields, host),
  }
}

/** Explains a request from the configuration alone, without an upstream. */
export const explain = ({ services, limits, publicUrl }: Config, request: ExplainedRequest): Explanation =>
  explainAt(
    createPublicTargets(
      services.map((service) => ({ config: service, contract: serviceContract(service, limits) })),
      publicUrl,
    ),
    request,
  )

/** The same with the routes that upstreams announce; fetches the index of each once. */
export const explainLearned = (config: Config, request: ExplainedRequest): Promise<Explanation> =>
  withAskedServices(config.services, config, (asked) =>
    explainAt(
      createPublicTargets(
        asked.map(({ built }) => built),
        config.publicUrl,
      ),
      request,
    ),
  )
