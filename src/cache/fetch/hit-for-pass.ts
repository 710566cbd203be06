import { LRUCache } from 'lru-cache'

/**
 * Keys whose last answer was fit for one reader only. Their readers go side by side from the start instead of each
 * waiting to learn it again. Bounded in bytes: keys come from clients.
 */
export type PassMemo = {
  note(key: string, monotonicNow: number): void
  has(key: string, monotonicNow: number): boolean
  forget(key: string): void
}

const keptBytes = 1_048_576
const entryOverheadBytes = 100
/** Long enough to spare a busy key, short enough to notice that it became fit for sharing. */
const rememberedMs = 5_000

export const createPassMemo = (): PassMemo => {
  const until = new LRUCache<string, number>({
    maxSize: keptBytes,
    sizeCalculation: (_, key) => key.length + entryOverheadBytes,
  })
  return {
    note: (key, now) => {
      until.set(key, now + rememberedMs)
    },
    has: (key, now) => (until.get(key) ?? 0) > now,
    forget: (key) => {
      until.delete(key)
    },
  }
}
