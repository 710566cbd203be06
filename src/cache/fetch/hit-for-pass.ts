import { LRUCache } from 'lru-cache'

/**
 * Keys whose last response was for one client only: requests for them are sent in parallel from the start instead of waiting for
 * each other. Bounded in bytes, because clients choose keys. `now` is a reading of the monotonic clock.
 */
export type HitForPass = {
  add(key: string, now: number): void
  has(key: string, now: number): boolean
  delete(key: string): void
}

const maxBytes = 1_048_576
const overheadBytes = 100
/** Long enough to help a busy key, short enough to notice that its responses have become shareable. */
const lifetimeMs = 5_000

export const createHitForPass = (): HitForPass => {
  const until = new LRUCache<string, number>({
    maxSize: maxBytes,
    sizeCalculation: (_, key) => key.length + overheadBytes,
  })
  return {
    add: (key, now) => {
      until.set(key, now + lifetimeMs)
    },
    has: (key, now) => (until.get(key) ?? 0) > now,
    delete: (key) => {
      until.delete(key)
    },
  }
}
