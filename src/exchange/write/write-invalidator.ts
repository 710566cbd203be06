import { pipeline, type Readable } from 'node:stream'
import type { Invalidation } from '../../cache/invalidation.ts'
import type { PostResponse, StoringPost } from '../../cache/post-response.ts'
import { GatewayError } from '../../errors.ts'
import { EndSignal } from '../../http/end-signal.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { teeContent } from '../../http/tee-content.ts'
import type { Shown } from '../../service/tagger.ts'
import { invalidateWrite } from '../apply-invalidations.ts'
import type { CacheDeps } from '../ports.ts'
import type { ValidatedContext } from '../request-context.ts'
import type { TrackedWrite } from './concurrent-writes.ts'
import { OpenResponse } from './open-response.ts'
import type { ResponseBody } from './response-body.ts'
import { reachedBy, writeInvalidations } from './write-invalidations.ts'
import { WriteProgress } from './write-progress.ts'
import { dropsNothing, receiptOf, type WriteVerdict } from './write-verdict.ts'

export type Storing = Pick<PostResponse, 'maxBytes' | 'reservation'> & { readonly post: StoringPost }

const collected = (
  content: Readable,
  declared: number | undefined,
  { maxBytes, reservation }: Storing,
  done: (content: Buffer | undefined) => void,
): Readable => {
  const tee = teeContent(maxBytes, declared, reservation, done)
  pipeline(content, tee, () => {})
  return tee
}

const mayBeStored = (context: ValidatedContext): boolean =>
  reachedBy(context).some(({ responses }) => responses.mayBeStored)

const tagsOf = (invalidations: readonly Invalidation[]): readonly string[] =>
  invalidations.flatMap((invalidation) =>
    invalidation.kind === 'tag' || invalidation.kind === 'quarantine' ? [invalidation.tag] : [],
  )

/** Each invalidation once: what the table said at the head, and what it says now. */
const union = (first: readonly Invalidation[], second: readonly Invalidation[]): readonly Invalidation[] =>
  first === second ? first : [...first, ...second]

/**
 * What the steps of a write (exchange/write.ts) do to stored responses: what it may have changed is dropped here and in other processes,
 * and not stored while the write may still change it.
 */
export class WriteInvalidator {
  readonly #deps: CacheDeps
  readonly #requestContext: ValidatedContext
  /** Names of the services that it reaches. */
  readonly #reached: readonly string[]
  readonly #neverDrops: boolean
  readonly #tracked: TrackedWrite
  readonly progress: WriteProgress
  /** Ends the request at the upstream. Not the client's: one that leaves does not end a write, so that its outcome is known. */
  readonly signal = new EndSignal()
  #registered: string | undefined
  #response: GatewayResponse | undefined
  #verdict: WriteVerdict = { kind: 'response' }
  #headInvalidations: readonly Invalidation[] = []
  #openInvalidations: readonly Invalidation[] = []
  /** The configuration snapshot that `#openInvalidations` were computed for. */
  #computedFor: unknown
  #release: (() => void) | undefined
  #removeOpen: (() => void) | undefined
  #post: StoringPost | undefined

  /** `neverDrops`: whatever becomes of it, there is nothing that it would have to drop itself. */
  constructor(deps: CacheDeps, requestContext: ValidatedContext, neverDrops: boolean) {
    this.#neverDrops = neverDrops
    this.#deps = deps
    this.#requestContext = requestContext
    const { service, record } = requestContext
    this.#reached = reachedBy(requestContext).map(({ name }) => name)
    this.#tracked = deps.writes.concurrent.begin(this.#reached)
    this.progress = new WriteProgress({
      advanced: (state) => {
        deps.report({ kind: 'write-advanced', service: service.name, state })
        record.trace?.wrote?.(state)
      },
      illegal: (from, to) => {
        deps.report({ kind: 'write-illegal', service: service.name, from, to })
        this.signal.end(new GatewayError('internal'))
      },
    })
    record.writeProgress = this.progress
  }

  /** Records what it may change, so that the other processes drop it if this one ends before the write does. */
  async register(): Promise<void> {
    const { writeRegistry } = this.#deps
    if (writeRegistry === undefined) return
    const begun = await writeRegistry.begin(
      writeInvalidations(this.#requestContext, undefined),
      mayBeStored(this.#requestContext),
    )
    // The connection to the shared store is tried again several times a second.
    if (begun.kind === 'refused') throw new GatewayError('shared_store_unreachable', { retryAfterSeconds: 1 })
    this.#registered = begun.write
  }

  /** The response streams: drops what its head says. Await before the head is forwarded. */
  open(response: GatewayResponse, verdict: WriteVerdict): Promise<unknown> | undefined {
    this.#begin(response, verdict)
    this.#headInvalidations = this.#invalidationsSoFar()
    return this.#drop(this.#headInvalidations)
  }

  /** The response is there: drops what it says. `body`: was its content read for that? Await before it is forwarded. */
  end(response: GatewayResponse, verdict: WriteVerdict, body: ResponseBody): Promise<unknown> | undefined {
    this.#begin(response, verdict)
    if (!this.progress.end()) throw new GatewayError('internal')
    const written = body === 'whole' ? response : { ...response, content: undefined }
    return this.#finish(
      dropsNothing(verdict)
        ? []
        : writeInvalidations(this.#requestContext, written, this.#shownBefore(), receiptOf(verdict)),
    )
  }

  #begin(response: GatewayResponse, verdict: WriteVerdict): void {
    this.#response = response
    this.#verdict = verdict
    if (!this.progress.open()) throw new GatewayError('internal')
  }

  /** Stored responses show the state before the write only while no other write is in flight. */
  #shownBefore(): Shown | undefined {
    const { cache } = this.#deps
    return this.#tracked.isAlone() ? (tag) => cache.contentsWithTag(tag) : undefined
  }

