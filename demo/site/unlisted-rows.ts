import type { Arguments, Row } from '../../src/service/row.ts'
import { context, revisionsQuery } from '../../src/wordpress/routes/parameter-sets.ts'
import { namespaceIndex } from '../../src/wordpress/routes/route-table.ts'
import {
  autosaveRows,
  type Collection,
  digits,
  integer,
  itemRow,
  listRow,
  posts,
  reads,
  revisionRows,
  row,
} from '../../src/wordpress/routes/row-builders.ts'
import { navigationFields } from '../../src/wordpress/routes/write-fields.ts'
import type { DialectNames } from './dialect-names.ts'

const ids = { type: 'array', items: integer, default: [] } as const
const string = { type: 'string' } as const

const paging: Arguments = {
  context,
  page: { type: 'integer', default: 1, minimum: 1 },
  per_page: { type: 'integer', default: 10, minimum: 1, maximum: 100 },
  search: string,
  exclude: ids,
  include: ids,
}

const termQuery = (hierarchical: boolean): Arguments => ({
  ...paging,
  ...(hierarchical ? { parent: integer } : { offset: integer }),
  order: { type: 'string', default: 'asc', enum: ['asc', 'desc'] },
  orderby: {
    type: 'string',
    default: 'name',
    enum: ['id', 'include', 'name', 'slug', 'include_slugs', 'term_group', 'description', 'count'],
  },
  hide_empty: { type: 'boolean', default: false },
  post: { type: 'integer', default: null },
  slug: { type: 'array', items: string },
})

const termFields = (hierarchical: boolean): Arguments => ({
  description: string,
  name: string,
  slug: string,
  ...(hierarchical ? { parent: integer } : {}),
  meta: { type: 'object' },
})

const termRows = (collection: Collection, hierarchical: boolean): readonly Row[] => {
  const fields = termFields(hierarchical)
  const created = { ...fields, name: { ...string, required: true } }
  return [
    listRow(collection, termQuery(hierarchical), posts(created, collection.marks)),
    itemRow(collection, { query: {}, fields }),
  ]
}

/** A read-only route: `path` is literal segments, with at most one parameter at the end. */
const readOnly = (
  namespace: string,
  collection: string,
  query: Arguments,
  last?: { name: string; pattern: string },
): Row =>
  row({
    id: `${collection}.${last === undefined ? 'collection' : 'item'}`,
    template: `/${namespace}/${collection}${last === undefined ? '' : `/{${last.name}}`}`,
    pattern: `/${namespace}/${collection}${last === undefined ? '' : `/(?P<${last.name}>${last.pattern})`}`,
    namespace,
    collection,
    kind: last === undefined ? 'collection' : 'item',
    endpoints: [reads(query)],
  })

const word = (name: string) => ({ name, pattern: '[\\w-]+' })
const number = { name: 'id', pattern: digits }

/**
 * Routes that a real site announces and the contract does not list, as far as clients and tests need them.
 * They are in the index document, so that a gateway can learn them.
 */
export const unlistedRows = (names: DialectNames): readonly Row[] => {
  const namespace = names.content
  const collection = (name: string): Collection => ({
    name,
    namespace,
    identifier: digits,
    identifierSchema: integer,
    marks: { allowBatch: true },
  })
  const navigation = collection('navigation')
  const one: Arguments = { id: integer, context }
  return [
    itemRow(navigation, { query: { password: string }, fields: navigationFields }),
    ...revisionRows(navigation, revisionsQuery(integer)),
    ...autosaveRows(navigation, 'parent', navigationFields),
    ...termRows(collection('categories'), true),
    ...termRows(collection('tags'), false),
    ...termRows(collection('menus'), false),
    ...termRows(collection(names.patternCategory), false),
    readOnly(namespace, 'types', { context }),
    readOnly(namespace, 'types', { context }, word('type')),
    readOnly(namespace, 'taxonomies', { context }),
    readOnly(namespace, 'taxonomies', { context }, word('taxonomy')),
    readOnly(namespace, 'statuses', { context }),
    readOnly(namespace, 'statuses', { context }, word('status')),
    readOnly(namespace, 'users', { ...paging, offset: integer }),
    readOnly(namespace, 'users', one, number),
    { ...readOnly(namespace, 'users/me', { context }), id: 'users.me', collection: 'users', kind: 'related' },
    readOnly(namespace, 'comments', { ...paging, offset: integer, post: ids }),
    readOnly(namespace, 'comments', one, number),
    readOnly(namespace, 'search', paging),
    readOnly(namespace, 'themes', { status: { type: 'array', items: string } }),
    ...names.namespaces.slice(3).map((name) => namespaceIndex(`${name}.index`, name)),
  ]
}
