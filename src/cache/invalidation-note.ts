/** One invalidation, as sent to all processes that store responses. */
export type Note =
  /** `hard` removes what has the tag, `soft` marks it stale. */
  | { readonly kind: 'tag'; readonly tag: string; readonly mode: 'hard' | 'soft' }
  /** After a write of unknown outcome: removed, and for `forMs` nothing that has the tag is stored. */
  | { readonly kind: 'hold'; readonly tag: string; readonly forMs: number }
  | {
      readonly kind: 'prefix'
      readonly service: string
      readonly prefix: string
      readonly mode: 'hard' | 'soft'
    }
  | { readonly kind: 'all'; readonly mode: 'hard' | 'soft' }
  /** The documents that the gateway makes itself for a site. */
  | { readonly kind: 'documents'; readonly service: string; readonly collection: string }

/** Equal notes have equal texts, so that a ledger finds duplicates. Names of services have no colon. */
export const encodeNote = (note: Note): string => {
  switch (note.kind) {
    case 'tag':
      return `${note.mode === 'hard' ? 't' : 's'}:${note.tag}`
    case 'hold':
      return `h${note.forMs}:${note.tag}`
    case 'prefix':
      return `${note.mode === 'hard' ? 'p' : 'q'}:${note.service}:${note.prefix}`
    case 'all':
      return note.mode === 'hard' ? 'a:' : 'b:'
    case 'documents':
      return `d:${note.service}:${note.collection}`
  }
}

const everything: Note = { kind: 'all', mode: 'hard' }

const halves = (rest: string): readonly [string, string] | undefined => {
  const at = rest.indexOf(':')
  return at < 0 ? undefined : [rest.slice(0, at), rest.slice(at + 1)]
}

const parsed = (code: string, rest: string): Note | undefined => {
  const [service, behind] = halves(rest) ?? []
  const isWhole = service !== undefined && behind !== undefined
  switch (code) {
    case 't':
      return { kind: 'tag', tag: rest, mode: 'hard' }
    case 's':
      return { kind: 'tag', tag: rest, mode: 'soft' }
    case 'p':
    case 'q':
      return isWhole
        ? { kind: 'prefix', service, prefix: behind, mode: code === 'p' ? 'hard' : 'soft' }
        : undefined
    case 'b':
      return { kind: 'all', mode: 'soft' }
    case 'd':
      return isWhole ? { kind: 'documents', service, collection: behind } : undefined
    default:
      return /^h\d+(?:\.\d+)?$/.test(code)
        ? { kind: 'hold', tag: rest, forMs: Number(code.slice(1)) }
        : undefined
  }
}

/**
 * Reads what `encodeNote` wrote. An unknown text, from a newer version or damaged, invalidates everything.
 */
export const decodeNote = (text: string): Note => {
  const [code, rest] = halves(text) ?? []
  return (code !== undefined && rest !== undefined && parsed(code, rest)) || everything
}
