import type {
  CacheRuleConfig,
  Config,
  DiscoveryConfig,
  ServiceCacheConfig,
  ServiceConfig,
  SharedConfig,
  SiteConfig,
} from '../config.ts'
import type { RuleMatch } from '../rule-match.ts'
import { generalLimits, resolveEdge } from '../schema/edge-shape.ts'
import type { RuleShape, ServiceCacheShape, SiteShape } from '../schema/service-shape.ts'
import type { ConfigShape } from '../schema/shape.ts'
import type { UpstreamShape } from '../schema/upstream-shape.ts'

type ServiceShape = ConfigShape['services'][string]

/** Addresses that mean "every interface" are good to listen on and bad to link to. */
const linkHost = (host: string): string => {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

const resolveRule = (rule: RuleShape): CacheRuleConfig => ({
  match: rule.match,
  ttlMs: rule.ttl,
  staleWhileRevalidateMs: rule.staleWhileRevalidate,
  staleIfErrorMs: rule.staleIfError,
  negativeTtlMs: rule.negativeTtl,
  scope: rule.scope,
  override: rule.override,
})

const resolveCache = (
  cache: ServiceCacheShape,
  defaultRules: readonly CacheRuleConfig[],
): ServiceCacheConfig => ({
  profile: cache.profile,
  harmlessFields: cache.harmlessFields.map((name) => name.toLowerCase()),
  harmlessCookies: cache.harmlessCookies,
  rules: cache.rules === undefined ? defaultRules : cache.rules.map(resolveRule),
})

/** Where `health.timeout` is not given; a short interval shortens it. */
const defaultCheckTimeoutMs = 2_000

const resolveUpstream = ({ queue, timeouts, eject, breaker, tls, health, ...rest }: UpstreamShape) => ({
  basePath: rest.basePath,
  maxConcurrent: rest.maxConcurrent,
  clientShare: rest.clientShare,
  queue: { max: queue.max, timeoutMs: queue.timeout },
  timeouts: {
    connectMs: timeouts.connect,
    headersMs: timeouts.headers,
    idleMs: timeouts.idle,
    totalMs: timeouts.total,
  },
  retry: rest.retry,
  eject: { after: eject.after, forMs: eject.for, maxShare: eject.maxShare },
  breaker: {
    failureRatio: breaker.failureRatio,
    minRequests: breaker.minRequests,
    windowMs: breaker.window,
    forMs: breaker.for,
    probes: breaker.probes,
  },
  host: rest.host,
  http2: rest.http2,
  connectionMaxAgeMs: rest.connections.maxAge,
  tls: { ...tls, minVersion: `TLSv${tls.minVersion}` as const },
  health: {
    path: health.path,
    intervalMs: health.interval,
    timeoutMs: health.timeout ?? Math.min(defaultCheckTimeoutMs, health.interval),
    expect: health.expect,
    failAfter: health.failAfter,
    recoverAfter: health.recoverAfter,
  },
})

const resolveTargets = (targets: readonly string[]): 'embedded' | readonly string[] =>
  targets.includes('embedded') ? 'embedded' : targets

const resolveDiscovery = ({ source, refresh, identity }: SiteShape['discovery']): DiscoveryConfig =>
  source === 'static' && identity !== undefined
    ? { source, refreshMs: refresh, identity }
    : { source: 'upstream', refreshMs: refresh }

type OwnLimits = { readonly bodyBytes?: number | undefined; readonly jsonDepth?: number | undefined }

/** Of a service, or else of all, or else what its contract begins with. */
const resolveLimits = (
  own: OwnLimits,
  general: OwnLimits,
  first: SiteConfig['limits'],
): SiteConfig['limits'] => ({
  bodyBytes: own.bodyBytes ?? general.bodyBytes ?? first.bodyBytes,
  jsonDepth: own.jsonDepth ?? general.jsonDepth ?? first.jsonDepth,
})

/** PHP's `post_max_size`, as far as there is room for two of them, and the depth at which its JSON parser stops. */
const siteLimits = (bufferedBytes: number) => ({
  bodyBytes: Math.min(8 * 1024 * 1024, Math.floor(bufferedBytes / 2)),
  jsonDepth: 512,
})

const resolveService = (
  name: string,
  service: ServiceShape,
  limits: ConfigShape['limits'],
): ServiceConfig => {
  switch (service.contract) {
    case 'plants':
      return {
        name,
        contract: 'plants',
        mount: service.mount,
        limitParameter: service.limitParameter,
        upstream: { targets: resolveTargets(service.upstream.targets), ...resolveUpstream(service.upstream) },
        parameters: service.parameters,
        limits: resolveLimits(service.limits, limits, generalLimits),
        cache: resolveCache(service.cache, plantsRules),
      }
    case 'site':
      return {
        name,
        contract: 'site',
        mount: service.mount,
        names: service.names,
        unlistedRoutes: service.unlistedRoutes,
        discovery: resolveDiscovery(service.discovery),
        batch: {
          maxItems: service.batch.maxItems,
          concurrency: service.batch.concurrency,
          split: service.batch.split,
          deadlineMs: service.batch.deadline,
          answerBytes: service.batch.answerBytes,
          extensions: service.batch.extensions,
          services: service.batch.services,
          idempotency: {
            ttlMs: service.batch.idempotency.ttl,
            maxBytes: service.batch.idempotency.maxBytes,
          },
        },
        upstream: { targets: resolveTargets(service.upstream.targets), ...resolveUpstream(service.upstream) },
        parameters: service.parameters,
        limits: resolveLimits(service.limits, limits, siteLimits(limits.bufferedBytes)),
        cache: resolveCache(service.cache, siteRules(service.names, service.upstream.basePath)),
      }
    case 'open':
      return {
        name,
        contract: 'open',
        mount: service.mount,
        upstream: { targets: service.upstream.targets, ...resolveUpstream(service.upstream) },
        cache: resolveCache(service.cache, []),
      }
  }
}

const resolveShared = ({
  key,
  lease,
  forgetAfter,
  ...rest
}: ConfigShape['cache']['shared']): SharedConfig => ({
  ...rest,
  key: [key].flat().filter(({ isSet }) => isSet),
  leaseMs: lease,
  forgetAfterMs: forgetAfter,
})

const accessModes = { false: 'off', sample: 'sample', true: 'all' } as const

/** Turns what the file says into what the rooms read: units in the names, defaults that depend on other values. */
export const resolveConfig = (shape: ConfigShape): Config => ({
  ...resolveEdge(shape),
  admin: shape.admin,
  publicUrl:
    shape.publicUrl === ''
      ? `${shape.listen.tls.cert.isSet ? 'https' : 'http'}://${linkHost(shape.listen.host)}:${shape.listen.port}`
      : shape.publicUrl,
  workers: shape.workers,
  trustedProxies: shape.trustedProxies,
  log: { ...shape.log, access: accessModes[String(shape.log.access) as keyof typeof accessModes] },
  tracing: shape.tracing,
  cache: { ...shape.cache, shared: resolveShared(shape.cache.shared) },
  drain: { delayMs: shape.drain.delay, timeoutMs: shape.drain.timeout },
  services: Object.entries(shape.services).map(([name, service]) =>
    resolveService(name, service, shape.limits),
  ),
})

const get = (...segments: readonly string[]): RuleMatch => ({
  text: `GET /${segments.join('/')}`,
  methods: ['GET', 'HEAD'],
  segments,
})

const plain = { staleWhileRevalidateMs: 0, staleIfErrorMs: 0, negativeTtlMs: 0, override: false } as const

/** Cache rules of a plant store whose section has none. Every caller has a credential, so each has answers of its own. */
const plantsRules: readonly CacheRuleConfig[] = [
  { ...plain, match: get('plants'), ttlMs: 5_000, scope: 'credential' },
]

/**
 * Cache rules of a site whose section has none. The namespace is spelled as clients spell it: with `names: same` that is
 * the upstream's spelling, which is the neutral one only where its root ends in the neutral segment.
 */
const siteRules = (names: SiteConfig['names'], basePath: string): readonly CacheRuleConfig[] => [
  {
    ...plain,
    match: get(names === 'wordpress' || basePath.endsWith('/site-json') ? 'site' : 'wp', 'v2', '**'),
    ttlMs: 60_000,
    staleWhileRevalidateMs: 30_000,
    staleIfErrorMs: 3_600_000,
    scope: 'public',
  },
]
