import { oneOf, type Random } from '../support/random.ts'
import type { MemberSettings } from './member-settings.ts'
import type { Action } from './plan.ts'
import { items } from './services/interface.ts'
import { type WriteFate, writeFates } from './upstream.ts'

// What stories are told with (stories.ts).

export type Scene = {
  readonly random: Random
  readonly settings: MemberSettings
  readonly slots: number
  /** Of each instance; 0: without a parent. */
  readonly workers: number
  readonly at: number
}

export const between = (random: Random, min: number, max: number): number => min + random() * (max - min)

/** Reads of everything at each place, so that all of them have something to lose. */
export const surveyOf = (random: Random, at: number, slots: number): readonly Action[] =>
  Array.from({ length: slots }, (_, slot) =>
    [0, ...items].map((item): Action => {
      const leavesAfterMs = random() < 0.03 ? random() * 5 : undefined
      return { at: at + random() * 10, does: 'read', slot, item, leavesAfterMs }
    }),
  ).flat()

/** What a story is told with. */
export const tools = ({ random, settings: { forgetAfterMs, leaseMs, refuses, totalMs }, slots }: Scene) => {
  const slot = Math.floor(random() * slots)
  const other = (): number => (slot + 1 + Math.floor(random() * (slots - 1))) % slots
  const ms = (min: number, max: number): number => between(random, min, max)
  const write = (at: number, by: number, fate?: WriteFate, item: number = oneOf(random, items)): Action => ({
    at,
    does: 'write',
    slot: by,
    item,
    verb: 'save',
    way: 'rest',
    fate: fate ?? (random() < 0.7 ? 'answered' : oneOf(random, writeFates)),
  })
  return {
    slot,
    other,
    ms,
    write,
    /** As a part of a lease, and of the time after which a member is forgotten. */
    leases: (min: number, max: number): number => ms(min, max) * leaseMs,
    forgets: (min: number, max: number): number => ms(min, max) * forgetAfterMs,
    /** As a part of the longest time of a write. */
    totals: (min: number, max: number): number => ms(min, max) * totalMs,
    /** `go-on` keeps the promise if a member is cut off for less than this. */
    longestCutMs: refuses ? forgetAfterMs * 1.6 : forgetAfterMs * 0.65,
    writes: (count: number, from: number, to: number, by: () => number): readonly Action[] =>
      Array.from({ length: count }, () => write(ms(from, to), by())),
    reads: (count: number, from: number, to: number, by: () => number): readonly Action[] =>
      Array.from({ length: count }, () => ({
        at: ms(from, to),
        does: 'read',
        slot: by(),
        item: oneOf(random, [0, ...items]),
        leavesAfterMs: undefined,
      })),
    survey: (at: number): readonly Action[] => surveyOf(random, at, slots),
    anyway: (): 'out' | 'back' | 'both' => oneOf(random, ['out', 'back', 'both']),
  }
}

export const ledgerKeys = ['ledger', 'log', 'members', 'pending'].map((name) => `{sim}:${name}`)

export type Told = { readonly actions: readonly Action[]; readonly endsAt: number }
export type Story = (scene: Scene) => Told
