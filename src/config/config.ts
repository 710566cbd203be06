import type { resolveConfig } from './load/resolve.ts'
import type { Secret } from './secret.ts'
import type { ServiceDocument } from './service-document.ts'

type Frozen<Value> = Value extends ServiceDocument | Secret | string | number | boolean | undefined
  ? Value
  : { readonly [Key in keyof Value]: Frozen<Value[Key]> }

/**
 * A checked configuration: complete, frozen, and every number carries its unit in its name (`Ms` milliseconds, `Bytes` bytes).
 * What each key means is described in schema/.
 */
export type Config = Frozen<ReturnType<typeof resolveConfig>>

export type LimitsConfig = Config['limits']
export type RateLimitConfig = Config['rateLimits'][number]
export type ServiceConfig = Config['services'][number]
export type PlantsConfig = Extract<ServiceConfig, { contract: 'plants' }>
export type OpenApiConfig = Extract<ServiceConfig, { contract: 'openapi' }>
export type GraphqlConfig = Extract<ServiceConfig, { contract: 'graphql' }>
export type OpenConfig = Extract<ServiceConfig, { contract: 'open' }>
export type SiteConfig = Extract<ServiceConfig, { contract: 'site' }>
export type ChangesConfig = NonNullable<SiteConfig['changes']>
export type DownstreamConfig = NonNullable<ServiceConfig['downstream']>
export type ReceiverConfig = DownstreamConfig['receivers'][number]
export type AccessConfig = NonNullable<ServiceConfig['access']>

export const targetsOf = ({ upstream: { targets } }: ServiceConfig): readonly string[] =>
  targets === 'embedded' ? [] : targets

/** Paths of interfaces at the upstream of an open service that may be those of WordPress. */
export const interfacesBehind = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
): readonly string[] =>
  service.contract !== 'open'
    ? []
    : services
        .filter(({ contract }) => contract === 'site' || contract === 'graphql')
        .filter((site) => targetsOf(site).some((target) => targetsOf(service).includes(target)))
        .map(({ upstream }) => upstream.basePath.replace(/\/$/, ''))

/** The default for sites: see docs/configuration.md. */
const sitePollMs = 5_000

/** The settings of a service that reports its changes; undefined when it reports none. */
export const changesOf = (service: ServiceConfig): ChangesConfig | undefined =>
  service.changes?.token.isSet === true ? service.changes : undefined

export const pollMsOf = ({ contract }: ServiceConfig, { pollMs }: ChangesConfig): number =>
  pollMs ?? (contract === 'site' ? sitePollMs : 0)

/** The lifetime of responses while the log of a service is read; undefined when it is not read. */
export const feedLifetimeMs = (service: ServiceConfig): number | undefined => {
  const changes = changesOf(service)
  const isCurrent = changes !== undefined && pollMsOf(service, changes) > 0 && changes.ttlWhileHeardMs > 0
  return isCurrent ? changes.ttlWhileHeardMs : undefined
}

/** May everybody read whom `deny` does not name? Addresses, keys and tokens are unknown to caches in front of the gateway. */
export const servesEveryReader = ({ access }: Pick<ServiceConfig, 'access'>): boolean =>
  access === undefined ||
  (access.allow.length === 0 && access.apiKeys?.required !== 'all' && access.jwt?.required !== 'all')

/** A setting that is allowed, but that its administrator should know about. */
export type ConfigWarning = { readonly path: string; readonly message: string }