  /**
   * Its response as the client gets it: each piece, and the end, after what the write may have changed by then is dropped. It is
   * stored for later reads where it may be.
   */
  forwarded(content: Readable, declared: number | undefined, storing: Storing | undefined): Readable {
    let whole: Buffer | undefined
    const read =
      storing &&
      collected(content, declared, storing, (complete) => {
        whole = complete
      })
    const post = storing?.post
    this.#post = post
    const open = new OpenResponse(read ?? content, declared, {
      beforePiece: () => this.#dropBeforePiece(),
      ended: () =>
        post === undefined || whole === undefined
          ? this.#endStream()
          : post.store(whole, () => this.#endStream()),
      brokenOff: () => this.#breakOffStream(),
    })
    // An error on either side ends both; the reader of the open response sees it.
    pipeline(read ?? content, open, () => {})
    return open
  }

  /** Computed for the newest configuration, and again what was dropped at the head: another table may say less. */
  #endStream(): Promise<unknown> | undefined {
    this.#requestContext.record.trace?.write?.('end')
    if (!this.progress.end()) return this.breakOff().then(() => Promise.reject(new GatewayError('internal')))
    return this.#finish(union(this.#headInvalidations, this.#invalidationsSoFar()))
  }

  #breakOffStream(): void {
    this.#requestContext.record.trace?.write?.('break-off')
    void this.breakOff().catch(() => undefined)
  }

  /** No whole response comes: unless nothing was sent, or the write has ended, its outcome is unknown. */
  async breakOff(): Promise<void> {
    this.progress.breakOff()
    switch (this.progress.state) {
      case 'not-sent':
        this.#tracked.end()
        if (this.#registered !== undefined) await this.#deps.writeRegistry?.broadcast([], this.#registered)
        return
      case 'ended':
        return
      default:
        await this.#finish(
          this.#neverDrops
            ? []
            : union(this.#headInvalidations, writeInvalidations(this.#requestContext, undefined)),
        )
    }
  }

  /** One at a time: the upstream waits meanwhile, and what it sends then comes as one piece. */
  #dropBeforePiece(): Promise<unknown> | undefined {
    this.#requestContext.record.trace?.write?.('piece')
    const drop = () => this.#drop(this.#invalidationsSoFar())
    return this.#post === undefined ? drop() : this.#post.invalidateAgain(drop)
  }

  /** Drops what it may have changed so far, and keeps it from being stored. */
  #drop(invalidations: readonly Invalidation[]): Promise<unknown> | undefined {
    const { cache, writeRegistry } = this.#deps
    this.#removeOpen ??= this.#addOpen()
    if (invalidations !== this.#openInvalidations || this.#release === undefined) {
      const release = cache.quarantineUntilReleased(tagsOf(invalidations))
      this.#release?.()
      this.#release = release
      this.#openInvalidations = invalidations
    }
    invalidateWrite(cache, this.#requestContext, invalidations)
    return writeRegistry?.broadcast(invalidations)
  }

  #addOpen(): () => void {
    const { name: service } = this.#requestContext.service
    const { writes, clock, report } = this.#deps
    const remove = writes.open.add(this.#reached, clock.monotonic())
    report({ kind: 'write-quarantined', service, by: 1 })
    return () => {
      remove()
      report({ kind: 'write-quarantined', service, by: -1 })
    }
  }

  #finish(invalidations: readonly Invalidation[]): Promise<unknown> | undefined {
    this.#removeOpen?.()
    this.#removeOpen = undefined
    this.#tracked.end()
    this.#release?.()
    this.#release = undefined
    invalidateWrite(this.#deps.cache, this.#requestContext, invalidations)
    return this.#deps.writeRegistry?.broadcast(invalidations, this.#registered)
  }

  /** What the head, the row and the path say: a content that was not read for it does not count. */
  #invalidationsSoFar(): readonly Invalidation[] {
    if (dropsNothing(this.#verdict) || this.#response === undefined) return []
    const newest = this.#requestContext.snapshot.newest
    if (newest === this.#computedFor) return this.#openInvalidations
    this.#computedFor = newest
    const head = { ...this.#response, content: undefined }
    return writeInvalidations(this.#requestContext, head, this.#shownBefore(), receiptOf(this.#verdict))
  }
}
