import { GatewayError } from '../../errors.ts'
import { EndSignal } from '../../http/end-signal.ts'
import { discard } from '../../http/message.ts'
import type { CacheRead, Forward } from '../cache-read.ts'
import type { ForwardReason } from '../events.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { FetchOutcome, StreamEnd, StreamingOutcome } from './fetch-outcome.ts'
import { InFlightTable } from './in-flight-table.ts'

/** One request to the upstream, or to the shared tier: what it is for and how it is sent. */
export type FetchRequest = Pick<
  CollapsedFetch,
  'read' | 'forward' | 'reason' | 'stored' | 'rangeHeaders' | 'background' | 'since' | 'order' | 'signal'
>

/** Sends a read to the upstream, and stores what may be stored. Throws, or rejects, with what `forward` does. */
export type FetchFunction = (fetch: FetchRequest) => FetchOutcome | Promise<FetchOutcome>

/** One reader's wait for a result: all listeners and callbacks are one object, since each miss makes one. */
class Waiter<Result> {
  readonly #signal: AbortSignal
  readonly #resolve: (result: Result) => void
  readonly #reject: (error: GatewayError) => void
  readonly #leave: () => void

  constructor(
    signal: AbortSignal,
    resolve: (result: Result) => void,
    reject: (error: GatewayError) => void,
    leave: () => void,
  ) {
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    this.#leave = leave
    if (signal.aborted) this.handleEvent()
    else signal.addEventListener('abort', this, { once: true })
  }

  handleEvent(): void {
    this.#leave()
    this.#reject(this.#gone())
  }

