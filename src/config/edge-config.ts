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
