import type { Clock } from '../clock.ts'
import { type ChunkOutcomes, fittingItems, noOutcomes, withChunk } from './chunk-outcomes.ts'
import type { ChunkResult, SplitReason } from './events.ts'
import { type Measured, nextSplit, type Parts, splitsUpTo, unmeasured, withBatch } from './measured-split.ts'

/** Settings of the split of one service. */
export type SplitterOptions = {
  /** The setting `batch.split`. */
  readonly mode: 'item' | 'chunk' | 'whole' | 'auto'
  readonly concurrency: number
  /** Most items that the upstream takes in one batch. */
  readonly mostItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly mostChunkMs: number
  readonly clock: Clock
}

/** What a split depends on: items that will run, groups of them that never wait for each other, and what they do. */
export type SplitInput = { readonly runnable: number; readonly groups: number; readonly work: string }

/** What batches have shown of an upstream: outlives the settings that they were sent under. */
export type SplitMemory = {
  /** By kind of batch, the one measured last at the end; of a bounded size. */
  readonly measured: Map<string, Measured>
  chunks: ChunkOutcomes
}

/** Knows nothing. */
export const createSplitMemory = (): SplitMemory => ({ measured: new Map(), chunks: noOutcomes })

const singly: Parts = Number.POSITIVE_INFINITY
const mostKinds = 100

/** Decides how the batches of one service are sent, by the times that earlier ones took. */
export type Splitter = ReturnType<typeof createSplitter>
/** The split of one batch, and where its times go. */
export type BatchSplit = ReturnType<Splitter['begin']>

/** Starts with what is known of the upstream, and adds to it. */
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
    // A chunk of one item would be a request of its own.
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
        /** An upstream batch of so many items has ended, after so long. */
        chunkEnded(result: ChunkResult, items: number, ms: number): void {
          if (result !== 'answered') asDecided = false
          const ended = { result, items, ms, isAlone: isAlone() && reason !== 'explored' }
          memory.chunks = withChunk(memory.chunks, ended, mostChunkMs, clock.monotonic())
        },
        /** All items have been answered, after so long; `undefined` when the batch ended in another way. */
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
