import { longestQuarantine, quarantineEverything } from '../../cache/invalidation.ts'
import type { LedgerPosition } from '../../cache/shared-tier.ts'
import type { Clock } from '../../clock.ts'
import type { Appended, LedgerEntry, LedgerPush, LedgerStatus, Synced } from '../ledger.ts'

/** Total length of the remembered invalidations: clients choose how long the targets are that they write to. */
const maxCharacters = 8 * 1024 * 1024

type LedgerMember = { applied: number; beat: number; readonly pending: Map<string, readonly string[]> }

export type MemoryLedgerOptions = {
  readonly epoch: string
  readonly maxLedgerEntries: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly push: (member: string, push: LedgerPush) => void
}

/** The ledger that a parent process holds for its workers (docs/decisions/0007). It outlives them, so it has one epoch. */
export const createMemoryLedger = ({ clock, epoch, maxLedgerEntries, push }: MemoryLedgerOptions) => {
  const members = new Map<string, LedgerMember>()
  /** Ordered by the last append of each. */
  const log = new Map<string, number>()
  let seq = 0
  let floor = 0
  let characters = 0
  /** No quarantine that was ever recorded lasts longer. */
  let quarantinedUntil = Number.NEGATIVE_INFINITY

  const memberOf = (name: string): LedgerMember => {
    const member = members.get(name) ?? { applied: 0, beat: 0, pending: new Map() }
    members.set(name, member)
    return member
  }
  const others = (name: string): readonly LedgerStatus[] =>
    [...members]
      .filter(([member]) => member !== name)
      .map(([member, { applied, beat }]) => ({ member, applied, beat }))

  const record = (text: string): void => {
    if (!log.delete(text)) characters += text.length
    log.set(text, seq)
    for (const [oldest, at] of log) {
      if (log.size <= maxLedgerEntries && characters <= maxCharacters) return
      log.delete(oldest)
      characters -= oldest.length
      floor = at
    }
  }
  const since = (applied: number): readonly LedgerEntry[] =>
    applied === seq ? [] : [...log].filter(([, at]) => at > applied).map(([text, at]) => ({ seq: at, text }))
  /** In place of the quarantines that may be among the forgotten invalidations. */
  const forgottenSince = (applied: number): readonly LedgerEntry[] => {
    const forMs = Math.ceil(quarantinedUntil - clock.monotonic())
    return applied < floor && forMs > 0 ? [{ seq, text: quarantineEverything(forMs) }] : []
  }

  const recordAll = (writer: string, invalidations: readonly string[]): void => {
    if (invalidations.length === 0) return
    seq += 1
    const forMs = longestQuarantine(invalidations)
    if (forMs > 0) quarantinedUntil = Math.max(quarantinedUntil, clock.monotonic() + forMs)
    for (const text of invalidations) record(text)
    for (const member of members.keys()) push(member, { kind: 'noted', epoch, seq, writer, invalidations })
  }

  return {
    sync: (name: string, position: LedgerPosition): Synced => {
      const member = memberOf(name)
      // A position in another ledger does not compare.
      const applied = position.epoch === epoch ? position.applied : 0
      member.applied = Math.max(member.applied, applied)
      member.beat += 1
      return {
        epoch,
        seq,
        floor,
        invalidations: [...since(applied), ...forgottenSince(applied)],
        members: others(name),
        lease: 'granted',
      }
    },
    begin: (name: string, write: string, invalidations: readonly string[]): void => {
      memberOf(name).pending.set(write, invalidations)
    },
    append: (name: string, invalidations: readonly string[], settled: readonly string[]): Appended => {
      const { pending } = memberOf(name)
      for (const write of settled) pending.delete(write)
      recordAll(name, invalidations)
      return { epoch, seq, members: others(name) }
    },
    acknowledge: (
      name: string,
      applied: LedgerPosition,
      entries: number,
      writer: string | undefined,
    ): void => {
      const member = memberOf(name)
      if (applied.epoch !== epoch) return
      member.applied = Math.max(member.applied, applied.applied)
      const recipients = writer === undefined ? [...members.keys()] : [writer]
      for (const recipient of recipients) {
        if (recipient !== name)
          push(recipient, { kind: 'applied', epoch, seq: applied.applied, member: name, entries })
      }
    },
    /** Records the member's unsettled writes as writes with unknown outcome. Returns their number. */
    forget: (name: string): number => {
      const pending = [...(members.get(name)?.pending.values() ?? [])]
      members.delete(name)
      recordAll(name, [...new Set(pending.flat())])
      return pending.length
    },
  }
}

export type MemoryLedger = ReturnType<typeof createMemoryLedger>
