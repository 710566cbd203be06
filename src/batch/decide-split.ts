import { bestWay, chooseChunks, type Experience } from './choose-chunks.ts'
import type { SplitReason } from './events.ts'
import type { Cut } from './plan-units.ts'
import type { Way } from './promised-ms.ts'
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

/** Why the items go one by one without a look at what is faster; undefined when nothing says so. */
const itemsReason = (
  { mode, runnable }: SplitInput,
  { noRouteUntilMs, brokenUntilMs }: Learned,
  nowMs: number,
): SplitReason | undefined => {
  if (mode === 'item') return 'configured'
  if (runnable <= fewItems) return 'few-items'
  if (nowMs < noRouteUntilMs) return 'no-batch-route'
  return mode === 'auto' && nowMs < brokenUntilMs ? 'broken-chunks' : undefined
}

type WayChoice = { readonly way: Way; readonly reason: SplitReason }

/** Nothing is learned from such a batch, so nothing is tried out with it either. */
const knownWay = ({ active, mode, concurrency }: SplitInput, learned: Learned): WayChoice => {
  const best = bestWay(learned.experience, concurrency)?.way ?? learned.firstGuess
  const reason = active > 1 ? 'shared' : 'measured'
  if (best === 0 && mode === 'auto') return { way: 0, reason }
  // The upstream's parallelism is for all batches together; more requests would only add start-up costs.
  return { way: Math.max(1, Math.round((best || learned.firstGuess) / active)), reason }
}

const wayOf = (input: SplitInput, learned: Learned): WayChoice => {
  const { mode, runnable, groups, active } = input
  // Everything waits for something: side by side nothing runs, and one request saves the start-up of all but one.
  if (groups === 1) return { way: 1, reason: 'one-group' }
  if (active > 1 || groups < runnable) return knownWay(input, learned)
  return chooseChunks(learned.experience, {
    mostChunks: Math.min(input.concurrency, groups),
    firstGuess: learned.firstGuess,
    items: mode === 'auto',
    count: runnable,
    atOnce: input.concurrency,
    cost: learned.cost,
  })
}

/** How a batch is sent. Pure: settings, the batch and what was learned decide, at the given moment. */
export const decideSplit = (input: SplitInput, learned: Learned, nowMs: number): SplitDecision => {
  const mostItems = mostItemsOf(input, learned.cost)
  const byItem = itemsReason(input, learned, nowMs)
  if (byItem !== undefined) return { cut: { kind: 'items' }, reason: byItem, mostItems }
  const { way, reason } = wayOf(input, learned)
  if (way === 0) return { cut: { kind: 'items' }, reason, mostItems }
  const count = Math.max(Math.min(way, input.groups), Math.ceil(input.runnable / mostItems))
  return { cut: { kind: 'chunks', count }, reason, mostItems }
}
