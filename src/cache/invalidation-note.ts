/** What is no longer true: told to every process that has a memory tier. */
export type Note =
  /** What carries the tag is dropped, or marked stale. */
  | { readonly kind: 'tag'; readonly tag: string; readonly mode: 'hard' | 'soft' }
  /** A write of unknown outcome: dropped, and nothing that carries the tag is kept for so long. */
  | { readonly kind: 'hold'; readonly tag: string; readonly forMs: number }
  | {
      readonly kind: 'prefix'
      readonly service: string
      readonly prefix: string
      readonly mode: 'hard' | 'soft'
    }
  | { readonly kind: 'all'; readonly mode: 'hard' | 'soft' }
  /** The documents that the gateway makes itself of what it knows of a site. */
  | { readonly kind: 'documents'; readonly service: string; readonly collection: string }

/** One text for one note, so that a ledger can tell that it has it already. Services have no colon in their names. */
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

const understood = (code: string, rest: string): Note | undefined => {
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
 * Reads what `encodeNote` wrote. What a newer version may have written, or is damaged, is not understood, and so may mean
 * anything: everything.
 */
export const decodeNote = (text: string): Note => {
  const [code, rest] = halves(text) ?? []
  return (code !== undefined && rest !== undefined && understood(code, rest)) || everything
}
