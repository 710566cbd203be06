import type { StatusRange } from './quantities.ts'
import type { RuleMatch } from './rule-match.ts'
import type { Secret } from './secret.ts'

/** The part of a checked configuration that concerns the public port and the protection of the process. */
export type EdgeConfig = {
  readonly listen: {
    readonly host: string
    readonly port: number
    readonly http2: boolean
    readonly tls: {
      /** Not set = no TLS. */
      readonly cert: Secret
      readonly key: Secret
      readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
    }
  }
  readonly limits: LimitsConfig
  readonly cors: CorsConfig
  readonly overload: OverloadConfig
  readonly rateLimits: readonly RateLimitConfig[]
  readonly rateLimitKeys: number
  readonly reload: { readonly watch: boolean; readonly pollMs: number }
}

export type LimitsConfig = {
  readonly headerBytes: number
  readonly urlBytes: number
  readonly queryParameters: number
  readonly bodyBytes: number
  readonly jsonDepth: number
  readonly uploadBytes: number
  readonly bufferedBytes: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  /** 0 = no bound. */
  readonly readerTimeoutMs: number
  /** Of a client on which a slot of an upstream waits; 0 = no bound. */
  readonly minBytesPerSecond: number
  readonly keepAliveTimeoutMs: number
  /** 0 = no bound. */
  readonly connections: number
  readonly connectionsPerAddress: number
}

type CorsConfig = {
  /** None = the upstream's fields pass through. */
  readonly origins: readonly string[]
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposedHeaders: readonly string[]
  readonly credentials: boolean
  readonly maxAgeMs: number
}

/** Of each signal 0 = not looked at. */
type OverloadConfig = {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
  readonly inFlight: number
  readonly intervalMs: number
  readonly retryAfterMs: number
}

export type RateLimitConfig = {
  readonly name: string
  readonly service: string
  readonly match: RuleMatch
  readonly by: 'address' | 'credential'
  readonly max: number
  readonly windowMs: number
}

/**
 * A checked configuration: complete, frozen, and every number carries its unit in its name
 * (`Ms` milliseconds, `Bytes` bytes). What the file may say is in shape.ts.
 */
export type Config = EdgeConfig & {
  readonly admin: { readonly host: string; readonly port: number; readonly token: Secret }
  /** Scheme, host, port and perhaps a path, without a slash at the end. With `listen.port: 0` and none configured it ends in `:0`. */
  readonly publicUrl: string
  /** 0 = one per core. */
  readonly workers: number
  readonly trustedProxies: readonly string[]
  readonly log: LogConfig
  readonly tracing: TracingConfig
  readonly cache: {
    readonly maxBytes: number
    readonly maxEntryBytes: number
    readonly admission: 'always' | 'second-request'
    /** Best first; none = off. */
    readonly compression: {
      readonly encodings: readonly ('br' | 'gzip' | 'zstd')[]
      readonly minBytes: number
    }
    readonly shared: SharedConfig
  }
  readonly drain: { readonly delayMs: number; readonly timeoutMs: number }
  /** In the order of the file. */
  readonly services: readonly ServiceConfig[]
}

type LogConfig = {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'
  readonly format: 'json' | 'pretty'
  readonly access: 'off' | 'sample' | 'all'
  readonly sampleHits: number
}

type TracingConfig = {
  /** '' = none. */
  readonly otlpUrl: string
  readonly sampleRatio: number
  readonly serviceName: string
}

/** How several processes keep one promise (docs/scale.md). */
export type SharedConfig = {
  readonly url: Secret
  /** The first one signs; none = nothing is signed. */
  readonly key: readonly Secret[]
  readonly tls: {
    readonly ca: Secret
    readonly cert: Secret
    readonly key: Secret
    readonly serverName: string
  }
  readonly cluster: boolean
  /** In front of all keys. */
  readonly prefix: string
  readonly leaseMs: number
  readonly forgetAfterMs: number
  /** Of services with a cache, while the store cannot be reached. */
  readonly writes: 'go-on' | 'refuse-while-cut-off'
}

export type ServiceConfig = PlantsConfig | SiteConfig | OpenConfig

