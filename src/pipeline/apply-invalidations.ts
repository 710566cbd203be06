import type { Cache } from '../cache/cache.ts'
import type { Note } from '../cache/invalidation-note.ts'

type Invalidator = Parameters<Cache['invalidate']>[1]

const purgeOf = (
  note: Extract<Note, { kind: 'tag' | 'prefix' | 'all' }>,
): Parameters<Cache['purge']>[0]['selector'] => {
  switch (note.kind) {
    case 'tag':
      return { kind: 'tag', tag: note.tag }
    case 'prefix':
      return { kind: 'prefix', service: note.service, prefix: note.prefix }
    case 'all':
      return { kind: 'all' }
  }
}

/**
 * Applies the notes of a write, here or in another process, to this process's memory; returns the number of stored responses
 * concerned. All tags of a write are invalidated in one step, since most writes have dozens.
 */
export const applyInvalidations = (
  notes: readonly Note[],
  cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>,
  documentsOutdated: (service: string, collection: string) => void,
  by: Invalidator,
): number => {
  const dropped: string[] = []
  const held = new Map<number, string[]>()
  let entries = 0
  // Of a member that is forgotten there may be as many as a ledger remembers.
  const tagsFor = (forMs: number): string[] => {
    const known = held.get(forMs) ?? []
    held.set(forMs, known)
    return known
  }
  for (const note of notes) {
    if (note.kind === 'documents') documentsOutdated(note.service, note.collection)
    else if (note.kind === 'hold') tagsFor(note.forMs).push(note.tag)
    else if (note.kind === 'tag' && note.mode === 'hard') dropped.push(note.tag)
    else entries += cache.purge({ selector: purgeOf(note), mode: note.mode, dryRun: false })
  }
  if (dropped.length > 0) entries += cache.invalidate(dropped, by)
  for (const [forMs, tags] of held) entries += cache.suspect(tags, forMs, by)
  return entries
}
