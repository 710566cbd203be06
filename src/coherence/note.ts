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

const split = (rest: string): readonly [string, string] => {
  const at = rest.indexOf(':')
  return [rest.slice(0, at), rest.slice(at + 1)]
}

/** Reads what `encodeNote` wrote. What a newer version may have written is not understood, and so may mean anything: everything. */
export const decodeNote = (text: string): Note => {
  const at = text.indexOf(':')
  const rest = text.slice(at + 1)
  switch (text.slice(0, 1)) {
    case 't':
      return { kind: 'tag', tag: rest, mode: 'hard' }
    case 's':
      return { kind: 'tag', tag: rest, mode: 'soft' }
    case 'h':
      return { kind: 'hold', tag: rest, forMs: Number(text.slice(1, at)) }
    case 'p':
    case 'q': {
      const [service, prefix] = split(rest)
      return { kind: 'prefix', service, prefix, mode: text.startsWith('p') ? 'hard' : 'soft' }
    }
    case 'b':
      return { kind: 'all', mode: 'soft' }
    case 'd': {
      const [service, collection] = split(rest)
      return { kind: 'documents', service, collection }
    }
    default:
      return everything
  }
}
