import type { Clock } from '../clock.ts'
import { bestWay, type Experience, noExperience, withBatch, withChoice } from './choose-chunks.ts'
import { type ChunkLimit, firstChunkLimit, nextChunkLimit } from './chunk-limit.ts'
import { decideSplit, type SplitDecision, type SplitMode } from './decide-split.ts'
import type { ChunkResult } from './events.ts'
import type { Way } from './promised-ms.ts'
import { type CostSums, noCost, requestCost, withRequest } from './request-cost.ts'

/** Settings of the split of one service. */
export type SplitterOptions = {
  readonly mode: SplitMode
  readonly concurrency: number
  /** Most items that the upstream takes in one batch. */
  readonly mostItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly mostChunkMs: number
  readonly clock: Clock
}

/** The split of one batch, and where its teaching goes. */
export type BatchSplit = {
  readonly decision: SplitDecision
  /** An upstream batch of so many items has ended, after so long. */
  chunkEnded(result: ChunkResult, items: number, ms: number): void
  /** All items have been answered, after so long; `undefined` when the batch ended in another way. */
  ended(wholeMs: number | undefined): void
}

/** Decides how the batches of one service are sent and learns from how they went. Bounded: a few numbers for each size of batch. */
export type Splitter = {
  begin(batch: { readonly runnable: number; readonly groups: number }): BatchSplit
  /** Upstream batches in flight at once, all batches together, that the upstream seems able to work on. */
  mostChunksAtOnce(): number
}

/** What batches have taught about an upstream: outlives the settings that they were sent under. */
export type SplitMemory = {
  /** By the class of the size. */
  readonly experiences: Experience[]
  sums: CostSums
  chunkLimit: ChunkLimit
  noRouteUntilMs: number
  brokenUntilMs: number
}

/** Knows nothing. */
export const createSplitMemory = (): SplitMemory => ({
  experiences: [noExperience, noExperience, noExperience],
  sums: noCost,
  chunkLimit: firstChunkLimit,
  noRouteUntilMs: Number.NEGATIVE_INFINITY,
  brokenUntilMs: Number.NEGATIVE_INFINITY,
})

/** WordPress since 5.6 has the route, and plugins that take it away are not switched on and off by the minute. */
const noRouteMs = 5 * 60_000
/** Long enough that a poisonous item does not cost the answers beside it again and again. */
const brokenMs = 30_000
const firstGuess: Way = 2

/** Batches of similar size are compared with each other only. */
const sizeClassOf = (runnable: number): number => (runnable <= 5 ? 0 : runnable <= 12 ? 1 : 2)

type Run = { alone: boolean }

/** Starts with what is known of the upstream, and adds to it. */
export const createSplitter = (options: SplitterOptions, memory: SplitMemory): Splitter => {
  const { clock } = options
  const running = new Set<Run>()

  /** What batches of other sizes have found, the larger ones first. */
  const guess = (): Way => {
    for (const experience of [...memory.experiences].reverse()) {
      const best = bestWay(experience, options.concurrency)
      if (best !== undefined && best.way > 0) return best.way
    }
    return firstGuess
  }

  return {
    mostChunksAtOnce: () => Math.floor(memory.chunkLimit),
    begin({ runnable, groups }) {
      const sizeClass = sizeClassOf(runnable)
      const run: Run = { alone: running.size === 0 }
      for (const other of running) other.alone = false
      running.add(run)
      const experience = (): Experience => memory.experiences[sizeClass] ?? noExperience
      const learned = {
        ...memory,
        experience: experience(),
        cost: requestCost(memory.sums),
        firstGuess: guess(),
      }
      const decision = decideSplit(
        { ...options, runnable, groups, active: running.size },
        learned,
        clock.monotonic(),
      )
      // Counted when it is chosen: what is disturbed has been tried all the same.
      memory.experiences[sizeClass] = withChoice(learned.experience, decision.reason === 'explored')
      const way = decision.cut.kind === 'items' ? 0 : decision.cut.count
      const best = bestWay(learned.experience, options.concurrency)?.way ?? learned.firstGuess
      let undisturbed = true
      // More requests at once than the upstream can work on wait for each other: that is no cost of theirs.
      const runsFreely = (): boolean => run.alone && way > 0 && way <= Math.max(best, 1)
      const timedOut = (result: ChunkResult, ms: number): boolean =>
        result === 'broken' && options.mostChunkMs > 0 && ms > options.mostChunkMs
      const tellsCost = (result: ChunkResult, ms: number): boolean =>
        result === 'answered' ? runsFreely() : run.alone && timedOut(result, ms)
      const learnTime = (result: ChunkResult, items: number, ms: number): void => {
        const chunk = { items, ms, timedOut: timedOut(result, ms) }
        if (result === 'answered' || chunk.timedOut) {
          memory.chunkLimit = nextChunkLimit(memory.chunkLimit, chunk, requestCost(memory.sums))
        }
        if (tellsCost(result, ms)) memory.sums = withRequest(memory.sums, items, ms)
      }
      return {
        decision,
        chunkEnded(result, items, ms) {
          if (result !== 'answered') undisturbed = false
          if (result === 'not-run') memory.noRouteUntilMs = clock.monotonic() + noRouteMs
          if (result === 'broken') memory.brokenUntilMs = clock.monotonic() + brokenMs
          learnTime(result, items, ms)
        },
        ended(wholeMs) {
          running.delete(run)
          // Where items wait for each other, or others' batches are under way, the time says little about the way.
          if (wholeMs === undefined || !undisturbed || !run.alone || groups < runnable) return
          memory.experiences[sizeClass] = withBatch(experience(), way, wholeMs / runnable)
        },
      }
    },
  }
}
