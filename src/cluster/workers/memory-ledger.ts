import type { Appended, Noted, Position, Push, Standing, Synced } from '../ledger.ts'

/** The ledger that a parent keeps for its workers (docs/decisions/0007). It lives as long as they do, so that it has one epoch. */
export type MemoryLedger = {
  sync(member: string, position: Position): Synced
  begin(member: string, write: string, notes: readonly string[]): void
  append(member: string, notes: readonly string[], settled: readonly string[]): Appended
  acknowledge(member: string, applied: Position, entries: number, writer: string | undefined): void
  /** What the member had begun and not settled counts as written with unknown outcome. Returns the number of such writes. */
  forget(member: string): number
}

/** Of the texts that it remembers: clients choose how long the targets are that they write to. */
const mostCharacters = 8 * 1024 * 1024

type Member = { applied: number; beat: number; readonly pending: Map<string, readonly string[]> }

export type MemoryLedgerOptions = {
  readonly epoch: string
  readonly rememberedNotes: number
  readonly push: (member: string, push: Push) => void
}

export const createMemoryLedger = ({ epoch, rememberedNotes, push }: MemoryLedgerOptions): MemoryLedger => {
  const members = new Map<string, Member>()
  /** In the order of the last append of each. */
  const log = new Map<string, number>()
  let seq = 0
  let floor = 0
  let characters = 0

  const memberOf = (name: string): Member => {
    const known = members.get(name) ?? { applied: 0, beat: 0, pending: new Map() }
    members.set(name, known)
    return known
  }
  const others = (name: string): readonly Standing[] =>
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

  const noteAll = (writer: string, notes: readonly string[]): void => {
    if (notes.length === 0) return
    seq += 1
    for (const text of notes) note(text)
    for (const member of members.keys()) push(member, { kind: 'noted', epoch, seq, writer, notes })
  }

  return {
    sync: (name, position) => {
      const member = memberOf(name)
      // What it says of another ledger says nothing of this one.
      const applied = position.epoch === epoch ? position.applied : 0
      member.applied = Math.max(member.applied, applied)
      member.beat += 1
      return { epoch, seq, floor, notes: since(applied), members: others(name), lease: 'granted' }
    },
    begin: (name, write, notes) => {
      memberOf(name).pending.set(write, notes)
    },
    append: (name, notes, settled) => {
      const { pending } = memberOf(name)
      for (const write of settled) pending.delete(write)
      noteAll(name, notes)
      return { epoch, seq, members: others(name) }
    },
    acknowledge: (name, applied, entries, writer) => {
      const member = memberOf(name)
      if (applied.epoch !== epoch) return
      member.applied = Math.max(member.applied, applied.applied)
      const told = writer === undefined ? [...members.keys()] : [writer]
      for (const one of told) {
        if (one !== name) push(one, { kind: 'applied', epoch, seq: applied.applied, member: name, entries })
      }
    },
    forget: (name) => {
      const pending = [...(members.get(name)?.pending.values() ?? [])]
      members.delete(name)
      noteAll(name, [...new Set(pending.flat())])
      return pending.length
    },
  }
}
