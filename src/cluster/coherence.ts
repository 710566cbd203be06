import { decodeNote, encodeNote, type Note } from '../cache/invalidation-note.ts'
import { type Moment, readClock } from '../clock.ts'
import type { DistrustReason, LedgerStep } from './events.ts'
import type { Appended, CoherenceOptions, Noted, Position, Push, Synced } from './ledger.ts'
import { createAcknowledgements } from './protocol/acknowledgements.ts'
import { type Begun, createBeginnings, createContact } from './protocol/announce-write.ts'
import { type Batch, createBacklog } from './protocol/backlog.ts'

type Hold = Extract<Note, { kind: 'hold' }>

/** Writes of unknown outcome of this process that may still be carried out: a ledger that is made anew has to be told again. */
type Holds = {
  note(notes: readonly Note[], now: number): void
  /** Those whose time is not over. Times are readings of the monotonic clock. */
  current(now: number): readonly Hold[]
}

/** As many as a ledger remembers. */
const mostHolds = 16_384

const createHolds = (): Holds => {
  const until = new Map<string, { readonly hold: Hold; readonly at: number }>()
  const tidy = (now: number): void => {
    for (const [tag, { at }] of until) if (at <= now) until.delete(tag)
  }
  return {
    note: (notes, now) => {
      for (const note of notes) {
        if (note.kind !== 'hold') continue
        if (until.size >= mostHolds) tidy(now)
        // Too many at once is what holds everything in memory as well.
        if (until.size < mostHolds) until.set(note.tag, { hold: note, at: now + note.forMs })
      }
    },
    current: (now) => {
      tidy(now)
      return [...until.values()].map(({ hold }) => hold)
    },
  }
}

/** How long this process may trust its memory. */
type Lease = {
  isCurrent(at: Moment): boolean
  /** From before the message was sent that asked for it. */
  granted(sent: Moment): void
  refused(reason: DistrustReason): void
  /** What it was granted for is no longer there. */
  end(): void
  /** Why there was none the last time. */
  readonly refusal: DistrustReason
}

const never: Moment = { now: Number.NEGATIVE_INFINITY, monotonic: Number.NEGATIVE_INFINITY }

/** Clocks of two machines may run at slightly different speeds. */
const usedShare = 0.95

/** By two clocks: the monotonic one stands still while a machine is suspended, the other one may be set back. */
const createLease = (leaseMs: number): Lease => {
  let until = never
  let refusal: DistrustReason = 'unreachable'
  return {
    isCurrent: (at) => at.monotonic < until.monotonic && at.now < until.now,
    granted: (sent) => {
      const forMs = leaseMs * usedShare
      until = { now: sent.now + forMs, monotonic: sent.monotonic + forMs }
    },
    refused: (reason) => {
      refusal = reason
    },
    end: () => {
      until = never
    },
    get refusal() {
      return refusal
    },
  }
}

/** What came of telling others. */
type Spread = {
  /** Stored responses dropped elsewhere. */
  readonly entries: number
  /** This process is cut off, and those who may not be hear of it when it is back. */
  readonly unheard: boolean
}

const nobodyToTell: Spread = { entries: 0, unheard: false }

/** Keeps the memory tier of one process in step with those of others (docs/decisions/0007). */
export type Coherence = {
  /** May a read that has been received be answered from memory at this moment? */
  mayTrust(at: Moment): boolean
  /** What is fetched from now on is newer than everything noted up to here. */
  readonly place: Position
  /** To be awaited before a write is sent; `mayMatter`: something that it changes may be stored somewhere. */
  begin(notes: readonly Note[], mayMatter: boolean): Promise<Begun>
  /**
   * To be awaited before a write is answered: from then on nobody answers from memory with what the notes say is no longer
   * true. They must have been carried out here before.
   */
  spread(notes: readonly Note[], write?: string): Promise<Spread>
  /** Another member is known to have ended. */
  forget(member: string): void
  /** Why this process does not trust its memory; undefined when it does. */
  distrust(): DistrustReason | undefined
  start(): Promise<void>
  close(): Promise<void>
}

const syncsPerLease = 4
/** A connection takes a moment to be there. Without a ledger the process starts all the same, and asks upstreams. */
const mostFirstTries = 20
const firstPauseMs = 50

