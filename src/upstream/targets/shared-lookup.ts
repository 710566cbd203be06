import dns from 'node:dns'
import type { LookupFunction } from 'node:net'

type Found = Parameters<LookupFunction>[2]

/**
 * Connections to one name share a running lookup. Each lookup occupies one of two threads (libuv keeps the others free for files),
 * even after its requests have ended, so lookups at a silent name server would block those for all other upstreams. Results are not
 * cached. The price: a name whose server has recovered is found when the system gives up the running lookup, after some seconds
 * (resolv.conf, timeout and attempts).
 */
export const sharedLookup = (lookup: LookupFunction): LookupFunction => {
  const underWay = new Map<string, Found[]>()
  return (name, options, found) => {
    const asked = JSON.stringify([name, options])
    const others = underWay.get(asked)
    if (others !== undefined) {
      others.push(found)
      return
    }
    const waiting = [found]
    underWay.set(asked, waiting)
    const tell: Found = (...answer) => {
      underWay.delete(asked)
      for (const one of waiting) one(...answer)
    }
    try {
      lookup(name, options, tell)
    } catch (error) {
      // One that is replaced may throw; without an answer all who look for this name from here on would wait for it.
      if (!underWay.has(asked)) throw error
      tell(error instanceof Error ? error : new Error(String(error)), [])
    }
  }
}

/**
 * For all services, and for a configuration and the one before it. Node's own is looked up each time: who watches or replaces
 * it, as tools for tracing do, does so in its module.
 */
export const systemLookup = sharedLookup((name, options, found) => dns.lookup(name, options, found))
