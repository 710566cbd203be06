import type { Call, Values } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import type { Entry, Term } from './entry.ts'
import { SiteFault } from './site-fault.ts'
import { flag, instant, integer, integers, text, texts } from './values.ts'

type Keep = (entry: Entry) => boolean

const members =
  (ids: readonly number[], of: (entry: Entry) => number): Keep =>
  (entry) =>
    ids.includes(of(entry))

const none =
  (keep: Keep): Keep =>
  (entry) =>
    !keep(entry)

const idFilters: readonly [string, (entry: Entry) => number][] = [
  ['include', (entry) => entry.id],
  ['author', (entry) => entry.author],
  ['parent', (entry) => entry.parent],
]

/** `include` wins over `exclude`: a list with both ignores `exclude`. */
const excludedNames = (args: Values): readonly (readonly [string, (entry: Entry) => number])[] =>
  idFilters
    .filter(([name]) => name !== 'include' || integers(args, 'include').length === 0)
    .map(([name, of]) => [name === 'include' ? 'exclude' : `${name}_exclude`, of] as const)

const byIds = (args: Values): Keep[] => [
  ...idFilters
    .filter(([name]) => integers(args, name).length > 0)
    .map(([name, of]) => members(integers(args, name), of)),
  ...excludedNames(args)
    .filter(([name]) => integers(args, name).length > 0)
    .map(([name, of]) => none(members(integers(args, name), of))),
]

const byDates = (args: Values): Keep[] => {
  const bounds: [string, (entry: Entry, at: number) => boolean][] = [
    ['after', (entry, at) => entry.date > at],
    ['before', (entry, at) => entry.date < at],
    ['modified_after', (entry, at) => entry.modified > at],
    ['modified_before', (entry, at) => entry.modified < at],
  ]
  return bounds.flatMap(([name, holds]) => {
    const at = instant(args, name)
    return at === undefined ? [] : [(entry: Entry) => holds(entry, at)]
  })
}

/** Words, or what stands between quotation marks as one. */
const searchTerms = (search: string): readonly string[] =>
  search
    .toLowerCase()
    .split('"')
    .flatMap((part, index) => (index % 2 === 1 ? [part] : part.split(/\s/)))
    .filter((term) => term !== '')

const bySearch = (call: Call): Keep[] => {
  const { args, caller } = call
  const terms = searchTerms(text(args, 'search') ?? '')
  if (terms.length === 0) return []
  const columns = texts(args, 'search_columns')
  const searched = (name: string): boolean => columns.length === 0 || columns.includes(name)
  return [
    (entry) => {
      if (entry.password !== '' && caller.role === 'anonymous') return false
      const all = [
        searched('post_title') ? entry.title : '',
        searched('post_content') ? entry.content : '',
        searched('post_excerpt') ? entry.excerpt : '',
      ]
      const haystack = all.join('\n').toLowerCase()
      return terms.every((term) => haystack.includes(term))
    },
  ]
}

const byStatus = (args: Values, spec: CollectionSpec): Keep => {
  const statuses = texts(args, 'status')
  if (statuses.length === 0) return (entry) => entry.status === 'publish'
  if (statuses.includes('any')) return (entry) => entry.status !== 'trash'
  // Attachments take their visibility from what they hang on: `publish` means `inherit` for them.
  const wanted =
    spec.type === 'attachment' && statuses.includes('publish') ? [...statuses, 'inherit'] : statuses
  return (entry) => wanted.includes(entry.status)
}

type TermQuery = { readonly ids: readonly number[]; readonly every: boolean; readonly children: boolean }

const termQuery = (value: unknown): TermQuery | undefined => {
  if (Array.isArray(value)) return { ids: value.map(Number), every: false, children: false }
  if (value === null || typeof value !== 'object') return undefined
  const query = value as Values
  return {
    ids: integers(query, 'terms'),
    every: query['operator'] === 'AND',
    children: flag(query, 'include_children'),
  }
}

const withChildren = (ids: readonly number[], terms: ReadonlyMap<number, Term>): readonly number[] => [
  ...ids,
  ...[...terms.values()].filter((term) => ids.includes(term.parent)).map((term) => term.id),
]

