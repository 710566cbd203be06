import dns from 'node:dns'
import type { LookupFunction } from 'node:net'

type LookupCallback = Parameters<LookupFunction>[2]

/**
 * Connections to one name share a running lookup. Each lookup occupies one of two threads (libuv keeps the others free for files),
 * even after its requests have ended, so lookups of one name at a silent name server would block those of all others: of upstreams,
 * Redis, issuers of tokens, receivers of purges and the collector of traces. Results are not cached. The price: a name whose server
 * has recovered is found when the system gives up the running lookup, after some seconds (resolv.conf, timeout and attempts).
 */
export const sharedLookup = (lookup: LookupFunction): LookupFunction => {
  const inFlight = new Map<string, LookupCallback[]>()
  return (name, options, callback) => {
    const lookupKey = JSON.stringify([name, options])
    const others = inFlight.get(lookupKey)
    if (others !== undefined) {
      others.push(callback)
      return
    }
    const waiting = [callback]
    inFlight.set(lookupKey, waiting)
    const settle: LookupCallback = (...result) => {
      inFlight.delete(lookupKey)
      for (const settleCallback of waiting) settleCallback(...result)
    }
    try {
      lookup(name, options, settle)
    } catch (error) {
      // A replaced `dns.lookup` may throw. Without a result, all later lookups of this name would wait for this one.
      if (!inFlight.has(lookupKey)) throw error
      settle(error instanceof Error ? error : new Error(String(error)), [])
    }
  }
}

/**
 * Shared by all services, and by a configuration and the one before it. It reads `dns.lookup` at each call, because tools for tracing
 * replace that function in its module.
 */
export const systemLookup = sharedLookup((name, options, callback) => dns.lookup(name, options, callback))
