import { LRUCache } from 'lru-cache/raw'

const maxPassBytes = 1_048_576

const overheadOfPass = 100

/** Long enough to help a busy key, short enough to find out that its responses have become shareable. */
const passMs = 5_000

/**
 * Keys whose last response was for one client only: requests for them are sent in parallel from the start instead of waiting for
 * each other. Bounded in bytes, because clients choose keys. `now` is a reading of the monotonic clock.
 */
export class HitForPass {
  readonly #until = new LRUCache<string, number>({
    maxSize: maxPassBytes,
    sizeCalculation: (_, key) => key.length + overheadOfPass,
  })

  add(key: string, now: number): void {
    this.#until.set(key, now + passMs)
  }

  has(key: string, now: number): boolean {
    return (this.#until.get(key) ?? 0) > now
  }

  delete(key: string): void {
    this.#until.delete(key)
  }
}
