import type { Arguments, Row } from '../row.ts'
import { mediaEditBody, mediaPostProcessBody } from './action-bodies.ts'
import { menuItemFields, newMenuItemFields } from './appearance-rows.ts'
import {
  blocksQuery,
  mediaQuery,
  menuItemsQuery,
  pagesQuery,
  postsQuery,
  revisionsQuery,
} from './parameter-sets.ts'
import {
  autosaveRows,
  type Collection,
  collectionRow,
  digits,
  integer,
  itemRow,
  listRow,
  posts,
  revisionRows,
} from './row-builders.ts'
import { namespaceIndex } from './service-rows.ts'
import { blockFields, mediaFields, pageFields, postFields } from './write-fields.ts'

const batchable = { allowBatch: true } as const

const collection = (name: string, marks: Collection['marks'] = batchable): Collection => ({
  name,
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks,
})

const postsOf = collection('posts')
const pagesOf = collection('pages')
const mediaOf = collection('media', {})
const menuItemsOf = collection('menu-items')
const blocksOf = collection('blocks')

const protectedItem: Arguments = { excerpt_length: integer, password: { type: 'string' } }
const mediaItem = { name: 'id', pattern: digits }

/** Posts, pages, media, menu items and blocks. */
export const contentRows: readonly Row[] = [
  namespaceIndex('site.index', 'site/v2'),

  listRow(postsOf, postsQuery, posts(postFields, batchable)),
  itemRow(postsOf, { query: protectedItem, fields: postFields }),
  ...revisionRows(postsOf, revisionsQuery(integer)),
  ...autosaveRows(postsOf, 'parent', postFields),

  listRow(pagesOf, pagesQuery, posts(pageFields, batchable)),
  itemRow(pagesOf, { query: protectedItem, fields: pageFields }),
  ...revisionRows(pagesOf, revisionsQuery(integer)),
  ...autosaveRows(pagesOf, 'parent', pageFields),

  listRow(mediaOf, mediaQuery, posts(mediaFields, { acceptsUploads: true })),
  itemRow(mediaOf, { query: {}, fields: mediaFields }),
  collectionRow(
    mediaOf,
    'action',
    'post-process',
    [mediaItem, 'post-process'],
    [posts(mediaPostProcessBody)],
  ),
  collectionRow(mediaOf, 'action', 'edit', [mediaItem, 'edit'], [posts(mediaEditBody)]),

  listRow(menuItemsOf, menuItemsQuery, posts(newMenuItemFields, batchable)),
  itemRow(menuItemsOf, { query: {}, fields: menuItemFields }),
  ...autosaveRows(menuItemsOf, 'parent', menuItemFields),

  listRow(blocksOf, blocksQuery, posts(blockFields, batchable)),
  itemRow(blocksOf, { query: protectedItem, fields: blockFields }),
  ...revisionRows(blocksOf, revisionsQuery(integer)),
  ...autosaveRows(blocksOf, 'parent', blockFields),
]
