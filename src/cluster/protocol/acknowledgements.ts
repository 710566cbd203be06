import type { Appended, Synced } from '../ledger.ts'

/** A promise and what settles it. */
type Deferred<Value> = {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
}

/** `Promise.withResolvers`, which Node 20 does not have. */
export const deferred = <Value>(): Deferred<Value> => {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** What came of waiting for the other members. */
export type Heard = { readonly all: boolean; readonly entries: number }

/** Waits until every other member has applied an append, or can no longer trust what it had before. */
type Acknowledgements = {
  /** What a reply says of the others; `receivedAt` is when it came. */
  seen(reply: Pick<Synced, 'epoch' | 'members'>, receivedAt: number): void
  /** The ledger is a new one: leases of the old one may run on until then. */
  quiet(until: number): void
  acknowledged(epoch: string, member: string, applied: number, entries: number): void
  wait(appended: Appended, receivedAt: number): Promise<Heard>
  /** Ends all waits: nobody will answer any more. */
  close(): void
}

type Wait = {
  readonly epoch: string
  readonly seq: number
  readonly left: Set<string>
  entries: number
  readonly end: (all: boolean) => void
}

type Early = {
  readonly epoch: string
  readonly member: string
  readonly applied: number
  readonly entries: number
}

/** Messages that are read in one turn are told one after the other before any promise goes on: no more than these matter. */
const mostEarly = 64

/** Stands for the members of a ledger that is gone: nobody knows who they were. */
const former = ''
/** To some of them it may not be gone: they trust their memory for so long without a word from this one (docs/decisions/0007, 7). */
const formerLeases = 3

/**
 * A member's lease is over one `leaseMs` after its current beat was first seen here: the beat was given before that, and
 * the message that asked for it was sent even earlier. Times are readings of the monotonic clock.
 */
export const createAcknowledgements = (leaseMs: number): Acknowledgements => {
  const beats = new Map<string, { readonly beat: number; readonly seenAt: number }>()
  const waits = new Set<Wait>()
  /** The last ones, oldest first: a member may answer before the reply to the append has reached who waits. */
  const early: Early[] = []
  let beatsOf = ''
  let lastSeenAt = Number.NEGATIVE_INFINITY
  let quietUntil = Number.NEGATIVE_INFINITY

  const heard = (epoch: string, member: string, applied: number, entries: number): void => {
    for (const wait of waits) {
      if (wait.epoch !== epoch || applied < wait.seq || !wait.left.delete(member)) continue
      if (applied === wait.seq) wait.entries += entries
      if (wait.left.size === 0) wait.end(true)
    }
  }
  const seen: Acknowledgements['seen'] = ({ epoch, members }, receivedAt) => {
    if (epoch !== beatsOf) {
      // Numbers of another ledger say nothing.
      beats.clear()
      quietUntil = Math.max(quietUntil, lastSeenAt + formerLeases * leaseMs)
    }
    beatsOf = epoch
    lastSeenAt = receivedAt
    const present = new Set(members.map(({ member }) => member))
    for (const member of beats.keys()) if (!present.has(member)) beats.delete(member)
    for (const { member, beat, applied } of members) {
      if (beats.get(member)?.beat !== beat) beats.set(member, { beat, seenAt: receivedAt })
      heard(epoch, member, applied, 0)
    }
  }
  /** Who has to be waited for, and until when. */
  const behind = ({ seq, members }: Appended, now: number): Map<string, number> => {
    const deadlines = new Map<string, number>()
    if (quietUntil > now) deadlines.set(former, quietUntil)
    for (const { member, applied } of members) {
      if (applied < seq) deadlines.set(member, (beats.get(member)?.seenAt ?? now) + leaseMs)
    }
    return deadlines
  }
  return {
    seen,
    quiet: (until) => {
      quietUntil = Math.max(quietUntil, until)
    },
    acknowledged: (epoch, member, applied, entries) => {
      early.push({ epoch, member, applied, entries })
      if (early.length > mostEarly) early.shift()
      heard(epoch, member, applied, entries)
    },
    wait: (appended, now) => {
      seen(appended, now)
      const deadlines = behind(appended, now)
      const left = [...deadlines].filter(([, deadline]) => deadline > now)
      if (left.length === 0) return Promise.resolve({ all: deadlines.size === 0, entries: 0 })
      const longest = Math.max(...left.map(([, deadline]) => deadline)) - now
      const { promise, resolve } = deferred<Heard>()
      const timer = setTimeout(() => wait.end(false), longest)
      const wait: Wait = {
        epoch: appended.epoch,
        seq: appended.seq,
        left: new Set(left.map(([member]) => member)),
        entries: 0,
        end: (all) => {
          clearTimeout(timer)
          waits.delete(wait)
          resolve({ all, entries: wait.entries })
        },
      }
      waits.add(wait)
      for (const { epoch, member, applied, entries } of early) heard(epoch, member, applied, entries)
      return promise
    },
    close: () => {
      for (const wait of waits) wait.end(false)
    },
  }
}
