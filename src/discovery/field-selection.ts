import { isObject, type JsonObject } from './json.ts'

type FieldTree = Map<string, FieldTree | 'all'>

/** `_fields=a,b.c` and `_fields[]=a&_fields[]=b.c`; undefined when nothing is selected, so that all is shown. */
export const selectedFields = (query: string): readonly string[] | undefined => {
  if (!query.includes('_fields')) return undefined
  const given: string[] = []
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === '_fields' || name.startsWith('_fields[')) given.push(...value.split(/[\s,]+/))
  }
  const fields = given.filter((field) => field !== '')
  return fields.length === 0 ? undefined : fields
}

/** A whole member swallows selections inside it. */
const add = (tree: FieldTree, path: readonly string[]): void => {
  const [name = '', ...rest] = path
  const known = tree.get(name)
  if (known === 'all') return
  if (rest.length === 0) {
    tree.set(name, 'all')
    return
  }
  const branch = known ?? new Map()
  tree.set(name, branch)
  add(branch, rest)
}

const treeOf = (fields: readonly string[]): FieldTree => {
  const tree: FieldTree = new Map()
  // Deeper than any document; the rest of a longer path would select nothing.
  for (const field of fields) add(tree, field.split('.').slice(0, 64))
  return tree
}

/** WordPress selects by key, and the keys of a list are numbers: a name selects nothing in it. An empty result is PHP's `[]`. */
const prune = (object: JsonObject, tree: FieldTree): JsonObject | readonly [] => {
  const kept: [string, unknown][] = []
  for (const [name, value] of Object.entries(object)) {
    const branch = tree.get(name)
    if (branch === 'all') kept.push([name, value])
    else if (branch !== undefined && typeof value === 'object' && value !== null) {
      kept.push([name, isObject(value) ? prune(value, branch) : []])
    }
  }
  return kept.length === 0 ? [] : Object.fromEntries(kept)
}

/** The members of a document that `_fields` names. */
export const selectFields = (document: JsonObject, fields: readonly string[]): JsonObject | readonly [] =>
  prune(document, treeOf(fields))