type AnyService = {
  /** Key in the file; a metric label. */
  readonly name: string
  /** `/`, or a path in normal form without a slash at the end. */
  readonly mount: string
  readonly cache: ServiceCacheConfig
}

type PlantsConfig = AnyService & {
  readonly contract: 'plants'
  readonly upstream: UpstreamConfig
  readonly parameters: ParametersConfig
  readonly limits: OwnLimitsConfig
  readonly limitParameter: string
}

export type SiteConfig = AnyService & {
  readonly contract: 'site'
  readonly upstream: UpstreamConfig
  readonly parameters: ParametersConfig
  readonly limits: OwnLimitsConfig
  readonly names: 'wordpress' | 'same'
  readonly unlistedRoutes: 'learn' | 'pass' | 'refuse'
  readonly discovery: DiscoveryConfig
  readonly batch: {
    readonly maxItems: number
    readonly concurrency: number
    readonly split: 'item' | 'chunk' | 'whole' | 'auto'
    readonly deadlineMs: number
    readonly answerBytes: number
    readonly extensions: 'off' | 'on-request' | 'on'
    readonly services: readonly string[]
    readonly idempotency: { readonly ttlMs: number; readonly maxBytes: number }
  }
}

type OpenConfig = AnyService & {
  readonly contract: 'open'
  readonly upstream: UpstreamConfig<readonly string[]>
}

type UpstreamConfig<Targets = 'embedded' | readonly string[]> = {
  /** Origins, or the server that the process starts itself. */
  readonly targets: Targets
  readonly basePath: string
  readonly maxConcurrent: number
  readonly clientShare: number
  readonly queue: { readonly max: number; readonly timeoutMs: number }
  readonly timeouts: {
    readonly connectMs: number
    readonly headersMs: number
    readonly idleMs: number
    readonly totalMs: number
  }
  readonly retry: { readonly attempts: number; readonly budget: number }
  readonly eject: { readonly after: number; readonly forMs: number; readonly maxShare: number }
  /** `failureRatio: 0` = never. */
  readonly breaker: {
    readonly failureRatio: number
    readonly minRequests: number
    readonly windowMs: number
    readonly forMs: number
    readonly probes: number
  }
  /** `preserve` = the host of `publicUrl`, never what a client wrote. */
  readonly host: 'target' | 'preserve'
  readonly http2: boolean
  readonly connectionMaxAgeMs: number
  readonly tls: {
    readonly ca: Secret
    readonly cert: Secret
    readonly key: Secret
    readonly serverName: string
    readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
    readonly acceptAnyCertificate: boolean
  }
  /** No active checks while `path` is ''. */
  readonly health: {
    readonly path: string
    readonly intervalMs: number
    readonly timeoutMs: number
    readonly expect: readonly StatusRange[]
    readonly failAfter: number
    readonly recoverAfter: number
  }
}

/** Of one service, in place of those of all. */
type OwnLimitsConfig = Pick<LimitsConfig, 'bodyBytes' | 'jsonDepth'>

type ParametersConfig = {
  readonly unknown: 'strip' | 'forward'
  /** Names; `*` at the end stands for any rest. */
  readonly tracking: readonly string[]
}

export type ServiceCacheConfig = {
  readonly profile: 'safe' | 'rfc-shared-cache'
  /** In lower case. */
  readonly harmlessFields: readonly string[]
  /** Names of cookies; `*` at the end stands for any rest. */
  readonly harmlessCookies: readonly string[]
  /** First match wins. */
  readonly rules: readonly CacheRuleConfig[]
}

export type CacheRuleConfig = {
  readonly match: RuleMatch
  readonly ttlMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  readonly negativeTtlMs: number
  readonly scope: 'public' | 'credential'
  /** The rule wins over what the upstream states. */
  readonly override: boolean
}

/** Where the identity of the site comes from: name, description, URLs, time zone. */
export type DiscoveryConfig =
  | { readonly source: 'upstream'; readonly refreshMs: number }
  | { readonly source: 'static'; readonly refreshMs: number; readonly identity: SiteIdentityConfig }

type SiteIdentityConfig = {
  readonly name: string
  readonly description: string
  readonly url: string
  readonly home: string
  readonly gmtOffset: number
  readonly timezone: string
}
