import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Config, RateLimitConfig } from '../config/config.ts'
import { hasMethod, mayMatchPath } from '../config/rule-match.ts'
import { sameSettings } from '../config/same-settings.ts'
import type { Identity } from '../exchange/access.ts'
import type {
  CountRequest,
  Rate,
  RateLimitResult,
  RateLimitStore,
  RateLimitVerdict,
} from '../exchange/ports.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { memoize } from '../http/memo.ts'

/** `by`: `address`, `credential`, `key`, or `claim:` and its name. */
type RateLimit = Pick<RateLimitConfig, 'name' | 'by' | 'max' | 'windowMs'>

type RateLimiterOptions = {
  /** Clients remembered for each limit. */
  readonly maxKeys: number
  /** Undefined: counts in this process. */
  readonly store: RateLimitStore | undefined
  /** Processes without a store, of which each gets its part of every limit. */
  readonly processes: number
  readonly clock: Pick<Clock, 'monotonic'>
  /** Salted hash of a credential. */
  readonly partitionOf: (credential: string) => string
}

type RateLimitCaller = {
  readonly address: string
  readonly credential: string | undefined
  /** Verified by `access` of the service. */
  readonly identity?: Pick<Identity, 'apiKey' | 'claims'> | undefined
}

const claimPrefix = 'claim:'

/** The value by which a limit counts a client; undefined if the request does not have it. */
const countedBy = (by: string, { credential, identity }: RateLimitCaller): string | undefined => {
  if (by === 'credential') return credential
  if (by === 'key') return identity?.apiKey
  return by.startsWith(claimPrefix) ? identity?.claims.get(by.slice(claimPrefix.length)) : undefined
}

const addressKey = memoize((address) => `address ${addressGroup(address)}`)

const rateLimitKey = (
  { by }: Pick<RateLimit, 'by'>,
  caller: RateLimitCaller,
  partitionOf: (credential: string) => string,
): string => {
  const counted = countedBy(by, caller)
  return counted === undefined ? addressKey(caller.address) : `${by} ${partitionOf(counted)}`
}

/** Sums of fractions are not exact. */
const tolerance = 1e-6

/** Of a client that has used up this much of its window, another request. */
export const takeOne = (usedMs: number, { windowMs, intervalMs }: Rate): RateLimitResult => {
  const nextMs = usedMs + intervalMs
  const admitted = nextMs <= windowMs + tolerance * intervalMs
  return { admitted, usedMs: admitted ? nextMs : usedMs }
}

/**
 * The generic cell rate algorithm: remembers when a client will have its whole quota again. No edge of a window admits twice the
 * quota. The clock is monotonic: a wall clock set back by an hour would refuse for an hour longer.
 */
const createCounts = (maxKeys: number, clock: Pick<Clock, 'monotonic'>) => {
  const fullAtMs = new LRUCache<string, number>({ max: maxKeys })
  return (key: string, rate: Rate): RateLimitResult => {
    const nowMs = clock.monotonic()
    const taken = takeOne(Math.max(0, (fullAtMs.get(key) ?? 0) - nowMs), rate)
    if (taken.admitted) fullAtMs.set(key, nowMs + taken.usedMs)
    return taken
  }
}

/** While the store cannot be reached, requests are not limited: a limit must not be what makes them fail. */
const uncounted: RateLimitResult = { admitted: true, usedMs: 0 }

/** Of a limit for a process. */
const partOf = (max: number, processes: number): number => Math.ceil(max / processes)

/** Counts by route, therefore by `handle` and not by a hook of Fastify: a route is known only after a path is canonical. */
export const createRateLimiter = (
  limit: RateLimit,
  { maxKeys, clock, store, processes, partitionOf }: RateLimiterOptions,
) => {
  const { name, windowMs } = limit
  const max = partOf(limit.max, processes)
  const rate: Rate = { windowMs, intervalMs: windowMs / max }
  const policy = `"${name}";q=${max};w=${Math.ceil(windowMs / 1000)}`
  const countHere = store === undefined ? createCounts(maxKeys, clock) : undefined
  const verdictOf = ({ admitted, usedMs }: RateLimitResult): RateLimitVerdict => {
    const left = (windowMs - usedMs) / rate.intervalMs
    return {
      policy,
      name,
      remaining: Math.max(0, Math.floor(left + tolerance)),
      resetSeconds: Math.ceil(usedMs / 1000),
      retryAfterSeconds: admitted ? 0 : Math.max(1, Math.ceil((rate.intervalMs * (1 - left)) / 1000)),
    }
  }
  return {
    count: (caller: RateLimitCaller): RateLimitVerdict | Promise<RateLimitVerdict> => {
      const key = rateLimitKey(limit, caller, partitionOf)
      return (
        store?.take(name, key, rate).then(verdictOf, () => verdictOf(uncounted)) ??
        verdictOf(countHere?.(key, rate) ?? uncounted)
      )
    },
  }
}

export type RateLimits = {
  readonly counted: readonly {
    readonly config: RateLimitConfig
    readonly maxKeys: number
    readonly limiter: ReturnType<typeof createRateLimiter>
    appliesTo(method: string, path: string): boolean
  }[]
  readonly count: CountRequest
}

type LimitsConfigured = Pick<Config, 'rateLimits' | 'rateLimitKeys'>

/** Paths are memoized alone: the text of a known one has its hash, and one with its method would be hashed for each request. */
const appliesTo = ({ match }: RateLimitConfig): ((method: string, path: string) => boolean) => {
  const mayMatch = memoize((path) => mayMatchPath(match, path))
  return (method, path) => hasMethod(match, method) && mayMatch(path)
}

/** Apart from `count`: closures of one function hold all that any of them uses, and each configuration would hold the last one. */
const countedLimits = (
  { rateLimits, rateLimitKeys: maxKeys }: LimitsConfigured,
  options: Omit<RateLimiterOptions, 'maxKeys'>,
  last: RateLimits | undefined,
): RateLimits['counted'] =>
  rateLimits.map((config) => {
    const unchanged = last?.counted.find(
      (limit) => limit.maxKeys === maxKeys && sameSettings(limit.config, config),
    )
    if (unchanged !== undefined) return unchanged
    const limiter = createRateLimiter(config, { ...options, maxKeys })
    return { config, maxKeys, limiter, appliesTo: appliesTo(config) }
  })

/** Builds the rate limits of a configuration; unchanged ones keep their counts. Undefined when there is none. */
export const buildRateLimits = (
  config: LimitsConfigured,
  options: Omit<RateLimiterOptions, 'maxKeys'>,
  last: RateLimits | undefined,
): RateLimits | undefined => {
  if (config.rateLimits.length === 0) return undefined
  const counted = countedLimits(config, options, last)
  return {
    counted,
    count: (request) => {
      const { service, method, path } = request
      const verdicts: RateLimitVerdict[] = []
      const later: Promise<RateLimitVerdict>[] = []
      for (const { config: limit, limiter, appliesTo } of counted) {
        if (limit.service !== service || !appliesTo(method, path)) continue
        const verdict = limiter.count(request)
        if (verdict instanceof Promise) later.push(verdict)
        else verdicts.push(verdict)
      }
      return later.length === 0 ? verdicts : Promise.all(later)
    },
  }
}
