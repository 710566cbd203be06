import { createHash } from 'node:crypto'
import type { FeedLease } from '../../cache/decide-caching.ts'
import { type Clock, type Moment, readClock } from '../../clock.ts'
import type { Change } from '../../service/tagger.ts'
import {
  askFrom,
  type ChangeEvent,
  coldFeed,
  type Feed,
  type FeedState,
  type FeedStep,
  type LagCause,
  lagCause,
  lost,
  newerRow,
  type PollFailure,
  readLog,
  safePosition,
} from './feed-state.ts'
import type { ChangeLog, Push, RowName } from './read-changes.ts'

/** The position that instances share; entries up to it are dropped in all of them. */
export type SharedPosition = Pick<Feed, 'incarnation' | 'position' | 'newest' | 'fingerprint'>

/** Where a feed is read from, and what its changes are applied to. */
export type FeedPorts = {
  /** Reads the log after that row, if it still has the row `newest`, else one of another incarnation; rejects with a PollError. */
  ask(after: number, incarnation: string, newest: RowName | undefined): Promise<ChangeLog>
  /**
   * Drops what the changes reach, in all processes; the number of stored responses, or that other processes cannot be reached. `byRequest`:
   * the request whose response shows the state after them.
   */
  apply(changes: readonly Change[], byRequest?: string): Promise<number | 'unacknowledged'>
  /** For that time nothing is stored for the service, or until the returned function is called. */
  quarantine(forMs: number): () => void
  /** Sends to the other processes that share the port. */
  tell(message: FeedMessage): void
  /** Undefined where instances share no store. */
  readonly positions:
    | { read(): Promise<SharedPosition | undefined>; write(position: SharedPosition): Promise<void> }
    | undefined
}

/** Messages between processes, as plain data. */
export type FeedMessage =
  | {
      readonly kind: 'read'
      readonly service: string
      /** The process that has read the log. */
      readonly from: string
      readonly feed: Feed
      readonly sentAt: number
      /** Rows of the log may have other changes than before. */
      readonly restarted: boolean
    }
  | {
      readonly kind: 'applied'
      readonly service: string
      readonly signature: string
      readonly incarnation: string
      readonly row: RowName
      readonly digest: string
    }
  /** A push of which no row was noted: it has none, or could not be read. */
  | {
      readonly kind: 'applied-text'
      readonly service: string
      readonly signature: string
      readonly isWithoutRow: boolean
    }

export class PollError extends Error {
  readonly reason: PollFailure

  constructor(reason: PollFailure, cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
  }
}

/** The feed is trusted for this many intervals after the last complete poll was sent. */
const trustedIntervals = 2
/** Intervals after which another process reads the log. */
const takesOverAfter = 1.3
/** Pages that are read at once. */
const maxPages = 40
/** Rows, and signatures of pushes. */
const maxApplied = 2_000
/**
 * Two changes of one second that have no row in the log may have the same signature. The companion waits for a second or two, so
 * that after this time another push with the signature is a copy.
 */
const sameSignatureMs = 30_000

const digestOf = (changes: readonly Change[]): string =>
  createHash('sha256').update(JSON.stringify(changes)).digest('base64url')

const nameOf = (incarnation: string, { sequence, check }: RowName): string =>
  `${incarnation} ${sequence} ${check}`.trimEnd()

/**
 * The rows that have been applied, so that a change that was pushed is not applied again when the log has it; and the signatures of
 * pushes, with an empty digest.
 */
const createAppliedRows = () => {
  const digests = new Map<string, string>()
  return {
    has: (row: string, digest: string): boolean => digests.get(row) === digest,
    digestOf: (row: string): string | undefined => digests.get(row),
    add: (row: string, digest: string): void => {
      digests.delete(row)
      digests.set(row, digest)
      for (const oldest of digests.keys()) {
        if (digests.size <= maxApplied) break
        digests.delete(oldest)
      }
    },
    clear: () => digests.clear(),
  }
}

