import type { ChunkResult } from './events.ts'

/** What upstream batches have shown of an upstream. */
export type ChunkOutcomes = {
  /** Milliseconds of an item in an upstream batch while no other batch is under way, a moving mean; undefined before the first. */
  readonly itemMs: number | undefined
  /** Upstream batches in flight, all batches together, that it seems able to work on: not whole between two steps. */
  readonly limit: number
  /** Until then it is taken to have no batch route. */
  readonly noRouteUntilMs: number
  /** Until then its batches are taken to break: one broken item costs the answers of all beside it. */
  readonly brokenUntilMs: number
}

/** Nothing seen yet. */
export const noOutcomes: ChunkOutcomes = {
  itemMs: undefined,
  limit: 8,
  noRouteUntilMs: Number.NEGATIVE_INFINITY,
  brokenUntilMs: Number.NEGATIVE_INFINITY,
}

/** WordPress since 5.6 has the route, and plugins that take it away are not switched on and off by the minute. */
const noRouteMs = 5 * 60_000
/** Long enough that a poisonous item does not cost the answers beside it again and again. */
const brokenMs = 30_000

const leastLimit = 2
/** So many times the cost of a chunk by itself is too long, and so many times is little. */
const tooLong = 4
const little = 2
const newestShare = 0.3

/**
 * Down by a third of a place when a chunk took far longer than by itself, for then chunks only wait for each other inside the
 * upstream, where the timeout runs; slowly up while they do not.
 */
const nextLimit = ({ limit, itemMs }: ChunkOutcomes, items: number, ms: number): number => {
  if (itemMs === undefined) return limit
  if (ms > tooLong * itemMs * items) return Math.max(leastLimit, limit - 1 / 3)
  return ms < little * itemMs * items ? limit + 1 / limit : limit
}

/** An upstream batch that has ended. */
export type EndedChunk = {
  readonly result: ChunkResult
  readonly items: number
  readonly ms: number
  /** Its time says what its items cost: nothing else of the gateway was there to wait for. */
  readonly isAlone: boolean
}

/** With one more upstream batch, which may take so long (0 = no bound). Pure. */
export const withChunk = (
  before: ChunkOutcomes,
  { result, items, ms, isAlone }: EndedChunk,
  mostMs: number,
  nowMs: number,
): ChunkOutcomes => {
  if (result === 'not-run') return { ...before, noRouteUntilMs: nowMs + noRouteMs }
  const after = result === 'broken' ? { ...before, brokenUntilMs: nowMs + brokenMs } : before
  const timedOut = result === 'broken' && mostMs > 0 && ms > mostMs
  if (result !== 'answered' && !timedOut) return after
  const { itemMs = ms / items } = before
  return {
    ...after,
    limit: timedOut ? Math.max(leastLimit, before.limit / 2) : nextLimit(before, items, ms),
    itemMs: isAlone ? itemMs + newestShare * (ms / items - itemMs) : before.itemMs,
  }
}

/** Items that one upstream batch may have, of `most`: the upstream's timeout runs while all of them are worked on. Pure. */
export const fittingItems = ({ itemMs }: ChunkOutcomes, most: number, mostMs: number): number =>
  itemMs === undefined || mostMs === 0 ? most : Math.max(1, Math.min(most, Math.floor(mostMs / itemMs)))
