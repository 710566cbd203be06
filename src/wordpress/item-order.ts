import type { ItemOrder } from '../service/contract.ts'

/** Collections that do not show each other's contents. */
const independentPairs: readonly (readonly [string, string])[] = [
  ['posts', 'pages'],
  ['posts', 'users'],
  ['pages', 'users'],
  ['pages', 'categories'],
  ['pages', 'tags'],
  ['categories', 'tags'],
  ['categories', 'users'],
  ['tags', 'users'],
]

const independent: ReadonlySet<string> = new Set(
  independentPairs.flatMap(([collection, otherCollection]) => [
    `${collection} ${otherCollection}`,
    `${otherCollection} ${collection}`,
  ]),
)

/** What writes to the collections of a site share: slugs, order, counts. */
export const siteItemOrder: ItemOrder = {
  ownParameters: new Set([
    'id',
    'context',
    '_fields',
    'title',
    'content',
    'excerpt',
    'meta',
    'featured_media',
    'comment_status',
    'ping_status',
    'format',
    'template',
    'author',
    'description',
    'alt_text',
    'caption',
    'first_name',
    'last_name',
    'nickname',
  ]),
  flatCollections: new Set(['posts', 'blocks', 'navigation', 'tags', 'media', 'users']),
  // The contents of a deleted user are handed over to another one.
  deletesReachEverything: new Set(['users']),
  areIndependent: (collection, otherCollection) => independent.has(`${collection} ${otherCollection}`),
}
