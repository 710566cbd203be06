import { setTimeout as sleep } from 'node:timers/promises'
import { decodeInvalidation, encodeInvalidation, type Invalidation } from '../cache/invalidation.ts'
import type { LedgerPosition } from '../cache/shared-tier.ts'
import { type Moment, readClock } from '../clock.ts'
import type { LedgerStep, QuarantineReason } from './events.ts'
import {
  type Appended,
  type CoherenceOptions,
  type LedgerEntry,
  type LedgerPush,
  maxLedgerEntries,
  type Synced,
} from './ledger.ts'
import {
  type Batch,
  type Begun,
  createAcknowledgements,
  createBacklog,
  createContact,
  createWriteRegistry,
} from './protocol/register-write.ts'

type Quarantine = Extract<Invalidation, { kind: 'hold' }>

/**
 * Writes of this process with unknown outcome that the upstream may still carry out: they are registered again with a new ledger. Times
 * are readings of the monotonic clock.
 */
const createQuarantines = () => {
  const until = new Map<string, { readonly quarantine: Quarantine; readonly at: number }>()
  const tidy = (now: number): void => {
    for (const [tag, { at }] of until) if (at <= now) until.delete(tag)
  }
  return {
    record: (invalidations: readonly Invalidation[], now: number): void => {
      for (const invalidation of invalidations) {
        if (invalidation.kind !== 'hold') continue
        if (until.size >= maxLedgerEntries) tidy(now)
        // Above this number the cache holds everything anyway.
        if (until.size < maxLedgerEntries)
          until.set(invalidation.tag, { quarantine: invalidation, at: now + invalidation.forMs })
      }
    },
    /** Holds that have not expired. */
    current: (now: number): readonly Quarantine[] => {
      tidy(now)
      return [...until.values()].map(({ quarantine }) => quarantine)
    },
  }
}

const never: Moment = { now: Number.NEGATIVE_INFINITY, monotonic: Number.NEGATIVE_INFINITY }

/** Clocks of two machines may run at slightly different speeds. */
const usedShare = 0.95

/**
 * How long this process may answer from its own memory. Checks two clocks: the monotonic clock stops while a machine is suspended,
 * the wall clock may be set back.
 */
const createLease = (leaseMs: number) => {
  let until = never
  let refusal: QuarantineReason = 'unreachable'
  let isFirst = true
  return {
    /** None has been granted yet. */
    get isFirst(): boolean {
      return isFirst
    },
    isCurrent: (at: Moment): boolean => at.monotonic < until.monotonic && at.now < until.now,
    /** `sent`: when the request for the lease was sent; the lease counts from there. */
    granted: (sent: Moment): void => {
      isFirst = false
      const forMs = leaseMs * usedShare
      until = { now: sent.now + forMs, monotonic: sent.monotonic + forMs }
    },
    refused: (reason: QuarantineReason): void => {
      refusal = reason
    },
    /** Ends the lease: the ledger that granted it is gone. */
    end: (): void => {
      until = never
    },
    get refusal(): QuarantineReason {
      return refusal
    },
  }
}

/** Result of announcing a change to the other members. */
type Broadcast = {
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
  broadcast(invalidations: readonly Invalidation[], write?: string): Promise<Broadcast>
  /** Another member is known to have ended. */
  forget(member: string): void
  /** Why this process does not trust its memory; undefined when it does. */
  quarantine(): QuarantineReason | undefined
  /** The ledger answers, but has granted no lease yet: for a while after the start. */
  isJoining(): boolean
  start(): Promise<void>
  close(): Promise<void>
}

const syncsPerLease = 4
/** A connection takes a moment to open. Without a ledger the process still starts, and forwards every read. */
const maxFirstTries = 20
const firstPauseMs = 50