export const createCoherence = (options: CoherenceOptions): Coherence => {
  const { clock, leaseMs, ledger, member, report } = options
  const acknowledgements = createAcknowledgements(leaseMs)
  const backlog = createBacklog()
  const contact = createContact(leaseMs, options.canBeCutOff)
  const lease = createLease(leaseMs)
  const holds = createHolds()
  let place: Position = { epoch: '', applied: 0 }
  let wasTrusting = false
  let closed = false
  let syncing: Promise<void> | undefined
  let isHinted = false
  let delivering: Promise<boolean> | undefined
  let timer: NodeJS.Timeout | undefined

  const applyAll = (notes: readonly Noted[]): number =>
    notes.length === 0 ? 0 : options.apply(notes.map(({ seq, text }) => ({ seq, note: decodeNote(text) })))

  const advance = (seq: number): void => {
    if (seq > place.applied) place = { ...place, applied: seq }
  }

  const failed = (step: LedgerStep): void => {
    contact.failed(clock.monotonic())
    if (!closed) report({ kind: 'ledger-failed', step })
  }

  /** Nobody trusts its memory any more: a write need not wait for anybody. */
  const releaseIsolated = (): void => {
    if (contact.isIsolated(clock.monotonic())) backlog.release()
  }

  const tellTrust = (): void => {
    const trusting = lease.isCurrent(readClock(clock))
    if (trusting === wasTrusting) return
    wasTrusting = trusting
    report(trusting ? { kind: 'trust-regained' } : { kind: 'trust-lost', reason: lease.refusal })
  }

  const catchUp = (reply: Synced, received: number): void => {
    const { epoch, floor, notes, seq } = reply
    // Another ledger than before, or one that does not remember so far: whatever is stored may be wrong.
    const isLost = epoch !== place.epoch || place.applied < floor
    if (isLost) {
      if (reply.lease === 'young-ledger') acknowledgements.quiet(received + leaseMs)
      if (place.epoch !== '') report({ kind: 'memory-dropped' })
      lease.end()
      place = { epoch, applied: floor }
      options.dropAll(place)
      // A new ledger knows nothing of writes that may still be carried out.
      backlog.add(holds.current(clock.monotonic()).map(encodeNote), undefined)
    }
    // A push may have been quicker than the reply.
    const news = notes.filter((one) => one.seq > place.applied)
    const entries = applyAll(news)
    advance(seq)
    if (isLost || news.length === 0) return
    report({ kind: 'notes-applied', notes: news.length })
    ledger.acknowledge(place, entries, undefined)
  }

  const syncOnce = async (): Promise<void> => {
    // What nobody has heard of yet goes first: a beat would make others trust their memory again.
    if (!(await deliver())) return
    const sent = readClock(clock)
    try {
      const reply = await ledger.sync(place)
      const received = clock.monotonic()
      contact.succeeded()
      catchUp(reply, received)
      acknowledgements.seen(reply, received)
      if (reply.lease === 'granted') lease.granted(sent)
      else lease.refused(reply.lease)
    } catch {
      lease.refused('unreachable')
      failed('sync')
    }
  }
  const sync = (): Promise<void> => {
    syncing ??= syncOnce().finally(() => {
      syncing = undefined
      tellTrust()
    })
    return syncing
  }

  /** A sync that is under way may have been answered before. However often this is called, one more follows. */
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

  /** Twice: the first reply is the proof that the second one is granted for. */
  const isJoined = async (): Promise<boolean> => {
    await sync()
    if (lease.refusal === 'unproven') await sync()
    return lease.refusal !== 'unreachable' || lease.isCurrent(readClock(clock))
  }

  const appendedNow = (appended: Appended, batch: Batch, received: number): void => {
    contact.succeeded()
    const { epoch, seq } = appended
    // Once more: the second tier may have given back what was true before.
    if (batch.notes.length > 0) applyAll(batch.notes.map((text) => ({ seq, text })))
    if (epoch === place.epoch && seq === place.applied + 1) advance(seq)
    if (epoch !== place.epoch) acknowledgements.quiet(received + leaseMs)
    void acknowledgements.wait(appended, received).then((heard) => {
      for (const { done } of batch.waiting) done(heard)
    })
    if (epoch !== place.epoch || seq > place.applied) void sync()
  }

  const deliverOnce = async (): Promise<boolean> => {
    while (!backlog.isEmpty()) {
      const batch = backlog.take()
      try {
        const appended = await ledger.append(batch.notes, batch.settled)
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
  /** Appends what is waiting; false when that failed. */
  const deliver = (): Promise<boolean> => {
    delivering ??= deliverOnce().finally(() => {
      delivering = undefined
    })
    return delivering
  }

  const take = (push: Push): void => {
    const { epoch, seq } = push
    if (push.kind === 'applied') {
      acknowledgements.acknowledged(epoch, push.member, seq, push.entries)
      return
    }
    if (epoch === place.epoch && seq <= place.applied) return
    if (push.kind === 'hint') {
      // What this process appended comes with the answer to its append.
      if (push.writer !== member) syncOnceMore()
      return
    }
    if (epoch !== place.epoch || seq !== place.applied + 1) {
      void sync()
      return
    }
    const entries = applyAll(push.notes.map((text) => ({ seq, text })))
    advance(seq)
    if (push.writer === member) return
    report({ kind: 'notes-applied', notes: push.notes.length })
    ledger.acknowledge(place, entries, push.writer)
  }

  const tick = (): void => {
    contact.tick(clock.monotonic())
    tellTrust()
    releaseIsolated()
    void sync()
  }

  return {
    mayTrust: (at) => lease.isCurrent(at),
    get place() {
      return place
    },
    begin: createBeginnings({ ...options, backlog, contact, failed: () => failed('begin') }),
    spread: async (notes, write) => {
      const began = clock.monotonic()
      holds.note(notes, began)
      const { heard, nothing } = backlog.add(notes.map(encodeNote), write)
      releaseIsolated()
      void deliver()
      // A write that changed nothing has nobody to wait for.
      if (nothing) return nobodyToTell
      const end = await heard
      const waitedSeconds = (clock.monotonic() - began) / 1000
      const outcome = end === 'isolated' ? 'isolated' : end.all ? 'acknowledged' : 'lapsed'
      report({ kind: 'write-spread', outcome, waitedSeconds })
      if (end !== 'isolated') return { entries: end.entries, unheard: false }
      if (contact.isNews()) report({ kind: 'cut-off', writes: 'unheard' })
      return { entries: 0, unheard: true }
    },
    forget: (other) => {
      ledger.forget(other).catch(() => undefined)
    },
    distrust: () => (lease.isCurrent(readClock(clock)) ? undefined : lease.refusal),
    start: async () => {
      ledger.listen(take)
      timer = setInterval(tick, leaseMs / syncsPerLease)
      for (let tries = 0; tries < mostFirstTries && !(await isJoined()); tries += 1) {
        await new Promise((resolve) => setTimeout(resolve, firstPauseMs))
      }
    },
    close: async () => {
      closed = true
      clearInterval(timer)
      const told = await deliver()
      backlog.release()
      acknowledgements.close()
      await ledger.leave(told)
    },
  }
}
