import type { Note } from './note.ts'

type Hold = Extract<Note, { kind: 'hold' }>

/** Writes of unknown outcome of this process that may still be carried out: a ledger that is made anew has to be told again. */
export type Holds = {
  note(notes: readonly Note[], now: number): void
  /** Those whose time is not over. Times are readings of the monotonic clock. */
  current(now: number): readonly Hold[]
}

/** As many as a ledger remembers. */
const mostHolds = 16_384

export const createHolds = (): Holds => {
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
