import { holdEverything, longestHold } from '../../cache/invalidation.ts'
import type { LedgerPosition } from '../../cache/shared-tier.ts'
import type { Clock } from '../../clock.ts'
import type { Appended, LedgerPush, LedgerStanding, Noted, Synced } from '../ledger.ts'

/** Total length of the remembered notes: clients choose how long the targets are that they write to. */
const mostCharacters = 8 * 1024 * 1024

type LedgerMember = { applied: number; beat: number; readonly pending: Map<string, readonly string[]> }

export type MemoryLedgerOptions = {
  readonly epoch: string
  readonly rememberedNotes: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly push: (member: string, push: LedgerPush) => void
}

/** The ledger that a parent process holds for its workers (docs/decisions/0007). It outlives them, so it has one epoch. */
export const createMemoryLedger = ({ clock, epoch, rememberedNotes, push }: MemoryLedgerOptions) => {
  const members = new Map<string, LedgerMember>()
  /** Ordered by the last append of each. */
  const log = new Map<string, number>()
  let seq = 0
  let floor = 0
  let characters = 0
  /** No hold that was ever noted lasts longer. */
  let heldUntil = Number.NEGATIVE_INFINITY

  const memberOf = (name: string): LedgerMember => {
    const member = members.get(name) ?? { applied: 0, beat: 0, pending: new Map() }
    members.set(name, member)
    return member
  }
  const others = (name: string): readonly LedgerStanding[] =>
    [...members]
      .filter(([member]) => member !== name)
      .map(([member, { applied, beat }]) => ({ member, applied, beat }))

  const note = (text: string): void => {
    if (!log.delete(text)) characters += text.length
    log.set(text, seq)
    for (const [oldest, at] of log) {
      if (log.size <= rememberedNotes && characters <= mostCharacters) return
      log.delete(oldest)
      characters -= oldest.length
      floor = at
    }
  }
  const since = (applied: number): readonly Noted[] =>
    applied === seq ? [] : [...log].filter(([, at]) => at > applied).map(([text, at]) => ({ seq: at, text }))
  /** In place of the holds that may be among the forgotten notes. */
  const forgottenSince = (applied: number): readonly Noted[] => {
    const forMs = Math.ceil(heldUntil - clock.monotonic())
    return applied < floor && forMs > 0 ? [{ seq, text: holdEverything(forMs) }] : []
  }

  const noteAll = (writer: string, notes: readonly string[]): void => {
    if (notes.length === 0) return
    seq += 1
    const forMs = longestHold(notes)
    if (forMs > 0) heldUntil = Math.max(heldUntil, clock.monotonic() + forMs)
    for (const text of notes) note(text)
    for (const member of members.keys()) push(member, { kind: 'noted', epoch, seq, writer, notes })
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
        notes: [...since(applied), ...forgottenSince(applied)],
        members: others(name),
        lease: 'granted',
      }
    },
    begin: (name: string, write: string, notes: readonly string[]): void => {
      memberOf(name).pending.set(write, notes)
    },
    append: (name: string, notes: readonly string[], settled: readonly string[]): Appended => {
      const { pending } = memberOf(name)
      for (const write of settled) pending.delete(write)
      noteAll(name, notes)
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
      const receivers = writer === undefined ? [...members.keys()] : [writer]
      for (const receiver of receivers) {
        if (receiver !== name)
          push(receiver, { kind: 'applied', epoch, seq: applied.applied, member: name, entries })
      }
    },
    /** Notes the member's unsettled writes as writes with unknown outcome. Returns their number. */
    forget: (name: string): number => {
      const pending = [...(members.get(name)?.pending.values() ?? [])]
      members.delete(name)
      noteAll(name, [...new Set(pending.flat())])
      return pending.length
    },
  }
}

export type MemoryLedger = ReturnType<typeof createMemoryLedger>
