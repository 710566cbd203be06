import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { RateLimitConfig } from '../config/edge-config.ts'
import { matchesRule } from '../config/rule-match.ts'
import { sameSettings } from '../config/same-settings.ts'
import { createRateLimiter, type RateLimiter, type RateLimitStore } from '../edge/rate-limiter.ts'
import type { CountRequest } from '../pipeline/phases/rate-limit.ts'

/** The limits of one configuration, each with its counts. */
export type Limits = {
  readonly counted: readonly { readonly config: RateLimitConfig; readonly limiter: RateLimiter }[]
  readonly count: CountRequest
}

export type LimitsRooms = {
  readonly clock: Clock
  readonly partitionOf: (credential: string) => string
  /** Undefined: counted in this process. */
  readonly store: RateLimitStore | undefined
}

/** Builds the limits of a configuration; one that has not changed goes on with its counts. Undefined when there is none. */
export const buildLimits = async (
  { rateLimits, rateLimitKeys }: Config,
  rooms: LimitsRooms,
  last: Limits | undefined,
): Promise<Limits | undefined> => {
  if (rateLimits.length === 0) return undefined
  const counted = await Promise.all(
    rateLimits.map(async (config) => {
      const known = last?.counted.find((one) => sameSettings(one.config, config))
      return (
        known ?? { config, limiter: await createRateLimiter(config, { ...rooms, mostKeys: rateLimitKeys }) }
      )
    }),
  )
  return {
    counted,
    count: ({ service, method, path, ...caller }) => {
      const matching = counted.filter(
        ({ config }) => config.service === service && matchesRule(config.match, method, path),
      )
      return matching.length === 0
        ? undefined
        : Promise.all(matching.map(({ limiter }) => limiter.count(caller)))
    },
  }
}
