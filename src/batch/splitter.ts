import type { Clock } from '../clock.ts'
import { bestWay, type Experience, noExperience, type Way, withBatch } from './choose-chunks.ts'
import { firstChunkLimit, nextChunkLimit } from './chunk-limit.ts'
import { decideSplit, type SplitDecision, type SplitMode } from './decide-split.ts'
import type { ChunkResult } from './events.ts'
import { noCost, requestCost, withRequest } from './request-cost.ts'

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

/** WordPress since 5.6 has the route, and plugins that take it away are not switched on and off by the minute. */
const noRouteMs = 5 * 60_000
/** Long enough that a poisonous item does not cost the answers beside it again and again. */
const brokenMs = 30_000
const firstGuess: Way = 2

/** Batches of similar size are compared with each other only. */
const sizeClassOf = (runnable: number): number => (runnable <= 5 ? 0 : runnable <= 12 ? 1 : 2)

type Run = { alone: boolean }

/** Starts knowing nothing. */
export const createSplitter = (options: SplitterOptions): Splitter => {
  const { clock } = options
  const experiences: Experience[] = [noExperience, noExperience, noExperience]
  const running = new Set<Run>()
  let sums = noCost
  let chunkLimit = firstChunkLimit
  let noRouteUntilMs = Number.NEGATIVE_INFINITY
  let brokenUntilMs = Number.NEGATIVE_INFINITY

  /** What batches of other sizes have found, the larger ones first. */
  const guess = (): Way => {
    for (const experience of [...experiences].reverse()) {
      const best = bestWay(experience, options.concurrency)
      if (best !== undefined && best.way > 0) return best.way
    }
    return firstGuess
  }

  return {
    mostChunksAtOnce: () => Math.floor(chunkLimit),
    begin({ runnable, groups }) {
      const sizeClass = sizeClassOf(runnable)
      const run: Run = { alone: running.size === 0 }
      for (const other of running) other.alone = false
      running.add(run)
      const learned = {
        experience: experiences[sizeClass] ?? noExperience,
        cost: requestCost(sums),
        firstGuess: guess(),
        noRouteUntilMs,
        brokenUntilMs,
      }
      const decision = decideSplit(
        { ...options, runnable, groups, active: running.size },
        learned,
        clock.monotonic(),
      )
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
          chunkLimit = nextChunkLimit(chunkLimit, chunk, requestCost(sums))
        }
        if (tellsCost(result, ms)) sums = withRequest(sums, items, ms)
      }
      return {
        decision,
        chunkEnded(result, items, ms) {
          if (result !== 'answered') undisturbed = false
          if (result === 'not-run') noRouteUntilMs = clock.monotonic() + noRouteMs
          if (result === 'broken') brokenUntilMs = clock.monotonic() + brokenMs
          learnTime(result, items, ms)
        },
        ended(wholeMs) {
          running.delete(run)
          // Where items wait for each other, or others' batches are under way, the time says little about the way.
          if (wholeMs === undefined || !undisturbed || !run.alone || groups < runnable) return
          experiences[sizeClass] = withBatch(learned.experience, way, wholeMs / runnable)
        },
      }
    },
  }
}
