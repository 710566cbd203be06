import fastifyRateLimit from '@fastify/rate-limit'
import { type FastifyRequest, fastify } from 'fastify'
import type { Clock } from '../clock.ts'
import { addressGroup } from '../http/bounds/address-group.ts'
import type { Identity } from '../pipeline/access.ts'
import type { RateLimitVerdict } from '../pipeline/phase-options.ts'

/** The store of request counts that several processes share. */
export type RateLimitStore = {
  /** Adds one to a key of a limit; returns the count of the current window and the time until it ends. */
  increment(
    limit: string,
    key: string,
    windowMs: number,
  ): Promise<{ readonly count: number; readonly leftMs: number }>
}

export type RateLimit = {
  readonly name: string
  /** `address`, `credential`, `key`, or `claim:` and its name. */
  readonly by: string
  readonly max: number
  readonly windowMs: number
}

export type RateLimiterOptions = {
  /** Clients remembered for each limit. */
  readonly mostKeys: number
  /** Undefined: counts in this process. */
  readonly store: RateLimitStore | undefined
  readonly clock: Pick<Clock, 'monotonic'>
  /** Salted hash of a credential. */
  readonly partitionOf: (credential: string) => string
}

/** The client of a request. */
export type RateLimitCaller = {
  readonly address: string
  readonly credential: string | undefined
  /** Verified by `access` of the service. */
  readonly identity?: Pick<Identity, 'apiKey' | 'claims'> | undefined
}

const claimPrefix = 'claim:'

/** What a limit counts a client by; undefined where the request does not have it. */
const countedBy = (by: string, { credential, identity }: RateLimitCaller): string | undefined => {
  if (by === 'credential') return credential
  if (by === 'key') return identity?.apiKey
  return by.startsWith(claimPrefix) ? identity?.claims.get(by.slice(claimPrefix.length)) : undefined
}

/** The key of a client within a limit. */
const rateLimitKey = (
  { by }: Pick<RateLimit, 'by'>,
  caller: RateLimitCaller,
  partitionOf: (credential: string) => string,
): string => {
  const counted = countedBy(by, caller)
  return counted === undefined ? `address ${addressGroup(caller.address)}` : `${by} ${partitionOf(counted)}`
}

/** One limit with its counts. */
export type RateLimiter = { count(caller: RateLimitCaller): Promise<RateLimitVerdict> }

/**
 * Counts in this process. The library's own store ends a window by the wall clock: after a clock is set back by an hour it would
 * refuse a client for an hour longer.
 */
const countedHere = (mostKeys: number, clock: Pick<Clock, 'monotonic'>): RateLimitStore => {
  const windows = new Map<string, { count: number; readonly endsMs: number }>()
  return {
    async increment(_limit, key, windowMs) {
      const nowMs = clock.monotonic()
      const last = windows.get(key)
      const window = last !== undefined && last.endsMs > nowMs ? last : { count: 0, endsMs: nowMs + windowMs }
      window.count += 1
      // The least recently active client is the first key, and is evicted first.
      windows.delete(key)
      windows.set(key, window)
      if (windows.size > mostKeys) windows.delete(windows.keys().next().value ?? key)
      return { count: window.count, leftMs: window.endsMs - nowMs }
    },
  }
}

type Counted = (error: Error | null, result?: { current: number; ttl: number }) => void

/** The library's interface of a store: it creates one instance, then one for each limit. */
const adapted = (store: RateLimitStore, limit: string) =>
  class Adapter {
    incr(key: string, counted: Counted, windowMs: number): void {
      store.increment(limit, key, windowMs).then(
        ({ count, leftMs }) => counted(null, { current: count, ttl: leftMs }),
        (error: Error) => counted(error),
      )
    }
    child(): Adapter {
      return this
    }
  }

/**
 * A limit counted by @fastify/rate-limit without a hook: routes are known only after a path is canonical, and items of a batch
 * are counted when they run. A store that fails lets requests through.
 */
export const createRateLimiter = async (
  limit: RateLimit,
  { mostKeys, clock, store = countedHere(mostKeys, clock), partitionOf }: RateLimiterOptions,
): Promise<RateLimiter> => {
  const server = fastify({ logger: false })
  await server.register(fastifyRateLimit, { global: false, store: adapted(store, limit.name) })
  await server.ready()
  const options = {
    max: limit.max,
    timeWindow: limit.windowMs,
    skipOnError: true,
    keyGenerator: (request: FastifyRequest) => request.id,
  }
  const check = server.createRateLimit(options)
  return {
    count: async (caller) => {
      // The library reads only the key of the request.
      const request = {
        id: rateLimitKey(limit, caller, partitionOf),
        routeOptions: {},
      } as unknown as FastifyRequest
      const result = await check(request)
      const { name, max, windowMs } = limit
      if (result.isAllowed) return { name, max, windowMs, remaining: max, resetSeconds: 0, exceeded: false }
      const { remaining, ttlInSeconds, isExceeded } = result
      return { name, max, windowMs, remaining, resetSeconds: ttlInSeconds, exceeded: isExceeded }
    },
  }
}
