import { shortText } from '../../http/message.ts'

/**
 * The ledger's number of the last note of each tag: entries stored before it are outdated. Remembers as many tags as the
 * ledger; older ones count as noted.
 */
export type NotedTags = {
  note(tag: string, seq: number): void
  /** Marks every entry that was stored before as outdated. */
  noteAll(seq: number): void
  /** A new ledger, or one that has forgotten older notes. */
  restart(epoch: string, floor: number): void
  /** Was any of the tags noted after that number, or is that unknown? */
  touchedSince(tags: readonly string[], epoch: string, seq: number): boolean
}

export const createNotedTags = (mostTags: number): NotedTags => {
  const last = new Map<string, number>()
  let epoch = ''
  let floor = 0
  return {
    note: (named, seq) => {
      // Clients choose the length of a target: long ones are stored as a digest.
      const tag = shortText(named)
      if ((last.get(tag) ?? 0) > seq) return
      last.delete(tag)
      last.set(tag, seq)
      if (last.size <= mostTags) return
      for (const [oldest, at] of last) {
        last.delete(oldest)
        floor = Math.max(floor, at)
        break
      }
    },
    noteAll: (seq) => {
      floor = Math.max(floor, seq)
    },
    restart: (nextEpoch, nextFloor) => {
      last.clear()
      epoch = nextEpoch
      floor = nextFloor
    },
    touchedSince: (tags, ofEpoch, seq) =>
      ofEpoch !== epoch || seq < floor || tags.some((tag) => (last.get(shortText(tag)) ?? 0) > seq),
  }
}
