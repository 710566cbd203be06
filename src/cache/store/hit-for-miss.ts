import { LRUCache } from 'lru-cache/raw'

const maxBytes = 1_048_576

const overheadOfKey = 100

/** Long enough to help a busy key, short enough to find out that its responses have become shareable. */
const hitForMissMs = 5_000

/**
 * Keys whose last response was not shareable, or too large: requests for them are sent in parallel from the start instead of waiting
 * for each other, and the first shareable response is stored and ends that. Bounded in bytes, because clients choose keys. `now` is a
 * reading of the monotonic clock.
 */
export class HitForMiss {
  readonly #until = new LRUCache<string, number>({
    maxSize: maxBytes,
    sizeCalculation: (_, key) => key.length + overheadOfKey,
  })

  add(key: string, now: number): void {
    this.#until.set(key, now + hitForMissMs)
  }

  has(key: string, now: number): boolean {
    return (this.#until.get(key) ?? 0) > now
  }

  delete(key: string): void {
    this.#until.delete(key)
  }
}
