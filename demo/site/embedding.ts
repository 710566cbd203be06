import type { Caller } from './caller.ts'
import type { Dispatcher } from './dispatcher.ts'

type Link = { readonly href: string; readonly embeddable?: boolean }
type Linked = { readonly _links: Readonly<Record<string, readonly Link[]>> }

const isLinked = (value: unknown): value is Linked =>
  value !== null && typeof value === 'object' && '_links' in value && value._links !== undefined

/** Relations asked for by `_embed`; undefined when none, 'all' when it names none. */
const askedRelations = (query: string): ReadonlySet<string> | 'all' | undefined => {
  const parameters = new URLSearchParams(query)
  const values = [...parameters.getAll('_embed'), ...parameters.getAll('_embed[]')]
  if (values.length === 0 || values.includes('false') || values.includes('0')) return undefined
  const names = values.flatMap((value) => value.split(',')).filter((name) => name !== '')
  return names.length === 0 || names.includes('1') || names.includes('true') ? 'all' : new Set(names)
}

/** Puts the linked items beside the links, each as this caller sees it in the context `embed`. */
export const createEmbedding = (dispatcher: Dispatcher, root: string) => {
  const follow = (href: string, caller: Caller): unknown => {
    const [path = '', query = ''] = href.slice(root.length).split('?', 2)
    const full = `${query === '' ? '' : `${query}&per_page=100&`}context=embed`
    const request = { method: 'GET', path, query: full, fields: {}, content: Buffer.alloc(0), caller }
    // An item that cannot be shown is embedded as its error, as WordPress does it.
    return dispatcher.response(request).body
  }
  const embedOne = (item: Linked, relations: ReadonlySet<string> | 'all', caller: Caller): unknown => {
    const embedded: Record<string, unknown[]> = {}
    for (const [relation, links] of Object.entries(item._links)) {
      if (relations !== 'all' && !relations.has(relation)) continue
      const targets = links.filter((link) => link.embeddable === true && link.href.startsWith(root))
      if (targets.length > 0) embedded[relation] = targets.map((link) => follow(link.href, caller))
    }
    return Object.keys(embedded).length === 0 ? item : { ...item, _embedded: embedded }
  }
  return (body: unknown, query: string, caller: Caller): unknown => {
    const relations = askedRelations(query)
    if (relations === undefined) return body
    const embed = (item: unknown): unknown => (isLinked(item) ? embedOne(item, relations, caller) : item)
    return Array.isArray(body) ? body.map(embed) : embed(body)
  }
}