  settle(result: Result): void {
    this.#signal.removeEventListener('abort', this)
    // If the result and the abort arrive in the same turn, the abort counts.
    if (this.#signal.aborted) this.#reject(this.#gone())
    else this.#resolve(result)
  }

  #gone(): GatewayError {
    return new GatewayError('client_gone', { cause: this.#signal.reason })
  }
}

const ignore = (): void => {}

export type FetchStart = Pick<
  FetchRequest,
  'read' | 'forward' | 'reason' | 'stored' | 'rangeHeaders' | 'since'
> & {
  /** Secondary key, where the selecting headers are already known; '' otherwise. */
  readonly variant: string
  /** `alone`: later readers cannot join it. `background`: no reader waits for it, later ones may. */
  readonly mode: 'shared' | 'alone' | 'background'
}

/**
 * A fetch that any number of readers wait for. Its states: `waiting` for the head → `streaming` → `ended`, or `waiting` → `ended` when
 * the response is complete or the fetch failed. Until it has ended it is aborted when its last reader leaves. Later readers may join
 * it while it is in the table: from its start until it has ended, an invalidation cuts it, or its last reader leaves.
 */
export class CollapsedFetch {
  readonly key: string
  readonly variant: string
  readonly read: CacheRead
  readonly forward: Forward
  readonly reason: ForwardReason
  /** The stored response that it may validate. */
  readonly stored: StoredResponse | undefined
  /** Range and If-Range of a reader who fetches alone. */
  readonly rangeHeaders: Readonly<Record<string, string>>
  /** No reader waits for it: a stale response was served and is revalidated. */
  readonly background: boolean
  /** Number of the last invalidation when it started: see InvalidationLog. */
  readonly since: number
  /** Fetches are numbered as they start: an older one never replaces the response of a newer one. */
  readonly order: number
  readonly signal = new EndSignal()
  /** Belongs to the table. */
  next: CollapsedFetch | undefined = undefined
  state: 'waiting' | 'streaming' | 'ended' = 'waiting'
  /** Among all fetches in flight. */
  position: number
  readonly #table: InFlightTable<CollapsedFetch>
  #waiters: Waiter<FetchOutcome>[] = []
  /** Readers that wait for the outcome or follow the stream. */
  #readers = 0
  #outcome: FetchOutcome | undefined

  constructor(start: FetchStart, order: number, position: number, table: InFlightTable<CollapsedFetch>) {
    this.key = start.read.key
    this.variant = start.variant
    this.read = start.read
    this.forward = start.forward
    this.reason = start.reason
    this.stored = start.stored
    this.rangeHeaders = start.rangeHeaders
    this.background = start.mode === 'background'
    this.since = start.since
    this.order = order
    this.position = position
    this.#table = table
    if (start.mode !== 'alone') table.add(this)
  }

  /**
   * Calls `settled` with the outcome, or `gone` with `client_gone` when the reader's signal is aborted; perhaps at once. After a
   * streaming outcome the reader still counts as present: it follows the stream and calls `leave` at its end, waits with `waitForEnd`,
   * or calls `leave` at once.
   */
  wait(
    signal: AbortSignal,
    settled: (outcome: FetchOutcome) => void,
    gone: (error: GatewayError) => void,
  ): void {
    this.#readers += 1
    const waiter = new Waiter<FetchOutcome>(signal, settled, gone, () => this.leave())
    if (signal.aborted) return
    if (this.#outcome === undefined) this.#waiters.push(waiter)
    else waiter.settle(this.#outcome)
  }

  /** For a reader that has got a streaming outcome and needs the whole; leaves with it. */
  async waitForEnd({ end }: StreamingOutcome, signal: AbortSignal): Promise<StreamEnd> {
    const last = await new Promise<StreamEnd>((resolve, reject) => {
      const waiter = new Waiter<StreamEnd>(signal, resolve, reject, () => this.leave())
      if (!signal.aborted) void end.then((result) => waiter.settle(result))
    })
    this.leave()
    return last
  }

  leave(): void {
    if (this.state === 'ended') return
    this.#readers -= 1
    if (this.#readers > 0) return
    this.#table.remove(this)
    this.signal.end(new GatewayError('client_gone'))
  }

  /** The last result, for a caller that neither waits as a reader nor reads. */
  async ended(): Promise<Exclude<FetchOutcome, StreamingOutcome> | StreamEnd> {
    const outcome =
      this.#outcome ??
      (await new Promise<FetchOutcome>((resolve) => {
        this.#waiters.push(new Waiter(new EndSignal(), resolve, ignore, ignore))
      }))
    return outcome.kind === 'streaming' ? outcome.end : outcome
  }

  /** Passes the outcome to all readers that wait. */
  settle(outcome: FetchOutcome): void {
    this.#outcome = outcome
    // Only the reader that started the fetch may have it.
    const isLeaderGone = this.background || this.read.signal.aborted
    if (outcome.kind === 'unshareable' && isLeaderGone) discard(outcome.response.content)
    const waiters = this.#waiters
    this.#waiters = []
    // The first one after a failure starts the next fetch: chosen at random, so that no client can arrange to be that one.
    const isFailure = outcome.kind === 'server-error' || outcome.kind === 'failed'
    const first = isFailure ? Math.floor(Math.random() * waiters.length) : 0
    for (let i = 0; i < waiters.length; i += 1) waiters[(first + i) % waiters.length]?.settle(outcome)
  }
}

export class InFlightFetches {
  readonly #fetch: FetchFunction
  readonly #table = new InFlightTable<CollapsedFetch>()
  readonly #inFlight: CollapsedFetch[] = []
  #order = 0

  constructor(fetch: FetchFunction) {
    this.#fetch = fetch
  }

  /** The fetch of a key that a later reader may join. */
  find(key: string, variant: string): CollapsedFetch | undefined {
    return this.#table.find(key, variant)
  }

  start(start: FetchStart): CollapsedFetch {
    this.#order += 1
    const fetch = new CollapsedFetch(start, this.#order, this.#inFlight.length, this.#table)
    this.#inFlight.push(fetch)
    void this.#begin(fetch).then(
      (outcome) => this.#settle(fetch, outcome),
      (error: unknown) => this.#settle(fetch, { kind: 'failed', error, hasBegun: false }),
    )
    return fetch
  }

  /** No later reader joins a fetch of the key; the readers that wait still get its outcome. Returns the number of fetches. */
  cut(key: string): number {
    return this.#inFlight.length === 0 ? 0 : this.#table.removeAll(key)
  }

  /** The same for all keys that are meant. */
  cutWhere(isMeant: (key: string) => boolean): number {
    return this.#inFlight.reduce((cut, { key }) => cut + (isMeant(key) ? this.cut(key) : 0), 0)
  }

  cutAll(): number {
    return this.#table.clear()
  }

  /** The order of a response that is stored without a fetch. */
  nextOrder(): number {
    this.#order += 1
    return this.#order
  }

  abortAll(): void {
    for (const { signal } of [...this.#inFlight]) signal.end(new GatewayError('shutting_down'))
    this.#table.clear()
  }

  /** `waiting` or `streaming` → `ended`. */
  #end(fetch: CollapsedFetch): void {
    this.#table.remove(fetch)
    // The last one moves to the position that becomes free.
    const last = this.#inFlight.pop()
    if (last !== undefined && last !== fetch) {
      this.#inFlight[fetch.position] = last
      last.position = fetch.position
    }
    fetch.state = 'ended'
  }

  /** `waiting` → `streaming` or `ended`. */
  #settle(fetch: CollapsedFetch, outcome: FetchOutcome): void {
    if (outcome.kind === 'streaming') {
      fetch.state = 'streaming'
      // Of no use to later readers: the first of them starts another fetch.
      if (outcome.readability === 'unreadable') this.#table.remove(fetch)
      void outcome.end.then(() => this.#end(fetch))
      fetch.signal.addEventListener('abort', () => outcome.fill.stop(fetch.signal.reason as Error))
    } else this.#end(fetch)
    fetch.settle(outcome)
  }

  /** Always a promise: a fetch settles when the reader that starts it waits for it. */
  #begin(fetch: FetchRequest): Promise<FetchOutcome> {
    try {
      return Promise.resolve(this.#fetch(fetch))
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
