import { setTimeout as sleep } from 'node:timers/promises'
import { decodeInvalidation, encodeInvalidation, type Invalidation } from '../cache/invalidation.ts'
import type { LedgerPosition } from '../cache/shared-tier.ts'
import { type Moment, readClock } from '../clock.ts'
import type { LedgerStep, NoLeaseReason } from './events.ts'
import type { Appended, CoherenceOptions, LedgerEntry, LedgerPush, Synced } from './ledger.ts'
import { createAcknowledgements } from './protocol/acknowledgements.ts'
import { createBacklog, type PendingAppend } from './protocol/backlog.ts'
import { createContact } from './protocol/contact.ts'
import { createLease } from './protocol/lease.ts'
import { createQuarantines } from './protocol/quarantines.ts'
import { type Begun, createWriteRegistry } from './protocol/register-write.ts'

/** How the broadcast of a change to the other members ended. */
type BroadcastEnd = {
  /** Stored responses that other members dropped. */
  readonly entries: number
  /** This process cannot reach the ledger; the others get the change when it can again. */
  readonly unacknowledged: boolean
}

/** Keeps the memory of one process consistent with the other processes (docs/decisions/0007). */
export type Coherence = {
  /** May a read that has been received be answered from memory at this moment? */
  mayTrust(at: Moment): boolean
  /** Responses fetched from now on are newer than every invalidation up to this position. */
  readonly position: LedgerPosition
  /** Await before a write is sent. `mayMatter`: a response that the write changes may be stored somewhere. */
  begin(invalidations: readonly Invalidation[], mayMatter: boolean): Promise<Begun>
  /**
   * Await before a write is acknowledged: afterwards no member answers from memory with responses that the invalidations invalidate.
   * Apply the invalidations in this process first.
   */
  broadcast(invalidations: readonly Invalidation[], write?: string): Promise<BroadcastEnd>
  /** Another member is known to have ended. */
  forget(member: string): void
  /** Why this process does not trust its memory; undefined when it does. */
  noLease(): NoLeaseReason | undefined
  /** The ledger answers, but has granted no lease yet: for a while after the start. */
  isJoining(): boolean
  start(): Promise<void>
  close(): Promise<void>
}

const syncsPerLease = 4
/** A connection takes a moment to open. Without a ledger the process still starts, and forwards every read. */
const maxFirstTries = 20
const firstPauseMs = 50

class CoherenceMember implements Coherence {
  readonly #options: CoherenceOptions
  readonly #acknowledgements: ReturnType<typeof createAcknowledgements>
  readonly #backlog = createBacklog()
  readonly #contact: ReturnType<typeof createContact>
  readonly #lease: ReturnType<typeof createLease>
  readonly #quarantines = createQuarantines()
  #position: LedgerPosition = { epoch: '', applied: 0 }
  #wasTrusting = false
  #closed = false
  #joinedBy = 0
  #syncing: Promise<void> | undefined
  #isHinted = false
  /** Some member may still have acknowledged writes in the former ledger after this one found the new one. */
  #isFirstLease = false
  #delivering: Promise<boolean> | undefined
  #timer: NodeJS.Timeout | undefined
  readonly mayTrust: (at: Moment) => boolean
  readonly begin: (invalidations: readonly Invalidation[], mayMatter: boolean) => Promise<Begun>

  constructor(options: CoherenceOptions) {
    this.#options = options
    this.#acknowledgements = createAcknowledgements(this.#options.leaseMs)
    this.#contact = createContact(this.#options.leaseMs, this.#options.canBeCutOff)
    this.#lease = createLease(this.#options.leaseMs)
    this.mayTrust = this.#lease.isCurrent
    this.begin = createWriteRegistry({
      ...this.#options,
      backlog: this.#backlog,
      contact: this.#contact,
      failed: () => this.#failed('begin'),
    })
  }

  get position() {
    return this.#position
  }

