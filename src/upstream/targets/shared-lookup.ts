import dns from 'node:dns'
import type { LookupFunction } from 'node:net'

type Found = Parameters<LookupFunction>[2]

/**
 * Connections that look for the same name at the same time wait for one lookup. Each takes a thread, even when its requests are gone
 * it any more, and of threads there are two (libuv keeps the others free for files): requests for a name whose server says
 * nothing would keep the names of all other upstreams from being found. What was found is not kept. The price: a name whose server
 * is back is found when the system has given up the running lookup, after some seconds (resolv.conf, timeout and attempts).
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