const termKeep = (call: Call, taxonomy: string, value: unknown): Keep | undefined => {
  const query = termQuery(value)
  if (query === undefined || query.ids.length === 0) return undefined
  const ids = query.children ? withChildren(query.ids, call.site.store.terms) : query.ids
  return (entry) => {
    const has = (id: number): boolean => entry.terms[taxonomy]?.includes(id) === true
    return query.every ? ids.every(has) : ids.some(has)
  }
}

const byTerms = (call: Call, spec: CollectionSpec): Keep[] => {
  const keeps: Keep[] = []
  for (const [name, taxonomy] of Object.entries(spec.taxonomies)) {
    const keep = termKeep(call, taxonomy, call.args[name])
    if (keep !== undefined) keeps.push(keep)
    const drop = termKeep(call, taxonomy, call.args[`${name}_exclude`])
    if (drop !== undefined) keeps.push(none(drop))
  }
  const anyOfThem = text(call.args, 'tax_relation') === 'OR' && keeps.length > 1
  return anyOfThem ? [(entry) => keeps.some((keep) => keep(entry))] : keeps
}

const byValues = (args: Values): Keep[] => {
  const slugs = texts(args, 'slug')
  const formats = texts(args, 'format')
  const mimeTypes = texts(args, 'mime_type')
  const mediaTypes = texts(args, 'media_type')
  const order = integer(args, 'menu_order')
  const sticky = args['sticky']
  return [
    ...(slugs.length > 0 ? [(entry: Entry) => slugs.includes(entry.slug)] : []),
    ...(formats.length > 0 ? [(entry: Entry) => formats.includes(entry.format)] : []),
    ...(mimeTypes.length > 0 ? [(entry: Entry) => mimeTypes.includes(String(entry.own['mime_type']))] : []),
    ...(mediaTypes.length > 0
      ? [(entry: Entry) => mediaTypes.includes(String(entry.own['mime_type']).split('/')[0] ?? '')]
      : []),
    ...(order === undefined ? [] : [(entry: Entry) => entry.menuOrder === order]),
    ...(typeof sticky === 'boolean' ? [(entry: Entry) => entry.sticky === sticky] : []),
  ]
}

type Rank = (entry: Entry) => number | string

const ranks = (args: Values): Readonly<Record<string, Rank>> => ({
  author: (entry) => entry.author,
  id: (entry) => entry.id,
  modified: (entry) => entry.modified,
  parent: (entry) => entry.parent,
  slug: (entry) => entry.slug,
  title: (entry) => entry.title.toLowerCase(),
  menu_order: (entry) => entry.menuOrder,
  include: (entry) => integers(args, 'include').indexOf(entry.id),
  include_slugs: (entry) => texts(args, 'slug').indexOf(entry.slug),
})

const compare = (a: number | string, b: number | string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Orders that mean nothing without another argument. */
const checkOrder = (args: Values): void => {
  const orderby = text(args, 'orderby')
  if (orderby === 'relevance' && !text(args, 'search')) {
    const message = 'You need to define a search term to order by relevance.'
    throw new SiteFault(400, 'rest_no_search_term_defined', message)
  }
  if (orderby === 'include' && integers(args, 'include').length === 0) {
    const message = 'You need to define an include parameter to order by include.'
    throw new SiteFault(400, 'rest_orderby_include_missing_include', message)
  }
}

/** The entries of a collection that a call asks for, in the order it asks for. */
export const listEntries = (call: Call, spec: CollectionSpec): readonly Entry[] => {
  const { args } = call
  checkOrder(args)
  const keeps = [
    byStatus(args, spec),
    ...byIds(args),
    ...byDates(args),
    ...bySearch(call),
    ...byTerms(call, spec),
    ...byValues(args),
  ]
  const orderby = text(args, 'orderby') ?? 'date'
  const rank = ranks(args)[orderby] ?? ((entry: Entry) => entry.date)
  // The order of a list given by the caller is the caller's, whatever `order` says.
  const down = text(args, 'order') !== 'asc' && !orderby.startsWith('include')
  return call.site.store
    .ofType(spec.type)
    .filter((entry) => keeps.every((keep) => keep(entry)))
    .sort((a, b) => (compare(rank(a), rank(b)) || a.id - b.id) * (down ? -1 : 1))
}
