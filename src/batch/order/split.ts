import type { Clock } from '../../clock.ts'
import type { SplitReason, UpstreamBatchResult } from '../events.ts'

/** How many upstream requests a batch becomes: 1 = it is sent whole; infinitely many = each item is a separate request. */
export type SplitParts = number

const singly: SplitParts = Number.POSITIVE_INFINITY

/** An upstream with the route loses it only by a change of its plugins, which is rare. */
const noRouteMs = 5 * 60_000

/** Long enough that an item that breaks an upstream batch does not cost the responses beside it again and again. */
const brokenMs = 30_000

const newestShare = 0.3

type SplitOptions = {
  readonly mode: 'item' | 'chunk' | 'whole' | 'auto'
  readonly concurrency: number
  /** Of one upstream batch. */
  readonly maxItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly maxUpstreamBatchMs: number
  readonly clock: Clock
}

/** What a split depends on: items that will run, and groups of them that never wait for each other. */
type SplitInput = { readonly runnable: number; readonly groups: number }

export type BatchSplit = {
  readonly parts: SplitParts
  readonly reason: SplitReason
  /** Of one upstream batch. */
  readonly maxItems: number
}

/**
 * Decides how the batches of one service are sent, by a fixed rule: a second upstream batch at the same time saves almost half of the
 * time of one (docs/evidence/batch.md); a third one adds a start-up of the program and saves little.
 */
export class Splitter {
  readonly #options: SplitOptions
  #active = 0
  /** Milliseconds of an item in an upstream batch, a moving mean; undefined before the first. */
  #itemMs: number | undefined
  /** Until then the upstream is taken to have no batch route. */
  #noRouteUntilMs = Number.NEGATIVE_INFINITY
  /** Until then its batches are taken to break: one broken item costs the responses of all beside it. */
  #brokenUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: SplitOptions) {
    this.#options = options
  }

  /** The split of a batch that begins; `ended` must follow. */
  begin(input: SplitInput): BatchSplit {
    this.#active += 1
    return { ...this.#decide(input), maxItems: this.#fittingItems() }
  }

  ended(): void {
    this.#active -= 1
  }

  upstreamBatchEnded(result: UpstreamBatchResult, items: number, ms: number): void {
    const now = this.#options.clock.monotonic()
    if (result === 'not-run') this.#noRouteUntilMs = now + noRouteMs
    if (result === 'broken') this.#brokenUntilMs = now + brokenMs
    if (result !== 'answered') return
    const before = this.#itemMs ?? ms / items
    this.#itemMs = before + newestShare * (ms / items - before)
  }

  #decide({ runnable, groups }: SplitInput): { readonly parts: SplitParts; readonly reason: SplitReason } {
    const { mode, clock, concurrency } = this.#options
    if (mode === 'item') return { parts: singly, reason: 'configured' }
    if (runnable <= (mode === 'chunk' ? 2 : 1)) return { parts: singly, reason: 'few-items' }
    if (clock.monotonic() < this.#noRouteUntilMs) return { parts: singly, reason: 'no-batch-route' }
    if (mode === 'auto' && clock.monotonic() < this.#brokenUntilMs)
      return { parts: singly, reason: 'broken-chunks' }
    if (mode === 'whole') return { parts: 1, reason: 'configured' }
    // Everything waits for something: nothing would run side by side.
    if (groups === 1) return { parts: 1, reason: 'one-group' }
    // Batches that are in flight together run side by side already.
    if (this.#active > 1) return { parts: 1, reason: 'beside-others' }
    return { parts: Math.min(2, concurrency), reason: 'two-parts' }
  }

  /** Items that fit into one upstream batch: the upstream's timeout runs while all of them are worked on. */
  #fittingItems(): number {
    const { maxItems, maxUpstreamBatchMs } = this.#options
    if (this.#itemMs === undefined || maxUpstreamBatchMs === 0) return maxItems
    return Math.max(1, Math.min(maxItems, Math.floor(maxUpstreamBatchMs / this.#itemMs)))
  }
}
