import type { Comment, Entry, Form, Template, Term, User } from './entry.ts'
import { SiteFault } from './site-fault.ts'

/** Everything the embedded site knows; in memory, gone when it is closed. */
export type Store = {
  readonly terms: Map<number, Term>
  readonly users: Map<number, User>
  readonly comments: Map<number, Comment>
  readonly forms: Map<number, Form>
  readonly templates: Map<string, Template>
  nextId(): number
  get(id: number): Entry | undefined
  put(entry: Entry): Entry
  remove(id: number): void
  ofType(type: string): readonly Entry[]
  /** Revisions, autosaves, or both of an item, newest first. */
  versionsOf(id: number, kind: 'revision' | 'autosave' | 'both'): readonly Entry[]
  /** The slug, with `-2`, `-3` … when another item of the type has it. */
  uniqueSlug(wanted: string, type: string, except: number): string
  /** How many published items carry the term. */
  countOf(term: Term): number
}

/** A writer cannot make the demo's process grow without bound. */
const maxEntries = 10_000

/** An empty store. */
export const createStore = (): Store => {
  const entries = new Map<number, Entry>()
  let lastId = 0
  const store: Store = {
    terms: new Map(),
    users: new Map(),
    comments: new Map(),
    forms: new Map(),
    templates: new Map(),
    nextId: () => {
      lastId += 1
      return lastId
    },
    get: (id) => entries.get(id),
    put: (entry) => {
      if (entries.size >= maxEntries && !entries.has(entry.id)) {
        throw new SiteFault(507, 'demo_store_full', 'The embedded site holds no more items.')
      }
      entries.set(entry.id, entry)
      return entry
    },
    remove: (id) => {
      entries.delete(id)
      for (const version of store.versionsOf(id, 'both')) entries.delete(version.id)
    },
    ofType: (type) => [...entries.values()].filter((entry) => entry.type === type),
    versionsOf: (id, kind) =>
      [...entries.values()]
        .filter((entry) => entry.type === 'revision' && entry.parent === id)
        .filter((entry) => kind === 'both' || entry.own['kind'] === kind)
        .sort((a, b) => b.date - a.date || b.id - a.id),
    uniqueSlug: (wanted, type, except) => {
      const taken = new Set(store.ofType(type).map((entry) => (entry.id === except ? '' : entry.slug)))
      let slug = wanted
      for (let suffix = 2; taken.has(slug); suffix += 1) slug = `${wanted}-${suffix}`
      return slug
    },
    countOf: (term) => {
      let count = 0
      for (const entry of entries.values()) {
        if (entry.status === 'publish' && entry.terms[term.taxonomy]?.includes(term.id) === true) count += 1
      }
      return count
    },
  }
  return store
}

/** A slug made from a title: accents go, what separates words becomes a dash, everything else is left out. */
export const slugOf = (title: string): string =>
  title
    .slice(0, 200)
    .normalize('NFKD')
    .toLowerCase()
    .split(/[\s./-]/)
    .map((word) => word.replace(/[^a-z0-9_]/g, ''))
    .filter((word) => word !== '')
    .join('-')
