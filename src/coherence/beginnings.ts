import type { Backlog } from './backlog.ts'
import type { CoherenceOptions } from './coherence-options.ts'
import type { Contact } from './contact.ts'
import { encodeNote, type Note } from './note.ts'

/** Whether a write may be sent, and the name to settle it by. */
export type Begun = { readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }

type Parts = Pick<CoherenceOptions, 'ledger' | 'member' | 'refusesUnheard' | 'report'> & {
  readonly backlog: Pick<Backlog, 'add'>
  readonly contact: Pick<Contact, 'isFailing' | 'isNews'>
  readonly failed: () => void
}

/** Names writes, and tells the ledger of them before they are sent. */
export const createBeginnings = (
  parts: Parts,
): ((notes: readonly Note[], mayMatter: boolean) => Promise<Begun>) => {
  const { backlog, contact, report } = parts
  let writes = 0

  const unheard = (write: string, mayMatter: boolean): Begun => {
    // When this process ends before it is settled, a member that fell silent makes all drop everything.
    if (!parts.refusesUnheard || !mayMatter) return { kind: 'begun', write }
    report({ kind: 'write-refused' })
    if (contact.isNews()) report({ kind: 'cut-off', writes: 'refused' })
    return { kind: 'refused' }
  }
  return async (notes, mayMatter) => {
    writes += 1
    const write = `${parts.member}#${writes}`
    if (contact.isFailing()) return unheard(write, mayMatter)
    try {
      await parts.ledger.begin(write, notes.map(encodeNote))
    } catch {
      parts.failed()
      // It may have arrived all the same: what was refused must not count as carried out, perhaps.
      if (parts.refusesUnheard && mayMatter) backlog.add([], write)
      return unheard(write, mayMatter)
    }
    return { kind: 'begun', write }
  }
}
