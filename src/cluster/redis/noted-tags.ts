import { shortText } from '../../http/fields.ts'

/**
 * When each tag was last noted, by the numbers of the ledger: what was stored before cannot be believed. As large as the
 * ledger's own memory; what is older than that counts as noted.
 */
export type NotedTags = {
  note(tag: string, seq: number): void
  /** Everything stored before is in doubt. */
  noteAll(seq: number): void
  /** Another ledger, or one that does not remember further back. */
  restart(epoch: string, floor: number): void
  /** Was any of the tags noted after that number of that ledger, or may it have been? */
  touchedSince(tags: readonly string[], epoch: string, seq: number): boolean
}

export const createNotedTags = (mostTags: number): NotedTags => {
  const last = new Map<string, number>()
  let epoch = ''
  let floor = 0
  return {
    note: (named, seq) => {
      // Of a target as long as a client makes it only a digest.
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
