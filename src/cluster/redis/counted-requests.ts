import type { RateLimitStore } from '../../pipeline/shared-stores.ts'
import { type Connection, scriptOn } from './connections.ts'

/** The window begins with its first request; a key without an expiry (PTTL -1) gets one again. */
const countScript = `
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return { count, left }
`

const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Counts requests of clients for all instances together. */
export const createCountedRequests = (connection: Connection, prefix: string): RateLimitStore => {
  const count = scriptOn(connection, countScript)
  return {
    increment: async (limit, key, windowMs) => {
      const reply = await count([`${prefix}:r:{${limit}:${key}}`], [windowMs])
      const [counted, leftMs] = (Array.isArray(reply) ? reply : []) as readonly unknown[]
      if (!isAmount(counted) || !isAmount(leftMs)) throw new Error('MALFORMED count')
      return { count: counted, leftMs }
    },
  }
}
