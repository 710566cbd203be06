import { type Clock, readClock } from '../clock.ts'
import type { ByteBudget } from '../http/bounds/byte-budget.ts'
import { inTurns } from '../http/bounds/in-turns.ts'
import type { Redaction } from '../http/redaction.ts'
import { type BuildReport, Builds } from './builds.ts'
import type { BuildReading, CacheRead, Forward } from './cache-read.ts'
import { type CacheEntry, type EntryOrder, listingEntries } from './entries.ts'
import type { CacheEvent, InvalidationCause } from './events.ts'
import { type FetchFunction, InFlightFetches } from './fetch/collapse.ts'
import { UpstreamFetch } from './fetch/fetch.ts'
import { CacheInvalidation, type Purge } from './invalidation.ts'
import { createReuse, type Lease } from './policy/reuse.ts'
import { createPostResponse, type PostResponse } from './post-response.ts'
import { CacheReads } from './read.ts'
import { type CompressionOptions, Encodings } from './respond/encodings.ts'
import { type PerhapsLater, Responder } from './respond/responder.ts'
import { createTierFetch, type SharedTier } from './shared-tier.ts'
import { type AdmissionMode, createAdmission } from './store/admission.ts'
import { contentsTagged } from './store/contents-tagged.ts'
import { HitForMiss } from './store/hit-for-miss.ts'
import { InvalidationLog } from './store/invalidation-log.ts'
import { MemoryStore } from './store/memory-store.ts'
import { QuarantinedTags } from './store/quarantined-tags.ts'
import { ResponseStorage } from './store/response-storage.ts'
import { createVerification } from './verification.ts'

export type CacheOptions = {
  /** Absent where no other process stores responses of the same upstreams. */
  readonly lease?: Lease
  /** Where several processes share stored responses. */
  readonly tier?: SharedTier
  readonly maxBytes: number
  readonly maxHeapBytes: number
  readonly maxEntryBytes: number
  readonly compression: CompressionOptions
  readonly admission: AdmissionMode
  /** Bounds the memory for responses that are still arriving. */
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly redaction: Redaction
  readonly report: (event: CacheEvent) => void
}

/** A tag takes some hundred bytes. With more invalidations than this during one fetch, its response counts as superseded. */
const maxTrackedTags = 16_384

/** A shared cache (RFC 9111). After an invalidation no read gets an older response. */
export class Cache {
  readonly #options: CacheOptions
  readonly #store: MemoryStore
  readonly #log = new InvalidationLog(maxTrackedTags)
  readonly #quarantined = new QuarantinedTags(maxTrackedTags)
  readonly #builds: Builds
  readonly #storage: ResponseStorage
  readonly #fetches: InFlightFetches
  readonly #invalidation: CacheInvalidation
  readonly #reads: CacheReads
  readonly verification: ReturnType<typeof createVerification>

