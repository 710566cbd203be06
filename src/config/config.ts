import type { ApiDocument } from './api-document.ts'
import type { resolveConfig } from './load/resolve.ts'
import type { Secret } from './secret.ts'

type Frozen<Value> = Value extends ApiDocument | Secret | string | number | boolean | undefined
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
export type OpenConfig = Extract<ServiceConfig, { contract: 'open' }>
export type SiteConfig = Extract<ServiceConfig, { contract: 'site' }>
export type ChangesConfig = NonNullable<SiteConfig['changes']>
export type AccessConfig = NonNullable<ServiceConfig['access']>