  async broadcast(invalidations: readonly Invalidation[], write: string | undefined): Promise<BroadcastEnd> {
    const began = this.#options.clock.monotonic()
    this.#quarantines.record(invalidations, began)
    const { acknowledged, nothing } = this.#backlog.add(invalidations.map(encodeInvalidation), write)
    this.#releaseIsolated()
    void this.#deliver()
    // A write that changes nothing waits for no member.
    if (nothing) return { entries: 0, unacknowledged: false }
    const end = await acknowledged
    const waitedSeconds = (this.#options.clock.monotonic() - began) / 1000
    const outcome = end === 'isolated' ? 'isolated' : end.all ? 'acknowledged' : 'lapsed'
    this.#options.report({ kind: 'write-broadcast', outcome, waitedSeconds })
    if (end !== 'isolated') return { entries: end.entries, unacknowledged: false }
    if (this.#contact.isNews()) this.#options.report({ kind: 'cut-off', writes: 'unacknowledged' })
    return { entries: 0, unacknowledged: true }
  }

  forget(other: string): void {
    this.#options.ledger.forget(other).catch(() => undefined)
  }

  noLease(): NoLeaseReason | undefined {
    return this.#lease.isCurrent(readClock(this.#options.clock)) ? undefined : this.#lease.refusal
  }

  isJoining(): boolean {
    return (
      this.#lease.isFirst &&
      this.#lease.refusal !== 'unreachable' &&
      this.#options.clock.monotonic() < this.#joinedBy
    )
  }

  async start(): Promise<void> {
    this.#joinedBy = this.#options.clock.monotonic() + this.#options.joinMs
    this.#options.ledger.listen(this.#take)
    this.#timer = setInterval(this.#tick, this.#options.leaseMs / syncsPerLease)
    for (let tries = 0; tries < maxFirstTries && !(await this.#isJoined()); tries += 1) {
      await sleep(firstPauseMs)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    const delivered = await this.#deliver()
    this.#backlog.release()
    // A write or purge that still waits is acknowledged when the others have dropped what it changes, and not before.
    await this.#acknowledgements.allAcknowledged()
    await this.#options.ledger.leave(delivered)
  }

  #applyAll(invalidations: readonly LedgerEntry[]): number {
    return invalidations.length === 0
      ? 0
      : this.#options.apply(
          invalidations.map(({ seq, text }) => ({ seq, invalidation: decodeInvalidation(text) })),
        )
  }

  #advance(seq: number): void {
    if (seq > this.#position.applied) this.#position = { ...this.#position, applied: seq }
  }

  #failed(step: LedgerStep): void {
    this.#contact.failed(this.#options.clock.monotonic())
    if (!this.#closed) this.#options.report({ kind: 'ledger-failed', step })
  }

  /** No member can still trust its memory, so writes stop waiting for acknowledgements. */
  #releaseIsolated(): void {
    if (this.#contact.isIsolated(this.#options.clock.monotonic())) this.#backlog.release()
  }

  #reportTrust(): void {
    const trusting = this.#lease.isCurrent(readClock(this.#options.clock))
    if (trusting === this.#wasTrusting) return
    this.#wasTrusting = trusting
    this.#options.report(
      trusting ? { kind: 'trust-regained' } : { kind: 'trust-lost', reason: this.#lease.refusal },
    )
  }

  #catchUp(reply: Synced, received: number): void {
    const { epoch, floor, invalidations, seq } = reply
    // A new ledger, or one that has forgotten invalidations since this position: every stored response may be stale.
    const isLost = epoch !== this.#position.epoch || this.#position.applied < floor
    if (isLost) {
      if (reply.lease === 'young-ledger') this.#acknowledgements.quiet(received + this.#options.leaseMs)
      if (this.#position.epoch !== '') this.#options.report({ kind: 'memory-dropped' })
      this.#lease.end()
      this.#position = { epoch, applied: floor }
      this.#options.dropAll(this.#position)
      this.#isFirstLease = reply.lease === 'young-ledger'
      // A new ledger lacks the writes that the upstream may still carry out.
      this.#backlog.add(
        this.#quarantines.current(this.#options.clock.monotonic()).map(encodeInvalidation),
        undefined,
      )
    }
    // A push may have arrived before the reply.
    const news = isLost
      ? invalidations
      : invalidations.filter((invalidation) => invalidation.seq > this.#position.applied)
    const entries = this.#applyAll(news)
    this.#advance(seq)
    if (isLost || news.length === 0) return
    this.#options.report({ kind: 'invalidations-applied', invalidations: news.length })
    this.#options.ledger.acknowledge(this.#position, entries, undefined)
  }

  async #syncOnce(): Promise<void> {
    // Undelivered invalidations go first: a beat would make other members trust their memory again.
    if (!(await this.#deliver())) return
    const sent = readClock(this.#options.clock)
    try {
      const reply = await this.#options.ledger.sync(this.#position)
      const received = this.#options.clock.monotonic()
      this.#contact.succeeded()
      this.#catchUp(reply, received)
      this.#acknowledgements.readStatuses(reply, received)
      if (reply.lease === 'granted') {
        // What was stored without a lease may be older than such a write; all members have found the new ledger by now.
        if (this.#isFirstLease) this.#options.dropAll(this.#position)
        this.#isFirstLease = false
        this.#lease.granted(sent)
      } else this.#lease.refused(reply.lease)
    } catch {
      this.#lease.refused('unreachable')
      this.#failed('sync')
    }
  }

  #sync(): Promise<void> {
    this.#syncing ??= this.#syncOnce().finally(() => {
      this.#syncing = undefined
      this.#reportTrust()
    })
    return this.#syncing
  }

  /** The reply to a running sync may predate the hint. Any number of calls cause one more sync. */
  #syncOnceMore(): void {
    if (this.#syncing === undefined) void this.#sync()
    else if (!this.#isHinted) {
      this.#isHinted = true
      void this.#syncing.then(() => {
        this.#isHinted = false
        return this.#sync()
      })
    }
  }

