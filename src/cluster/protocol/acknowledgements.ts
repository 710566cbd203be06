import type { Appended, Synced } from '../ledger.ts'
import { deferred } from './deferred.ts'

export type Acknowledgement = { readonly all: boolean; readonly entries: number }

type Wait = {
  readonly epoch: string
  readonly seq: number
  readonly pending: Set<string>
  entries: number
  readonly acknowledged: Promise<Acknowledgement>
  readonly end: (all: boolean) => void
}

/** Acknowledgements that may arrive in the turn of the event loop in which the append is answered. */
const maxEarly = 64

/** Stands for the unknown members of a previous ledger. */
const former = ''
/** Some of them may still reach the previous ledger; their leases end within this many (docs/decisions/0007, 7). */
const formerLeases = 3

/**
 * Waits until every other member has applied an append, or until its lease has run out. A member's lease ends at the latest one `leaseMs` after its current beat was first seen here: the lease counts from the
 * request for that beat, which was sent earlier. Times are readings of the monotonic clock.
 */
export const createAcknowledgements = (leaseMs: number) => {
  const beats = new Map<string, { readonly beat: number; readonly seenAt: number }>()
  const waits = new Set<Wait>()
  let beatsOf = ''
  let lastSeenAt = Number.NEGATIVE_INFINITY
  let quietUntil = Number.NEGATIVE_INFINITY

  const acknowledged = (epoch: string, member: string, applied: number, entries: number): void => {
    for (const wait of waits) {
      if (wait.epoch !== epoch || applied < wait.seq || !wait.pending.delete(member)) continue
      if (applied === wait.seq) wait.entries += entries
      if (wait.pending.size === 0) wait.end(true)
    }
  }
  /** The last acknowledgements, oldest first: one may arrive before the reply to the append. */
  const early: Parameters<typeof acknowledged>[] = []
  /** Takes the status of the other members from a reply that arrived at `receivedAt`. */
  const readStatuses = ({ epoch, members }: Pick<Synced, 'epoch' | 'members'>, receivedAt: number): void => {
    if (epoch !== beatsOf) {
      // Numbers of another ledger do not compare.
      beats.clear()
      quietUntil = Math.max(quietUntil, lastSeenAt + formerLeases * leaseMs)
    }
    beatsOf = epoch
    lastSeenAt = receivedAt
    const present = new Set(members.map(({ member }) => member))
    for (const member of beats.keys()) if (!present.has(member)) beats.delete(member)
    for (const { member, beat, applied } of members) {
      if (beats.get(member)?.beat !== beat) beats.set(member, { beat, seenAt: receivedAt })
      acknowledged(epoch, member, applied, 0)
    }
  }
  /** The members to wait for, each with its deadline. */
  const behind = ({ seq, members }: Appended, now: number): Map<string, number> => {
    const deadlines = new Map<string, number>()
    if (quietUntil > now) deadlines.set(former, quietUntil)
    for (const { member, applied } of members) {
      if (applied < seq) deadlines.set(member, (beats.get(member)?.seenAt ?? now) + leaseMs)
    }
    return deadlines
  }
  return {
    readStatuses,
    /** The ledger is new: leases of the old one may run until this time. */
    quiet: (until: number): void => {
      quietUntil = Math.max(quietUntil, until)
    },
    acknowledged: (epoch: string, member: string, applied: number, entries: number): void => {
      early.push([epoch, member, applied, entries])
      if (early.length > maxEarly) early.shift()
      acknowledged(epoch, member, applied, entries)
    },
    wait: (appended: Appended, now: number): Promise<Acknowledgement> => {
      readStatuses(appended, now)
      const deadlines = behind(appended, now)
      const pending = [...deadlines].filter(([, deadline]) => deadline > now)
      if (pending.length === 0) return Promise.resolve({ all: deadlines.size === 0, entries: 0 })
      const longest = Math.max(...pending.map(([, deadline]) => deadline)) - now
      const { promise, resolve } = deferred<Acknowledgement>()
      const timer = setTimeout(() => wait.end(false), longest)
      const wait: Wait = {
        epoch: appended.epoch,
        seq: appended.seq,
        pending: new Set(pending.map(([member]) => member)),
        entries: 0,
        acknowledged: promise,
        end: (all) => {
          clearTimeout(timer)
          waits.delete(wait)
          resolve({ all, entries: wait.entries })
        },
      }
      waits.add(wait)
      for (const acknowledgement of early) acknowledged(...acknowledgement)
      return promise
    },
    /** Resolves when no change waits any more. */
    allAcknowledged: async (): Promise<void> => {
      await Promise.all([...waits].map(({ acknowledged: whenAcknowledged }) => whenAcknowledged))
    },
  }
}
