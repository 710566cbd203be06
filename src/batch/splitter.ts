import type { Clock } from '../clock.ts'
import type { ChunkResult, SplitReason } from './events.ts'

/** How many upstream requests a batch becomes: 1 = it is sent whole; infinitely many = each item is a separate request. */
export type Parts = number

/** A split other than the best: the logarithm of its time against the best one's, and when it was measured. */
type Rival = { readonly ratio: number; readonly trials: number; readonly atBatch: number }

/** The measurements of one kind of batch. */
type Measured = {
  readonly best: Parts
  /** Logarithm of the best one's milliseconds per item, a moving mean; undefined before the first. */
  readonly level: number | undefined
  readonly atMs: number
  readonly batches: number
  /** The previous batch was a trial. The next one uses the best split, so that both are measured at about the same time. */
  readonly tried: boolean
  readonly rivals: ReadonlyMap<Parts, Rival>
}

/** Nothing measured yet. */
const unmeasured = (best: Parts): Measured => {
  return { best, level: undefined, atMs: 0, batches: 0, tried: false, rivals: new Map() }
}

const steps = [1, 2, 3, 4, 6, 8, 12, 16, 25, Number.POSITIVE_INFINITY]

/** The splits to choose from: into at most `most` upstream batches, and into single items if `items`. */
const splitsUpTo = (most: number, items: boolean): readonly Parts[] =>
  steps.filter((step) => step <= most || (items && step === Number.POSITIVE_INFINITY))

/** The trials of one rival may cost this share of the time of all batches. */
const trialShare = 0.01
/** A rival with more requests must be faster by this share; one with fewer must only not be slower. */
const worthMoreRequests = Math.log(0.95)
/** One measure counts at most as twice or half of what was expected: a hiccup decides nothing. */
const mostSurprise = Math.log(2)
const levelShare = 0.2
/** The first batches run code that has not been compiled, here and in PHP. */
const coldBatches = 3
const rivalShare = 0.5
/** Before that it must be faster by this share. */
const enoughTrials = 2
const clearlyBetter = Math.log(0.8)
/** Older measurements do not count. */
const oldMs = 60_000
const oldBatches = 30

/** Whole batches and sizes near the best one are tried soon; distant sizes wait longer, because they may be slow. */
const nearby: Rival = { ratio: 0, trials: 0, atBatch: coldBatches }
const farOff: Rival = { ...nearby, ratio: Math.log(1.4) }

/** One trial alone may be wrong: the second follows sooner. */
const dueAt = ({ ratio, trials, atBatch }: Rival): number =>
  trials < enoughTrials
    ? atBatch + Math.max(2, Math.expm1(ratio) / (2 * trialShare))
    : atBatch + Math.max(8, Math.expm1(ratio) / trialShare)

/**
 * The split of the next batch: the best one, or now and then another to see whether it is better by now. All `active`
 * batches share the requests that the upstream can process at once. Pure.
 */
const nextSplit = (
  { best, level, tried, rivals, batches }: Measured,
  splits: readonly Parts[],
  active: number,
): { readonly parts: Parts; readonly reason: 'shared' | 'first-guess' | 'explored' | 'measured' } => {
  const share = Math.max(1, Math.round(best / active))
  const parts = splits.findLast((split) => split <= share) ?? 1
  if (active > 1) return { parts, reason: 'shared' }
  if (level === undefined) return { parts, reason: 'first-guess' }
  if (tried || parts !== best) return { parts, reason: 'measured' }
  const bestAt = splits.indexOf(best)
  const isNear = (at: number): boolean => at === 0 || (at >= bestAt - 1 && at <= bestAt + 2)
  const due = splits
    .map((split, at) => ({ split, at, ...(rivals.get(split) ?? (isNear(at) ? nearby : farOff)) }))
    .filter(({ split, at }) => split !== best && (isNear(at) || at === splits.length - 1))
    .filter((rival) => dueAt(rival) <= batches)
    .sort((one, other) => dueAt(one) - dueAt(other))[0]
  return due === undefined ? { parts, reason: 'measured' } : { parts: due.split, reason: 'explored' }
}

const bounded = (surprise: number): number => Math.max(-mostSurprise, Math.min(mostSurprise, surprise))

/** With one more batch, that took `msPerItem`. Pure. */
const withBatch = (before: Measured, parts: Parts, msPerItem: number, nowMs: number): Measured => {
  const { best, level, rivals } = before
  const batches = before.batches + 1
  const measured = Math.log(Math.max(msPerItem, 1e-3))
  if (level === undefined || parts === best) {
    const isOld = level === undefined || nowMs - before.atMs > oldMs || batches <= coldBatches
    const next = isOld ? measured : level + levelShare * bounded(measured - level)
    return { ...before, best: parts, level: next, atMs: nowMs, batches, tried: false }
  }
  const earlier = rivals.get(parts)
  const known = earlier !== undefined && batches - earlier.atBatch <= oldBatches ? earlier : undefined
  const now = measured - level
  const ratio = known === undefined ? now : known.ratio + rivalShare * bounded(now - known.ratio)
  const trials = (known?.trials ?? 0) + 1
  const tried = new Map(rivals).set(parts, { ratio, trials, atBatch: batches })
  const worth = (parts < best ? 0 : worthMoreRequests) + (trials < enoughTrials ? clearlyBetter : 0)
  if (ratio > worth) {
    return { ...before, batches, tried: true, rivals: tried }
  }
  // It is the best one from now on, and all others are compared with it.
  const others = [...tried].map(([one, rival]) => [one, { ...rival, ratio: rival.ratio - ratio }] as const)
  const next = new Map(others).set(best, { ratio: -ratio, trials: 1, atBatch: batches })
  return { ...before, best: parts, level: level + ratio, batches, tried: false, rivals: next }
}

