import type { RequestCost } from './request-cost.ts'

/** Chunks in flight, all batches together: a number that is not whole between two steps. */
export type ChunkLimit = number

/** To begin with, and the least that it falls to. */
export const firstChunkLimit: ChunkLimit = 8
const least = 2

/** So many times the cost of a chunk by itself is too long, and so many times is little. */
const tooLong = 4
const little = 2

/**
 * The limit after a chunk has ended: down by a third of a place when it took far longer than by itself, for then chunks only wait
 * for each other inside the upstream, where the timeout runs; slowly up while they do not.
 */
export const nextChunkLimit = (
  limit: ChunkLimit,
  chunk: { readonly items: number; readonly ms: number; readonly timedOut: boolean },
  cost: RequestCost | undefined,
): ChunkLimit => {
  if (chunk.timedOut) return Math.max(least, limit / 2)
  if (cost === undefined) return limit
  const byItself = cost.startUpMs + cost.itemMs * chunk.items
  if (chunk.ms > tooLong * byItself) return Math.max(least, limit - 1 / 3)
  return chunk.ms < little * byItself ? limit + 1 / limit : limit
}
