import { isCacheable, isGet } from '../../http/methods.ts'
import { parseDuration } from '../quantities.ts'
import { matchesRule, type RuleMatch } from '../rule-match.ts'
import { cacheRule } from '../schema/cache-shape.ts'
import type { ConfigShape } from '../schema/shape.ts'
import type { PlantRules } from '../service-document.ts'

type Services = ConfigShape['services'][string]
type ServiceOf<Contract extends Services['contract']> = Extract<Services, { contract: Contract }>
type OwnLimits = ServiceOf<'site'>['limits']

/** Addresses that mean "every interface" are good to listen on and bad to link to. */
const linkHost = (host: string): string => {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

const generalLimits = { bodyBytes: 1024 * 1024, jsonDepth: 64 }

/** PHP's `post_max_size`, as long as two such bodies fit into the buffers, and the depth at which its JSON parser stops. */
const siteLimits = (bufferedBytes: number) => ({
  bodyBytes: Math.min(8 * 1024 * 1024, Math.floor(bufferedBytes / 2)),
  jsonDepth: 512,
})

/** The service's own limits, or else the general ones, or else the defaults of its contract. */
const resolveLimits = (ownLimits: OwnLimits, general: OwnLimits, byDefault: typeof generalLimits) => ({
  bodyBytes: ownLimits.bodyBytes ?? general.bodyBytes ?? byDefault.bodyBytes,
  jsonDepth: ownLimits.jsonDepth ?? general.jsonDepth ?? byDefault.jsonDepth,
})

const resolveTargets = <Upstream extends ServiceOf<'site'>['upstream']>(upstream: Upstream) => ({
  ...upstream,
  targets: upstream.targets.includes('embedded') ? ('embedded' as const) : upstream.targets,
})

const resolveCache = <Cache extends ServiceOf<'open'>['cache']>(
  cache: Cache,
  defaultRules: readonly Parameters<typeof cacheRule.parse>[0][],
) => ({ ...cache, rules: cache.rules ?? defaultRules.map((rule) => cacheRule.parse(rule)) })

const resolveDiscovery = ({ source, refreshMs, identity }: ServiceOf<'site'>['discovery']) =>
  source === 'static' && identity !== undefined
    ? { source, refreshMs, identity }
    : { source: 'upstream' as const, refreshMs }

/**
 * With `names: same` clients use the upstream's own spelling of the namespace, which is the neutral one only where its
 * root ends in the neutral segment.
 */
const siteNamespace = ({ names, upstream }: ServiceOf<'site'>): string =>
  names === 'wordpress' || upstream.basePath.endsWith('/site-json') ? 'site' : 'wp'

/** `GET /pets/*`: an operation is found by its template, and the match is for people and for comparisons. */
const matchOf = ({ method, template }: { readonly method: string; readonly template: string }): RuleMatch => {
  const segments = template.slice(1).split('/')
  return {
    text: `${method} ${template}`,
    methods: isGet(method) ? ['GET', 'HEAD'] : [method],
    segments: template === '/' ? [] : segments.map((segment) => segment.replaceAll(/\{[^{}]*\}/g, '*')),
  }
}

/** Rules of the configuration, then those of the document; `operation` is the text of an operation's `match`. */
const resolveDocumentCache = ({ cache, document }: ServiceOf<'openapi'>) => {
  const { operations } = document.contract
  const configured = cache.rules.flatMap(({ match, operation, ...rule }) => {
    if (match !== undefined) return [{ ...rule, match, operation: '' }]
    const ruleOperation = operations.find(
      ({ operationId }) => operationId !== '' && operationId === operation,
    )
    // An unknown operation is a fault (cross-checks.ts).
    return ruleOperation === undefined
      ? []
      : [{ ...rule, match: matchOf(ruleOperation), operation: matchOf(ruleOperation).text }]
  })
  const described = operations.flatMap((operation) => {
    if (
      operation.cache === undefined ||
      !isCacheable(operation.method) ||
      parseDuration(operation.cache.ttl) === undefined
    )
      return []
    const match = matchOf(operation)
    const { match: _match, ...rule } = cacheRule.parse({ ...operation.cache, match: 'GET /' })
    return [{ ...rule, match, operation: match.text }]
  })
  return { ...cache, rules: [...configured, ...described] }
}

/** The settings for the resources of an operation. */
export type DeclaredResource = {
  /** Method and template. */
  readonly operation: string
  readonly template: string
  readonly resource:
    | {
        readonly collection: string | undefined
        readonly id: string | undefined
        readonly members: Readonly<Record<string, string>> | undefined
      }
    | undefined
  readonly invalidates: readonly string[] | undefined
}

/** The settings of the configuration for the resources of each operation. */
const resolveResources = ({ document, resources }: ServiceOf<'openapi'>): readonly DeclaredResource[] =>
  document.contract.operations.flatMap(({ method, template, operationId }) => {
    const rule = resources.find(({ match, operation }) =>
      match === undefined ? operation === operationId : matchesRule(match, method, template),
    )
    if (rule === undefined) return []
    const { collection, id, members, invalidates } = rule
    const isPath = collection !== undefined || members !== undefined
    const resource = isPath ? { collection, id, members } : undefined
    return [{ operation: `${method} ${template}`, template, resource, invalidates }]
  })

const everyQuery: RuleMatch = { text: 'query *', methods: ['query'], segments: ['*'] }

/** The rule of a GraphQL endpoint without rules. */
const storeQueries = {
  ...cacheRule.parse({ match: 'GET /', ttl: '60s', staleWhileRevalidate: '30s', staleIfError: '1h' }),
  match: everyQuery,
}

const resolveService = (
  name: string,
  configured: Services,
  { limits, cors }: Pick<ConfigShape, 'limits' | 'cors'>,
  { plantRules }: { readonly plantRules: PlantRules },
) => {
  const service = { ...configured, cors: configured.cors ?? cors }
  switch (service.contract) {
    case 'plants':
      return {
        name,
        ...service,
        upstream: resolveTargets(service.upstream),
        limits: resolveLimits(service.limits, limits, generalLimits),
        cache: resolveCache(service.cache, plantRules(service.limitParameter)),
      }
    case 'site':
      return {
        name,
        ...service,
        discovery: resolveDiscovery(service.discovery),
        upstream: resolveTargets(service.upstream),
        limits: resolveLimits(service.limits, limits, siteLimits(limits.bufferedBytes)),
        cache: resolveCache(service.cache, [
          {
            match: `GET /${siteNamespace(service)}/v2/**`,
            ttl: '60s',
            staleWhileRevalidate: '30s',
            staleIfError: '1h',
          },
        ]),
      }
    case 'openapi':
      return {
        name,
        ...service,
        upstream: resolveTargets(service.upstream),
        limits: resolveLimits(service.limits, limits, generalLimits),
        cache: resolveDocumentCache(service),
        resources: resolveResources(service),
      }
    case 'graphql':
      return {
        name,
        ...service,
        upstream: resolveTargets(service.upstream),
        limits: resolveLimits(service.limits, limits, generalLimits),
        cache: { ...service.cache, rules: service.cache.rules ?? [storeQueries] },
      }
    case 'open':
      return { name, ...service, cache: resolveCache(service.cache, []) }
  }
}

/** The public URL where none is given. */
export const urlOfListen = ({
  host,
  port,
  tls,
}: {
  readonly host: string
  readonly port: number
  readonly tls: { readonly cert: { readonly isSet: boolean } }
}): string => `${tls.cert.isSet ? 'https' : 'http'}://${linkHost(host)}:${port}`

/** Adds the defaults that depend on other values. */
export const resolveConfig = (
  { services, ...shape }: ConfigShape,
  contracts: { readonly plantRules: PlantRules },
) => ({
  ...shape,
  publicUrl: shape.publicUrl === '' ? urlOfListen(shape.listen) : shape.publicUrl,
  limits: { ...shape.limits, ...resolveLimits({}, shape.limits, generalLimits) },
  services: Object.entries(services).map(([name, service]) =>
    resolveService(name, service, shape, contracts),
  ),
})
