import type { RequestCost } from './request-cost.ts'

/** A way to send a batch: so many upstream batches at once; 0 = every item a request of its own. */
export type Way = number

/** What a way has cost so far. */
export type WayMeasure = {
  /** Moving mean of the time of the whole batch, divided by its items. */
  readonly msPerItem: number
  readonly samples: number
  /** Number of the batch that was measured last. */
  readonly atBatch: number
}

/** A way with what it has cost. */
export type KnownWay = WayMeasure & { readonly way: Way }

/** What is known beside the measures. */
export type PromiseInput = {
  /** Items of the batch. */
  readonly count: number
  /** Items by themselves that run at once. */
  readonly atOnce: number
  /** Undefined, or without a start-up, where chunks of one size only have been seen. */
  readonly cost: RequestCost | undefined
}

type Measures = { readonly measures: ReadonlyMap<Way, WayMeasure> }

/**
 * The time of n chunks falls as long as the upstream works on all of them at once, and then rises by a start-up for each
 * more: it is convex. So the line through the best and a way on its other side stays below every way on this side.
 */
const beyondLine = (way: Way, best: KnownWay, { measures }: Measures): number => {
  const bounds = [...measures].flatMap(([other, { msPerItem }]) => {
    if (other === 0 || other === best.way || Math.sign(other - best.way) === Math.sign(way - best.way))
      return []
    const slope = (msPerItem - best.msPerItem) / Math.abs(other - best.way)
    return [best.msPerItem - slope * Math.abs(way - best.way)]
  })
  return Math.max(0, ...bounds)
}

/** With room for all of it at once, each request takes its start-up and its items one after the other. */
const ideal = (way: Way, best: KnownWay, { count, atOnce, cost }: PromiseInput): number => {
  if (cost === undefined || cost.startUpMs === 0) return 0
  const { startUpMs, itemMs } = cost
  if (way === 0) return (Math.ceil(count / atOnce) * (startUpMs + itemMs)) / count
  if (way > best.way) return (startUpMs + Math.ceil(count / way) * itemMs) / count
  // Fewer requests save their start-ups at most, where nothing has run side by side.
  return best.msPerItem - ((best.way - way) * startUpMs) / count
}

/** Milliseconds per item that a way cannot fall below, as far as is known; 0 where nothing is. Pure. */
export const promisedMs = (way: Way, best: KnownWay, known: Measures, input: PromiseInput): number => {
  const least = ideal(way, best, input)
  return way === 0 || best.way === 0 ? least : Math.max(least, beyondLine(way, best, known))
}