  /** Syncs twice: the first reply is the proof for which the second lease is granted. */
  async #isJoined(): Promise<boolean> {
    await this.#sync()
    if (this.#lease.refusal === 'unproven') await this.#sync()
    return this.#lease.refusal !== 'unreachable' || this.#lease.isCurrent(readClock(this.#options.clock))
  }

  #appendedNow(appended: Appended, batch: PendingAppend, received: number): void {
    this.#contact.succeeded()
    const { epoch, seq } = appended
    // Apply again: the shared store may have returned an older response in between.
    if (batch.invalidations.length > 0) this.#applyAll(batch.invalidations.map((text) => ({ seq, text })))
    // Without invalidations the number is that of another member's invalidations.
    const isOwn = batch.invalidations.length > 0 && epoch === this.#position.epoch
    if (isOwn && seq === this.#position.applied + 1) this.#advance(seq)
    if (epoch !== this.#position.epoch) this.#acknowledgements.quiet(received + this.#options.leaseMs)
    void this.#acknowledgements.wait(appended, received).then((acknowledged) => {
      for (const { done } of batch.waiting) done(acknowledged)
    })
    if (epoch !== this.#position.epoch || seq > this.#position.applied) void this.#sync()
  }

  async #deliverOnce(): Promise<boolean> {
    while (!this.#backlog.isEmpty()) {
      const batch = this.#backlog.take()
      try {
        const appended = await this.#options.ledger.append(batch.invalidations, batch.settled)
        this.#appendedNow(appended, batch, this.#options.clock.monotonic())
      } catch {
        this.#backlog.putBack(batch)
        this.#failed('append')
        this.#releaseIsolated()
        return false
      }
    }
    return true
  }

  /** Appends all waiting invalidations; false when an append failed. */
  #deliver(): Promise<boolean> {
    this.#delivering ??= this.#deliverOnce().finally(() => {
      this.#delivering = undefined
    })
    return this.#delivering
  }

  readonly #take = (push: LedgerPush): void => {
    const { epoch, seq } = push
    if (push.kind === 'applied') {
      this.#acknowledgements.acknowledged(epoch, push.member, seq, push.entries)
      return
    }
    if (epoch === this.#position.epoch && seq <= this.#position.applied) return
    if (push.kind === 'hint') {
      // This process gets its own invalidations with the reply to its append.
      if (push.writer !== this.#options.member) this.#syncOnceMore()
      return
    }
    if (epoch !== this.#position.epoch || seq !== this.#position.applied + 1) {
      void this.#sync()
      return
    }
    const entries = this.#applyAll(push.invalidations.map((text) => ({ seq, text })))
    this.#advance(seq)
    if (push.writer === this.#options.member) return
    this.#options.report({ kind: 'invalidations-applied', invalidations: push.invalidations.length })
    this.#options.ledger.acknowledge(this.#position, entries, push.writer)
  }

  readonly #tick = (): void => {
    this.#contact.tick(this.#options.clock.monotonic())
    this.#reportTrust()
    this.#releaseIsolated()
    void this.#sync()
  }
}

export const createCoherence = (options: CoherenceOptions): Coherence => new CoherenceMember(options)