/** What upstream batches have shown of an upstream. */
export type ChunkOutcomes = {
  /** Milliseconds of an item in an upstream batch while no other batch is in flight, a moving mean; undefined before the first. */
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
/** Multiples of the cost of a chunk by itself. */
const tooLong = 4
const little = 2
const newestShare = 0.3

/**
 * Down by a third when a chunk took far longer than by itself, for then chunks only wait for each other inside the
 * upstream, where the timeout runs; slowly up while they do not.
 */
const nextLimit = ({ limit, itemMs }: ChunkOutcomes, items: number, ms: number): number => {
  if (itemMs === undefined) return limit
  if (ms > tooLong * itemMs * items) return Math.max(leastLimit, limit - 1 / 3)
  return ms < little * itemMs * items ? limit + 1 / limit : limit
}

export type EndedChunk = {
  readonly result: ChunkResult
  readonly items: number
  readonly ms: number
  /** No other batch of the gateway was in flight, so its time is the cost of its items. */
  readonly isAlone: boolean
}

/** With one more upstream batch, which may take `mostMs` (0 = no bound). Pure. */
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

type SplitterOptions = {
  readonly mode: 'item' | 'chunk' | 'whole' | 'auto'
  readonly concurrency: number
  readonly mostItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly mostChunkMs: number
  readonly clock: Clock
}

/** What a split depends on: items that will run, groups of them that never wait for each other, and what they do. */
type SplitInput = { readonly runnable: number; readonly groups: number; readonly work: string }

/** What batches have shown of an upstream: outlives the settings that they were sent under. */
export type SplitMemory = {
  /** By kind of batch, the one measured last at the end; of a bounded size. */
  readonly measured: Map<string, Measured>
  chunks: ChunkOutcomes
}

export const createSplitMemory = (): SplitMemory => ({ measured: new Map(), chunks: noOutcomes })

const singly: Parts = Number.POSITIVE_INFINITY
const mostKinds = 100

/** Decides how the batches of one service are sent, by the times that earlier ones took. */
export type Splitter = ReturnType<typeof createSplitter>
/** The split of one batch, and where its times go. */
export type BatchSplit = ReturnType<Splitter['begin']>

/** Starts with earlier measurements of the upstream, and adds to them. */
export const createSplitter = (options: SplitterOptions, memory: SplitMemory) => {
  const { clock, mode, mostChunkMs } = options
  const { measured } = memory
  let [active, begun] = [0, 0]

  const itemsReason = (runnable: number): SplitReason | undefined => {
    if (mode === 'item') return 'configured'
    if (runnable <= (mode === 'chunk' ? 2 : 1)) return 'few-items'
    if (clock.monotonic() < memory.chunks.noRouteUntilMs) return 'no-batch-route'
    return mode === 'auto' && clock.monotonic() < memory.chunks.brokenUntilMs ? 'broken-chunks' : undefined
  }

  const decide = (groups: number, known: Measured): { parts: Parts; reason: SplitReason } => {
    if (mode === 'whole') return { parts: 1, reason: 'configured' }
    // Everything waits for something: side by side nothing runs.
    if (groups === 1) return { parts: 1, reason: 'one-group' }
    // A chunk of one item would be a separate request.
    const most = Math.min(options.concurrency, Math.ceil(groups / 2))
    return nextSplit(known, splitsUpTo(most, mode === 'auto'), active)
  }

  return {
    /** Upstream batches in flight at once, all batches together, that the upstream seems able to work on. */
    mostChunksAtOnce: () => Math.floor(memory.chunks.limit),
    begin({ runnable, groups, work }: SplitInput) {
      active += 1
      begun += 1
      const [together, number] = [active, begun]
      const mostItems = fittingItems(memory.chunks, options.mostItems, mostChunkMs)
      const kind = [work, [2, 5, 12].find((size) => runnable <= size), groups < runnable].join(' ')
      const guess = [...measured.values()].findLast(({ best }) => best !== singly)?.best ?? 2
      const known = (): Measured => measured.get(kind) ?? unmeasured(guess)
      const byItem = itemsReason(runnable)
      const { parts, reason } = byItem ? { parts: singly, reason: byItem } : decide(groups, known())
      const isCompared = reason === 'first-guess' || reason === 'explored' || reason === 'measured'
      let asDecided = isCompared && (parts === singly || parts >= Math.ceil(runnable / mostItems))
      // Beside other batches the one with more requests takes their time, which looks like a gain and is none.
      const isAlone = (): boolean => together === 1 && number === begun
      return {
        ...{ parts, reason, mostItems },
        chunkEnded(result: ChunkResult, items: number, ms: number): void {
          if (result !== 'answered') asDecided = false
          const ended = { result, items, ms, isAlone: isAlone() && reason !== 'explored' }
          memory.chunks = withChunk(memory.chunks, ended, mostChunkMs, clock.monotonic())
        },
        /** All items have been answered; `undefined` when the batch ended in another way. */
        ended(wholeMs: number | undefined): void {
          active -= 1
          if (wholeMs === undefined || !asDecided || !isAlone()) return
          const next = withBatch(known(), parts, wholeMs / runnable, clock.monotonic())
          measured.delete(kind)
          measured.set(kind, next)
          if (measured.size > mostKinds) measured.delete([...measured.keys()][0] ?? kind)
        },
      }
    },
  }
}