export const createCoherence = (options: CoherenceOptions): Coherence => {
  const { clock, leaseMs, ledger, member, report } = options
  const acknowledgements = createAcknowledgements(leaseMs)
  const backlog = createBacklog()
  const contact = createContact(leaseMs, options.canBeCutOff)
  const lease = createLease(leaseMs)
  const quarantines = createQuarantines()
  let position: LedgerPosition = { epoch: '', applied: 0 }
  let wasTrusting = false
  let closed = false
  let joinedBy = 0
  let syncing: Promise<void> | undefined
  let isHinted = false
  /** Some member may still have acknowledged writes in the former ledger after this one found the new one. */
  let isFirstLease = false
  let delivering: Promise<boolean> | undefined
  let timer: NodeJS.Timeout | undefined

  const applyAll = (invalidations: readonly LedgerEntry[]): number =>
    invalidations.length === 0
      ? 0
      : options.apply(invalidations.map(({ seq, text }) => ({ seq, invalidation: decodeInvalidation(text) })))

  const advance = (seq: number): void => {
    if (seq > position.applied) position = { ...position, applied: seq }
  }

  const failed = (step: LedgerStep): void => {
    contact.failed(clock.monotonic())
    if (!closed) report({ kind: 'ledger-failed', step })
  }

  /** No member can still trust its memory, so writes stop waiting for acknowledgements. */
  const releaseIsolated = (): void => {
    if (contact.isIsolated(clock.monotonic())) backlog.release()
  }

  const reportTrust = (): void => {
    const trusting = lease.isCurrent(readClock(clock))
    if (trusting === wasTrusting) return
    wasTrusting = trusting
    report(trusting ? { kind: 'trust-regained' } : { kind: 'trust-lost', reason: lease.refusal })
  }

  const catchUp = (reply: Synced, received: number): void => {
    const { epoch, floor, invalidations, seq } = reply
    // A new ledger, or one that has forgotten invalidations since this position: every stored response may be stale.
    const isLost = epoch !== position.epoch || position.applied < floor
    if (isLost) {
      if (reply.lease === 'young-ledger') acknowledgements.quiet(received + leaseMs)
      if (position.epoch !== '') report({ kind: 'memory-dropped' })
      lease.end()
      position = { epoch, applied: floor }
      options.dropAll(position)
      isFirstLease = reply.lease === 'young-ledger'
      // A new ledger lacks the writes that the upstream may still carry out.
      backlog.add(quarantines.current(clock.monotonic()).map(encodeInvalidation), undefined)
    }
    // A push may have arrived before the reply.
    const news = isLost
      ? invalidations
      : invalidations.filter((invalidation) => invalidation.seq > position.applied)
    const entries = applyAll(news)
    advance(seq)
    if (isLost || news.length === 0) return
    report({ kind: 'notes-applied', invalidations: news.length })
    ledger.acknowledge(position, entries, undefined)
  }

  const syncOnce = async (): Promise<void> => {
    // Undelivered invalidations go first: a beat would make other members trust their memory again.
    if (!(await deliver())) return
    const sent = readClock(clock)
    try {
      const reply = await ledger.sync(position)
      const received = clock.monotonic()
      contact.succeeded()
      catchUp(reply, received)
      acknowledgements.readStatuses(reply, received)
      if (reply.lease === 'granted') {
        // What was stored without a lease may be older than such a write; all members have found the new ledger by now.
        if (isFirstLease) options.dropAll(position)
        isFirstLease = false
        lease.granted(sent)
      } else lease.refused(reply.lease)
    } catch {
      lease.refused('unreachable')
      failed('sync')
    }
  }
  const sync = (): Promise<void> => {
    syncing ??= syncOnce().finally(() => {
      syncing = undefined
      reportTrust()
    })
    return syncing
  }

  /** The reply to a running sync may predate the hint. Any number of calls cause one more sync. */
  const syncOnceMore = (): void => {
    if (syncing === undefined) void sync()
    else if (!isHinted) {
      isHinted = true
      void syncing.then(() => {
        isHinted = false
        return sync()
      })
    }
  }

  /** Syncs twice: the first reply is the proof for which the second lease is granted. */
  const isJoined = async (): Promise<boolean> => {
    await sync()
    if (lease.refusal === 'unproven') await sync()
    return lease.refusal !== 'unreachable' || lease.isCurrent(readClock(clock))
  }

  const appendedNow = (appended: Appended, batch: Batch, received: number): void => {
    contact.succeeded()
    const { epoch, seq } = appended
    // Apply again: the shared store may have returned an older response in between.
    if (batch.invalidations.length > 0) applyAll(batch.invalidations.map((text) => ({ seq, text })))
    // Without invalidations the number is that of another member's invalidations.
    const isOwn = batch.invalidations.length > 0 && epoch === position.epoch
    if (isOwn && seq === position.applied + 1) advance(seq)
    if (epoch !== position.epoch) acknowledgements.quiet(received + leaseMs)
    void acknowledgements.wait(appended, received).then((acknowledged) => {
      for (const { done } of batch.waiting) done(acknowledged)
    })
    if (epoch !== position.epoch || seq > position.applied) void sync()
  }

  const deliverOnce = async (): Promise<boolean> => {
    while (!backlog.isEmpty()) {
      const batch = backlog.take()
      try {
        const appended = await ledger.append(batch.invalidations, batch.settled)
        appendedNow(appended, batch, clock.monotonic())
      } catch {
        backlog.putBack(batch)
        failed('append')
        releaseIsolated()
        return false
      }
    }
    return true
  }
  /** Appends all waiting invalidations; false when an append failed. */
  const deliver = (): Promise<boolean> => {
    delivering ??= deliverOnce().finally(() => {
      delivering = undefined
    })
    return delivering
  }

  const take = (push: LedgerPush): void => {
    const { epoch, seq } = push
    if (push.kind === 'applied') {
      acknowledgements.acknowledged(epoch, push.member, seq, push.entries)
      return
    }
    if (epoch === position.epoch && seq <= position.applied) return
    if (push.kind === 'hint') {
      // This process gets its own invalidations with the reply to its append.
      if (push.writer !== member) syncOnceMore()
      return
    }
    if (epoch !== position.epoch || seq !== position.applied + 1) {
      void sync()
      return
    }
    const entries = applyAll(push.invalidations.map((text) => ({ seq, text })))
    advance(seq)
    if (push.writer === member) return
    report({ kind: 'notes-applied', invalidations: push.invalidations.length })
    ledger.acknowledge(position, entries, push.writer)
  }

  const tick = (): void => {
    contact.tick(clock.monotonic())
    reportTrust()
    releaseIsolated()
    void sync()
  }

  return {
    mayTrust: lease.isCurrent,
    get position() {
      return position
    },
    begin: createWriteRegistry({ ...options, backlog, contact, failed: () => failed('begin') }),
    broadcast: async (invalidations, write) => {
      const began = clock.monotonic()
      quarantines.record(invalidations, began)
      const { acknowledged, nothing } = backlog.add(invalidations.map(encodeInvalidation), write)
      releaseIsolated()
      void deliver()
      // A write that changes nothing waits for no member.
      if (nothing) return { entries: 0, unacknowledged: false }
      const end = await acknowledged
      const waitedSeconds = (clock.monotonic() - began) / 1000
      const outcome = end === 'isolated' ? 'isolated' : end.all ? 'acknowledged' : 'lapsed'
      report({ kind: 'write-broadcast', outcome, waitedSeconds })
      if (end !== 'isolated') return { entries: end.entries, unacknowledged: false }
      if (contact.isNews()) report({ kind: 'cut-off', writes: 'unacknowledged' })
      return { entries: 0, unacknowledged: true }
    },
    forget: (other) => {
      ledger.forget(other).catch(() => undefined)
    },
    quarantine: () => (lease.isCurrent(readClock(clock)) ? undefined : lease.refusal),
    isJoining: () => lease.isFirst && lease.refusal !== 'unreachable' && clock.monotonic() < joinedBy,
    start: async () => {
      joinedBy = clock.monotonic() + options.joinMs
      ledger.listen(take)
      timer = setInterval(tick, leaseMs / syncsPerLease)
      for (let tries = 0; tries < maxFirstTries && !(await isJoined()); tries += 1) {
        await sleep(firstPauseMs)
      }
    },
    close: async () => {
      closed = true
      clearInterval(timer)
      const delivered = await deliver()
      backlog.release()
      // A write or purge that still waits is acknowledged when the others have dropped what it changes, and not before.
      await acknowledgements.allAcknowledged()
      await ledger.leave(delivered)
    },
  }
}
