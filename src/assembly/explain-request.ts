import { cacheKey } from '../cache/cache-key.ts'
import { decideCaching } from '../cache/decide-caching.ts'
import { sensitiveParameter } from '../cache/sensitive-parameter.ts'
import type { ExplainedRequest, Explanation } from '../cli/cli-ports.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { matchesRule } from '../config/rule-match.ts'
import type { Found } from '../contracts/finding.ts'
import { createNames } from '../names/names.ts'
import { requestMeaning } from '../routing/request-meaning.ts'
import { type ServiceContract, serviceContract, siteNameTable } from './service-contract.ts'

type Asked = {
  readonly config: ServiceConfig
  readonly contract: ServiceContract
  readonly request: ExplainedRequest
  readonly method: string
  readonly path: string
  readonly query: string
}

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

/** The service with the longest mount that the path lies under. */
const serviceAt = (services: readonly ServiceConfig[], path: string): ServiceConfig | undefined =>
  services
    .filter((service) => path === service.mount || path.startsWith(`${withoutRoot(service.mount)}/`))
    .sort((a, b) => b.mount.length - a.mount.length)[0]

const upstreamTarget = ({ config }: Asked, path: string, query: string): string => {
  const basePath = withoutRoot(config.upstream.basePath)
  const target = query === '' ? path : `${path}?${query}`
  if (config.contract !== 'site') return `${basePath}${target}`
  const names = createNames({
    mode: config.names,
    table: siteNameTable,
    publicRoot: '',
    upstreamRoots: () => [],
  })
  return `${basePath}${names.toUpstreamTarget(path, query)}`
}

const explainCaching = (
  asked: Asked,
  found: Found,
  query: string,
  args: Readonly<Record<string, unknown>>,
): Explanation => {
  const { config, contract, request, method } = asked
  const rule = config.cache.rules.find(({ match }) => matchesRule(match, method, found.path))
  const decision = decideCaching(
    { method, fields: request.fields, hasContent: false, sensitive: sensitiveParameter(query) },
    contract.policyFor(method, found.path),
  )
  const facts = { profile: config.cache.profile, rule: rule?.match.text ?? 'none matches' }
  switch (decision.kind) {
    case 'bypass':
      return { ...facts, cache: `not asked: ${decision.reason}` }
    case 'write':
      return {
        ...facts,
        cache: 'a write: invalidates before its answer is returned',
        'tags, at most': contract.tagger.writtenTags(found, args, method, undefined),
      }
    case 'read': {
      const target = query === '' ? found.path : `${found.path}?${query}`
      // The hash of a credential is salted by the process that makes it: another process has nothing to compare it with.
      const partition = decision.partition === 'public' ? 'public' : '(hash of the credential)'
      const nothing = { status: 200, fields: [], content: Buffer.from('null') }
      return {
        ...facts,
        cache:
          decision.partition === 'public'
            ? 'asked, shared by all callers'
            : 'asked, one answer per credential',
        'cache key': cacheKey({ service: config.name, target, dialect: '', partition }),
        'tags, at least': contract.tagger.storedTags(found, args, nothing),
        withheld: decision.withhold,
      }
    }
  }
}

const explainFound = (asked: Asked, found: Found): Explanation => {
  const { contract, method, query } = asked
  const row = { row: found.row.id, route: found.row.template, 'answered by': found.row.handledBy }
  const validation = contract.validator.validate({
    method,
    row: found.row,
    endpoint: found.endpoint,
    pathParameters: found.pathParameters,
    query,
    contentType: undefined,
    content: undefined,
  })
  if (validation.kind === 'invalid' && method !== 'POST' && method !== 'PUT' && method !== 'PATCH') {
    return {
      ...row,
      outcome: `refused with ${validation.status}`,
      code: validation.code,
      body: validation.body,
    }
  }
  // A write is asked about without its content: what is missing there is no fault of the question.
  const canonical = validation.kind === 'valid' ? validation : { query, arguments: {} }
  const target = canonical.query === '' ? found.path : `${found.path}?${canonical.query}`
  if (found.row.handledBy !== 'upstream') return { ...row, canonical: target }
  return {
    ...row,
    canonical: target,
    'asks upstream': `${method} ${upstreamTarget(asked, found.path, canonical.query)}`,
    ...explainCaching(asked, found, canonical.query, canonical.arguments),
  }
}

const meantMethod = ({ contract }: ServiceConfig, { method, fields }: ExplainedRequest, query: string) =>
  contract === 'site' ? requestMeaning(method, query, fields) : ({ kind: 'meant', method } as const)

const explainAt = (
  config: Config,
  service: ServiceConfig,
  request: ExplainedRequest,
  path: string,
  query: string,
) => {
  const meaning = meantMethod(service, request, query)
  if (meaning.kind === 'refused') return { outcome: 'refused with 400', reason: meaning.reason }
  const contract = serviceContract(service, config.limits)
  const { method } = meaning
  const finding = contract.find(method, path)
  switch (finding.kind) {
    case 'refused':
      return { outcome: 'refused with 400', reason: `path: ${finding.reason}` }
    case 'wrong-method':
      return { row: finding.row.id, outcome: 'refused: the row has no such method' }
    case 'unlisted':
      return {
        row: 'none',
        outcome: 'not in the table: learned, passed on or refused as `unlistedRoutes` says',
      }
    case 'options':
      return { row: finding.row.id, outcome: 'answered here: the schema of the route' }
    case 'found':
      return explainFound({ config: service, contract, request, method, path, query }, finding)
  }
}

/** What would happen to a request, told from the configuration alone: nothing is sent, and the upstream's own routes are not known. */
export const explainRequest = (config: Config, request: ExplainedRequest): Explanation => {
  const [path = '/', ...rest] = request.target.split('?')
  const query = rest.join('?')
  const service = serviceAt(config.services, path)
  const asked = { request: `${request.method} ${request.target}` }
  if (service === undefined) return { ...asked, outcome: 'refused with 404: no service is mounted there' }
  const inside = path.slice(withoutRoot(service.mount).length) || '/'
  if (service.contract === 'plants' && request.fields['authorization'] === undefined) {
    return { ...asked, service: service.name, outcome: 'refused with 401: a bearer token is required' }
  }
  return { ...asked, service: service.name, ...explainAt(config, service, request, inside, query) }
}