type ServiceFeedOptions = {
  readonly service: string
  readonly pollMs: number
  readonly ports: FeedPorts
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: ChangeEvent) => void
}

/** Reads the log of one service again and again, unless another process that shares the port has just done so. */
export class ServiceFeed {
  readonly #options: ServiceFeedOptions
  readonly #trustedMs: number
  readonly #ownId: string
  readonly #rows = createAppliedRows()
  #feed = coldFeed
  /** When the last poll was sent after which every change was known. */
  #lastContactAt: Moment | undefined
  /** When the last poll that succeeded was sent. */
  #readAt: Moment | undefined
  #lastState: FeedState = 'cold'
  #lastCause: LagCause | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false
  /** PHP requests that still wrote at the last poll and have not reported since: nothing is stored meanwhile. */
  #writing: { readonly sequences: Set<number>; readonly end: () => void } | undefined
  readonly lease: FeedLease

  constructor(options: ServiceFeedOptions) {
    this.#options = options
    this.#trustedMs = trustedIntervals * this.#options.pollMs
    this.#ownId = this.#options.random().toString(36)
    this.lease = {
      isCurrent: this.#isCurrent,
      endedMs: (at) => (this.#isCurrent(at) ? 0 : this.#sinceContact(at)),
    }
  }

  /** The state, and the seconds since the last complete poll was sent. */
  reading(): {
    readonly state: FeedState
    readonly cause: LagCause | undefined
    readonly lagSeconds: number | undefined
  } {
    const at = readClock(this.#options.clock)
    const lagMs = this.#sinceContact(at)
    return {
      state: this.#isLost(at) ? lost(this.#feed).state : this.#feed.state,
      cause: this.#isLost(at) ? undefined : lagCause(this.#feed),
      lagSeconds: Number.isFinite(lagMs) ? lagMs / 1000 : undefined,
    }
  }

  /**
   * Is it the signature of a push that was applied, or for which everything was dropped because it could not be read? One with the
   * same row but another signature may be of a restored log.
   */
  wasApplied(signature: string): boolean {
    const lastState = this.#rows.digestOf(signature)
    return (
      lastState !== undefined &&
      (lastState === '' || this.#options.clock.monotonic() - Number(lastState) > sameSignatureMs)
    )
  }

  /** Have the changes of this row been applied, by a push or a poll? A row is an incarnation, a sequence and a check value. */
  hasApplied(row: string): boolean {
    return this.#rows.digestOf(row) !== undefined
  }

  applied(
    signature: string,
    { incarnation, sequence, check, changes }: Pick<Push, 'incarnation' | 'sequence' | 'check' | 'changes'>,
  ): void {
    if (sequence === 0) {
      this.droppedAll(signature, true)
      return
    }
    const row = { sequence, check }
    const message = {
      kind: 'applied',
      service: this.#options.service,
      signature,
      incarnation,
      row,
      digest: digestOf(changes),
    } as const
    this.#recordPush(message)
    this.#options.ports.tell(message)
  }

  isOtherFingerprint(fingerprint: string): boolean {
    return fingerprint !== '' && this.#feed.fingerprint !== '' && fingerprint !== this.#feed.fingerprint
  }

  receiveMessage(message: FeedMessage): void {
    if (this.#isStopped) return
    if (message.kind === 'applied') {
      this.#recordPush(message)
      return
    }
    if (message.kind === 'applied-text') {
      this.#textOfPush(message)
      return
    }
    // A message is sent to all processes, also to its sender.
    if (message.from === this.#ownId) return
    if (message.restarted) this.#rows.clear()
    const at = readClock(this.#options.clock)
    // The wall clock is the same for all processes of a machine, the monotonic one is not.
    const agoMs = Math.max(0, at.now - message.sentAt)
    this.#take(message.feed, { now: message.sentAt, monotonic: at.monotonic - agoMs }, message.restarted)
    this.#lastState = this.#feed.state
    this.#lastCause = lagCause(this.#feed)
    // This process takes over when the other one falls silent, before the feed is not trusted any more.
    this.#schedule(this.#options.pollMs * (takesOverAfter + this.#options.random() / 4))
  }

  /** `late`: other processes may have seen more changes than this one, which has just started, and are about to send them. */
  start(late: boolean): void {
    if (this.#options.pollMs > 0) this.#schedule(late ? this.#options.pollMs * takesOverAfter : 0)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #since(moment: Moment | undefined, at: Moment): number {
    return moment === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, at.now - moment.now, at.monotonic - moment.monotonic)
  }

  #sinceContact(at: Moment): number {
    return this.#since(this.#lastContactAt, at)
  }

  readonly #isCurrent = (at: Moment): boolean =>
    this.#feed.state === 'heard' && this.#sinceContact(at) < this.#trustedMs

  #isLost(at: Moment): boolean {
    return this.#since(this.#readAt, at) >= this.#trustedMs
  }

  #reportState(): void {
    const [to, cause] = [this.#feed.state, lagCause(this.#feed)]
    if (to !== this.#lastState || cause !== this.#lastCause)
      this.#options.report({
        kind: 'feed-state',
        service: this.#options.service,
        from: this.#lastState,
        to,
        cause,
      })
    this.#lastState = to
    this.#lastCause = cause
  }

  /** The rows that no process has applied yet. */
  #newSteps(
    steps: readonly FeedStep[],
    { incarnation, last }: ChangeLog,
    shared: SharedPosition | undefined,
  ): readonly FeedStep[] {
    // A position behind the end of the log belongs to the log before it was restored.
    const isOfLog = shared?.incarnation === incarnation && shared.position <= last
    const until = isOfLog ? shared.position : 0
    return steps.filter((step) => {
      if (step.row === undefined) return true
      if (step.row.sequence <= until) return false
      const changes = step.kind === 'apply' ? step.changes : []
      return !this.#rows.has(nameOf(incarnation, step.row), digestOf(changes))
    })
  }

  async #applySteps(steps: readonly FeedStep[], incarnation: string): Promise<void> {
    if (steps.length === 0) return
    const changes = steps.flatMap((step): readonly Change[] =>
      step.kind === 'apply' ? step.changes : [{ kind: 'all', reason: step.reason }],
    )
    const entries = await this.#options.ports.apply(changes)
    if (entries === 'unacknowledged') throw new PollError('not-spread')
    for (const step of steps) {
      if (step.kind === 'drop-service')
        this.#options.report({ kind: 'service-dropped', service: this.#options.service, reason: step.reason })
      if (step.row === undefined) continue
      this.#rows.add(nameOf(incarnation, step.row), digestOf(step.kind === 'apply' ? step.changes : []))
    }
    this.#options.report({
      kind: 'changes-applied',
      service: this.#options.service,
      source: 'poll',
      changes: changes.length,
      entries,
    })
  }

  /** Rows that another instance has read are skipped, so the log must still have its newest row as well. */
  #resumed(shared: SharedPosition | undefined): Feed {
    if (shared === undefined) return this.#feed
    if (this.#feed.incarnation === '') return { ...this.#feed, ...shared }
    const isSame = shared.incarnation === this.#feed.incarnation
    return isSame ? { ...this.#feed, newest: newerRow(this.#feed.newest, shared.newest) } : this.#feed
  }

  /** Reads page after page. A page counts only when its changes have been applied in all processes. */
  async #readPages(): Promise<{
    readonly next: Feed
    readonly sent: Moment
    readonly restarted: boolean
  }> {
    const shared = await this.#options.ports.positions?.read().catch(() => undefined)
    let next = this.#resumed(shared)
    let restarted = false
    for (let page = 1; ; page += 1) {
      const sent = readClock(this.#options.clock)
      const from = askFrom(next)
      const response = await this.#options.ports.ask(from, next.incarnation, next.newest)
      const reading = readLog(next, from, response, page > 1)
      await this.#applySteps(this.#newSteps(reading.steps, response, shared), response.incarnation)
      if (reading.restarted) this.#rows.clear()
      // A log that begins anew in each response is not read before the next poll.
      const isUnstable = restarted && reading.restarted
      restarted ||= reading.restarted
      next = reading.feed
      if (!reading.again || page === maxPages || isUnstable) return { next, sent, restarted }
    }
  }

  #take(next: Feed, sent: Moment, hasRestarted: boolean): void {
    // A push may have brought a newer row while the log was read.
    const pushed = hasRestarted || this.#feed.incarnation !== next.incarnation ? undefined : this.#feed.newest
    this.#feed = { ...next, newest: newerRow(next.newest, pushed) }
    this.#readAt = sent
    if (next.state === 'heard') this.#lastContactAt = sent
    const writing = next.unfinished.filter(({ state, reads }) => state === 'open' && !reads)
    const earlier = this.#writing
    // For as long as this poll counts: the next one may be late.
    this.#writing =
      writing.length === 0
        ? undefined
        : {
            sequences: new Set(writing.map(({ sequence }) => sequence)),
            end: this.#options.ports.quarantine(this.#trustedMs),
          }
    earlier?.end()
  }

  /** The PHP request of this row has reported what it wrote. */
  #hasReported(sequence: number): void {
    const { sequences, end } = this.#writing ?? {}
    if (sequences?.delete(sequence) !== true || sequences.size > 0) return
    this.#writing = undefined
    end?.()
  }

  #share(state: Feed): void {
    const { incarnation, newest, fingerprint } = state
    // Without it the next process to start drops the service.
    this.#options.ports.positions
      ?.write({ incarnation, position: safePosition(state), newest, fingerprint })
      .catch(() => undefined)
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isStopped) this.#timer = setTimeout(() => void this.#poll(), ms)
  }

  /** Gives the pause before the next poll. */
  #pollFailed(cause: unknown): number {
    const reason = cause instanceof PollError ? cause.reason : 'unreachable'
    this.#options.report({ kind: 'poll-failed', service: this.#options.service, reason })
    if (this.#isLost(readClock(this.#options.clock))) this.#feed = lost(this.#feed)
    // A page of a site without the companion costs more than a log.
    return reason === 'no-companion' ? this.#options.pollMs : this.#options.pollMs / 2
  }

  async #poll(): Promise<void> {
    let pauseMs = this.#options.pollMs
    try {
      const { next, sent, restarted } = await this.#readPages()
      if (this.#isStopped) return
      this.#take(next, sent, restarted)
      this.#share(this.#feed)
      this.#options.ports.tell({
        kind: 'read',
        service: this.#options.service,
        from: this.#ownId,
        feed: this.#feed,
        sentAt: sent.now,
        restarted,
      })
    } catch (cause) {
      if (this.#isStopped) return
      pauseMs = this.#pollFailed(cause)
    }
    this.#reportState()
    this.#schedule(pauseMs)
  }

  #recordPush(message: Extract<FeedMessage, { readonly kind: 'applied' }>): void {
    this.#rows.add(nameOf(message.incarnation, message.row), message.digest)
    this.#rows.add(message.signature, '')
    if (message.incarnation !== this.#feed.incarnation) return
    this.#feed = { ...this.#feed, newest: newerRow(this.#feed.newest, message.row) }
    this.#hasReported(message.row.sequence)
  }

  #textOfPush({ signature, isWithoutRow }: Extract<FeedMessage, { readonly kind: 'applied-text' }>): void {
    if (!isWithoutRow) this.#rows.add(signature, '')
    else if (this.#rows.digestOf(signature) === undefined)
      this.#rows.add(signature, String(this.#options.clock.monotonic()))
  }

  /** Everything was dropped for a push that could not be read. */
  droppedAll(signature: string, isWithoutRow: boolean): void {
    const message = { kind: 'applied-text', service: this.#options.service, signature, isWithoutRow } as const
    this.#textOfPush(message)
    this.#options.ports.tell(message)
  }
}
