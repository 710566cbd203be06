import {
  encodeInvalidation,
  type Invalidation,
  longestQuarantine,
  quarantineEverything,
} from '../../cache/invalidation.ts'
import { type Appended, type CoherenceOptions, maxLedgerEntries, type Synced } from '../ledger.ts'

type Deferred<Value> = {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
}

/** `Promise.withResolvers`, which Node 20 does not have. */
const deferred = <Value>(): Deferred<Value> => {
  let resolve: (value: Value) => void = () => undefined
  const promise = new Promise<Value>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

type Acknowledgement = { readonly all: boolean; readonly entries: number }

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

type Delivery = Acknowledgement | 'isolated'

type WaitingWrite = { readonly done: (delivery: Delivery) => void }

export type Batch = {
  readonly invalidations: readonly string[]
  readonly settled: readonly string[]
  readonly waiting: readonly WaitingWrite[]
}

/** Total length of all invalidations: clients choose the length of the targets that they write to. */
const maxCharacters = 4 * 1024 * 1024
const maxSettled = 65_536
const everything = encodeInvalidation({ kind: 'all', mode: 'hard' })

/**
 * Changes that are not in the ledger yet. During an append, new ones are collected for the next append; while the ledger
 * is unreachable, they wait.
 */
export const createBacklog = () => {
  let invalidations = new Set<string>()
  let characters = 0
  let settled: string[] = []
  let waiting: WaitingWrite[] = []
  const addInvalidations = (more: readonly string[]): void => {
    for (const invalidation of more) {
      if (invalidations.has(invalidation)) continue
      invalidations.add(invalidation)
      characters += invalidation.length
    }
    // More invalidations than the ledger stores become one invalidation for everything, and one quarantine.
    if (invalidations.size <= maxLedgerEntries && characters <= maxCharacters) return
    const forMs = longestQuarantine([...invalidations])
    invalidations = new Set(forMs > 0 ? [everything, quarantineEverything(forMs)] : [everything])
    characters = everything.length
  }
  return {
    add: (more: readonly string[], write: string | undefined) => {
      addInvalidations(more)
      // A write that is never settled counts as one with unknown outcome when this member ends: safe, only less precise.
      if (write !== undefined && settled.length < maxSettled) settled.push(write)
      const { promise, resolve } = deferred<Delivery>()
      const nothing = more.length === 0
      if (!nothing) waiting.push({ done: resolve })
      return { acknowledged: promise, nothing }
    },
    isEmpty: (): boolean => invalidations.size === 0 && settled.length === 0,
    take: (): Batch => {
      const batch = { invalidations: [...invalidations], settled, waiting }
      invalidations = new Set()
      characters = 0
      settled = []
      waiting = []
      return batch
    },
    putBack: (batch: Batch): void => {
      const later = [...invalidations]
      invalidations = new Set()
      characters = 0
      addInvalidations(batch.invalidations)
      addInvalidations(later)
      settled = [...batch.settled, ...settled].slice(0, maxSettled)
      waiting = [...batch.waiting, ...waiting]
    },
    /** Ends all waits: every lease has run out. The changes stay queued. */
    release: (): void => {
      for (const { done } of waiting) done('isolated')
      waiting = []
    },
  }
}

/** No lease outlasts a silent member by more than this many lease times (docs/decisions/0007, 7). */
const isolatedAfterLeases = 3

/**
 * Whether the ledger can be reached; times are readings of the monotonic clock. `canBeCutOff` false: a process that cannot reach the
 * ledger is about to exit, and waits until then.
 */
export const createContact = (leaseMs: number, canBeCutOff: boolean) => {
  let failingSince: number | undefined
  let lastTick = Number.POSITIVE_INFINITY
  let isReported = false
  return {
    succeeded: (): void => {
      failingSince = undefined
      isReported = false
    },
    failed: (now: number): void => {
      failingSince ??= now
    },
    /** Call it regularly: a process that was suspended has not tried to reach the ledger meanwhile. */
    tick: (now: number): void => {
      if (now - lastTick > leaseMs && failingSince !== undefined) failingSince = now
      lastTick = now
    },
    isFailing: (): boolean => failingSince !== undefined,
    /** True once in each outage, so that an outage is reported once. */
    isNews: (): boolean => {
      const wasReported = isReported
      isReported = true
      return !wasReported
    },
    /** Has the ledger been unreachable for longer than any lease can last? */
    isIsolated: (now: number): boolean =>
      canBeCutOff &&
      // After a suspension another timer may fire before the tick: wait for the tick.
      now - lastTick <= leaseMs &&
      failingSince !== undefined &&
      now - failingSince >= isolatedAfterLeases * leaseMs,
  }
}

/** Whether a write may be sent, and the name that settles it later. */
export type Begun = { readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }

type WriteRegistryParts = Pick<CoherenceOptions, 'ledger' | 'member' | 'refusesUnacknowledged' | 'report'> & {
  readonly backlog: Pick<ReturnType<typeof createBacklog>, 'add'>
  readonly contact: Pick<ReturnType<typeof createContact>, 'isFailing' | 'isNews'>
  readonly failed: () => void
}

/** Names writes, and records them in the ledger before they are sent. */
export const createWriteRegistry = (
  parts: WriteRegistryParts,
): ((invalidations: readonly Invalidation[], mayMatter: boolean) => Promise<Begun>) => {
  const { backlog, contact, report } = parts
  let writes = 0

  const unacknowledged = (write: string, mayMatter: boolean): Begun => {
    // If this process ends before the write is settled, the other members drop everything when its lease runs out.
    if (!parts.refusesUnacknowledged || !mayMatter) return { kind: 'begun', write }
    report({ kind: 'write-refused' })
    if (contact.isNews()) report({ kind: 'cut-off', writes: 'refused' })
    return { kind: 'refused' }
  }
  return async (invalidations, mayMatter) => {
    writes += 1
    const write = `${parts.member}#${writes}`
    if (contact.isFailing()) return unacknowledged(write, mayMatter)
    try {
      await parts.ledger.begin(write, invalidations.map(encodeInvalidation))
    } catch {
      parts.failed()
      // The ledger may have it: settle it, or a refused write would count as one with unknown outcome.
      if (parts.refusesUnacknowledged && mayMatter) backlog.add([], write)
      return unacknowledged(write, mayMatter)
    }
    return { kind: 'begun', write }
  }
}