  constructor(options: CacheOptions) {
    const { clock, report, budget, maxEntryBytes, lease, tier } = options
    this.#options = options
    const log = this.#log
    const builds = new Builds(clock.now)
    const store = new MemoryStore({
      maxBytes: options.maxBytes,
      maxHeapBytes: options.maxHeapBytes,
      maxEntryBytes,
      onEvict: (bytes) => report({ kind: 'evicted', bytes }),
    })
    const quarantined = this.#quarantined
    const admission = createAdmission({ mode: options.admission, usedShare: () => store.usedShare() })
    const encodings = new Encodings({ ...options.compression, store, report })
    const codedFrom = (read: CacheRead): number => encodings.codedFrom(read)
    const storage = new ResponseStorage({ store, log, quarantined, admission, report, codedFrom })
    const hitForMiss = new HitForMiss()
    const upstream = new UpstreamFetch({ store, storage, clock, report, budget, maxEntryBytes })
    const fetch: FetchFunction = (request) => upstream.fetch(request)
    const fetches = new InFlightFetches(
      tier === undefined
        ? fetch
        : createTierFetch({ tier, fetch, storage, hitForMiss, clock, maxEntryBytes }),
    )
    const responder = new Responder(encodings)
    const reuse = createReuse(store, lease)
    this.#builds = builds
    this.#store = store
    this.#storage = storage
    this.#fetches = fetches
    this.#reads = new CacheReads({
      store,
      log,
      fetches,
      hitForMiss,
      responder,
      reuse,
      lease,
      clock,
      report,
    })
    this.#invalidation = new CacheInvalidation({
      store,
      log,
      quarantined,
      fetches,
      builds,
      clock,
      report,
    })
    this.verification = createVerification({ store, log, quarantined, lease, clock })
  }

  /** Without a promise when it is a hit; otherwise through `forward`. Rejects with what `forward` rejects with. */
  response(read: CacheRead, forward: Forward): PerhapsLater {
    return this.#reads.response(read, forward)
  }

  /** See CacheInvalidation for these. */
  invalidate(tags: readonly string[], by?: InvalidationCause, byRequest?: string): number {
    return this.#invalidation.invalidate(tags, by, byRequest)
  }

  quarantine(tags: readonly string[], forMs: number): void {
    this.#invalidation.quarantine(tags, forMs)
  }

  /** For how long a write of unknown outcome may still be carried out; 0: there is none. */
  get quarantineLeftMs(): number {
    return Math.max(0, Math.ceil(this.#quarantined.lastUntil - this.#options.clock.monotonic()))
  }

  quarantineUntilReleased(tags: readonly string[]): () => void {
    return this.#invalidation.quarantineUntilReleased(tags)
  }

  purge(purge: Purge): number {
    return this.#invalidation.purge(purge)
  }

  purgeInTurns(purge: Purge): Promise<number> {
    return this.#invalidation.purgeInTurns(purge)
  }

  someTargets(tags: readonly string[], max: number): ReturnType<CacheInvalidation['someTargets']> {
    return this.#invalidation.someTargets(tags, max)
  }

  topUsed(selectors: readonly Purge['selector'][], limit: number): ReturnType<CacheInvalidation['topUsed']> {
    return this.#invalidation.topUsed(selectors, limit)
  }

  /**
   * Contents of some stored responses with that tag: they show the state after the last write through this process. Empty where
   * other processes write too.
   */
  contentsWithTag(tag: string): readonly Buffer[] {
    return this.#options.lease === undefined ? contentsTagged(this.#store, tag) : []
  }

  /** To be called when a POST is sent whose response may serve later reads of its target (RFC 9110 §9.3.3). */
  postResponse(read: CacheRead): PostResponse {
    const { budget, clock, maxEntryBytes } = this.#options
    const deps = { storage: this.#storage, log: this.#log, fetches: this.#fetches, clock }
    return createPostResponse(deps, read, maxEntryBytes, budget('fill', read.client ?? ''))
  }

  /** Is what a response was made of still stored? Otherwise it may have been invalidated since. */
  stillStores(stored: { readonly key: string }): boolean {
    return this.#isConnected() && this.#store.peek(stored.key).some((variant) => variant === stored)
  }

  /** See Builds for these. */
  beginBuild(id: string, since: string | undefined): void {
    this.#builds.begin(id, since)
  }

  buildReading(id: string, url: string, key: string): BuildReading | undefined {
    return this.#builds.reading(id, url, key)
  }

  doubtfulOfBuild(id: string): Promise<readonly string[]> {
    return this.#builds.doubtful(id)
  }

  compareBuild(id: string): Promise<void> {
    return this.#builds.compare(id, (key, since) =>
      this.#isConnected() ? this.#store.peek(key).filter(({ received }) => received.now > since) : [],
    )
  }

  buildReport(id: string): BuildReport | undefined {
    return this.#builds.report(id, this.#isConnected())
  }

  /** Largest or oldest first; for the admin side. */
  entries(order: EntryOrder, limit: number): Promise<readonly CacheEntry[]> {
    const { clock, redaction } = this.#options
    return inTurns(listingEntries(this.#store, order, limit, readClock(clock), redaction))
  }

  stats(): { readonly entries: number; readonly bytes: number; readonly tags: number } {
    return this.#store.stats()
  }

  close(): void {
    this.#fetches.abortAll()
    this.#store.clear()
  }

  /** Do the invalidations of other processes arrive? */
  #isConnected(): boolean {
    const { lease, clock } = this.#options
    return lease === undefined || lease.isCurrent(readClock(clock))
  }
}

export { storageOf } from './policy/storability.ts'
