import { createHmac, hash } from 'node:crypto'
import { partsOfKey } from '../cache/cache-key.ts'
import type { Invalidation } from '../cache/invalidation.ts'
import { memoize } from '../http/memo.ts'

/** 48 bits. Of one case, since Cloudflare compares tags without regard to it. */
const digits = 12

/** 1.7 KB with separators: the whole head of a response must fit into 4 KB for nginx. Next.js takes no more than 128 tags. */
const maxTags = 128

/** The service of a tag: in front of a slash, or in a key of a target (cache/cache-key.ts). */
const serviceOf = (tag: string): string =>
  /^\d+:/.test(tag) ? partsOfKey(tag).service : (tag.split('/', 1)[0] ?? '')

/**
 * The tags that receivers get for those of the cache: opaque, and the same in every gateway with the same key. `tagOfAll`: the tag that
 * every stored response of the service has.
 */
export const createOutwardTags = (service: string, key: string, tagOfAll: string | undefined) => {
  // Without the key: another key must not lose what receivers have stored under these.
  const fixed = (name: string): string => hash('sha256', `trellis ${name} ${service}`, 'hex').slice(0, digits)
  const everything = fixed('everything')
  const many = fixed('many')
  const keyed = memoize((tag) => createHmac('sha256', key).update(tag).digest('hex').slice(0, digits), 4096)
  const outward = (tag: string): string => (tag === tagOfAll ? everything : keyed(tag))

  /** What one invalidation reaches of this service. */
  const reachedBy = (invalidation: Invalidation): string | undefined => {
    switch (invalidation.kind) {
      case 'all':
        return everything
      case 'prefix':
        return invalidation.service === service ? everything : undefined
      case 'tag':
      case 'quarantine':
        return serviceOf(invalidation.tag) === service ? outward(invalidation.tag) : undefined
      case 'documents':
        // Receivers do not store them.
        return undefined
    }
  }

  return {
    /** On every response of the service. */
    everything,
    /** Every purge of the service has one of them. */
    coarse: [everything, many],
    /** Of a response: a coarser one in place of too many. */
    of: (tags: readonly string[]): readonly string[] => {
      const all = new Set([everything, ...tags.map(outward)])
      return all.size > maxTags ? [everything, many] : [...all]
    },
    /** Of invalidations; empty where they do not reach the service. */
    reached: (invalidations: readonly Invalidation[]): ReadonlySet<string> => {
      const all = new Set(invalidations.flatMap((invalidation) => reachedBy(invalidation) ?? []))
      if (all.has(everything)) return new Set([everything])
      return all.size === 0 ? all : all.add(many)
    },
  }
}
