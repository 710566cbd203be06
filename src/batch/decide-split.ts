import { bestWay, chooseChunks, type Experience, type Way } from './choose-chunks.ts'
import type { SplitReason } from './events.ts'
import type { Cut } from './plan-units.ts'
import type { RequestCost } from './request-cost.ts'

/** The setting `batch.split`. */
export type SplitMode = 'item' | 'chunk' | 'auto'

/** A batch as far as its split depends on it. */
export type SplitInput = {
  readonly mode: SplitMode
  /** Items that will run. */
  readonly runnable: number
  /** Groups of items that never wait for each other. */
  readonly groups: number
  /** Upstream requests of one batch in flight, at most. */
  readonly concurrency: number
  /** Batches of the service under way, this one included. */
  readonly active: number
  /** Most items that one upstream batch may have. */
  readonly mostItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly mostChunkMs: number
}

/** What earlier batches have taught. Moments are of the monotonic clock. */
export type Learned = {
  readonly experience: Experience
  readonly cost: RequestCost | undefined
  /** Best number of chunks for batches of another size, or a guess. */
  readonly firstGuess: Way
  /** Until then the upstream is taken to have no batch route. */
  readonly noRouteUntilMs: number
  /** Until then upstream batches are taken to break: one broken item costs the answers of all beside it. */
  readonly brokenUntilMs: number
}

export type SplitDecision = {
  readonly cut: Cut
  readonly reason: SplitReason
  /** Items in one upstream batch, at most. */
  readonly mostItems: number
}

/** So few items gain nothing from sharing a request, and each of them gets an answer of its own. */
const fewItems = 2

/** The upstream's timeout for the head runs while a whole chunk is worked on: what is known to be slow goes in smaller ones. */
const mostItemsOf = ({ mostItems, mostChunkMs }: SplitInput, cost: RequestCost | undefined): number => {
  if (cost === undefined || mostChunkMs === 0 || cost.itemMs === 0) return mostItems
  const fitting = Math.floor((mostChunkMs - cost.startUpMs) / cost.itemMs)
  return Math.max(1, Math.min(mostItems, fitting))
}

const items = (reason: SplitReason, mostItems: number): SplitDecision => ({
  cut: { kind: 'items' },
  reason,
  mostItems,
})

/** How a batch is sent. Pure: settings, the batch and what was learned decide, at the given moment. */
export const decideSplit = (input: SplitInput, learned: Learned, nowMs: number): SplitDecision => {
  const { mode, runnable, groups, active } = input
  const mostItems = mostItemsOf(input, learned.cost)
  const chunks = (count: Way, reason: SplitReason): SplitDecision => {
    const enough = Math.max(1, Math.min(count, groups), Math.ceil(runnable / mostItems))
    return { cut: { kind: 'chunks', count: enough }, reason, mostItems }
  }
  if (mode === 'item') return items('configured', mostItems)
  if (runnable <= fewItems) return items('few-items', mostItems)
  if (nowMs < learned.noRouteUntilMs) return items('no-batch-route', mostItems)
  if (mode === 'auto' && nowMs < learned.brokenUntilMs) return items('broken-chunks', mostItems)
  // Everything waits for something: side by side nothing runs, and one request saves the start-up of all but one.
  if (groups === 1) return chunks(1, 'one-group')
  const mostChunks = Math.min(input.concurrency, groups)
  if (active > 1) {
    const best = bestWay(learned.experience, mostChunks)?.way ?? learned.firstGuess
    if (best === 0 && mode === 'auto') return items('measured', mostItems)
    // The upstream's parallelism is for all batches together; more requests would only add start-up costs.
    return chunks(Math.round((best || learned.firstGuess) / active), 'shared')
  }
  const { firstGuess } = learned
  const { way, reason } = chooseChunks(learned.experience, {
    mostChunks,
    firstGuess,
    items: mode === 'auto',
  })
  return way === 0 ? items(reason, mostItems) : chunks(way, reason)
}
