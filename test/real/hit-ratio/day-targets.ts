import type { Ids } from '../sites/reads.ts'
import { targetsOf } from './mix.ts'

/** What a reader asks for: a path below the root of the interface, or a query. */
export type Target = { readonly kind: 'REST' | 'GraphQL'; readonly text: string }

/** One page of a front end: by REST and, where it has one, by a query that shows the same. */
export type Page = { readonly rest: Target; readonly query?: Target }

/** As many pages as readers know; the last ones are read by crawlers alone. */
const maxPages = 200

/** The shelves of a shop and its products, the most wanted first. */
const shopPaths = (products: readonly number[]): readonly string[] => [
  ...[
    '',
    '?per_page=4',
    '?orderby=price',
    '/categories',
    '?per_page=6&orderby=popularity',
    '?search=product',
  ].map((rest) => `/wc/store/v1/products${rest}`),
  ...products.map((id) => `/wc/store/v1/products/${id}`),
  '/wp/v2/product?per_page=4',
]

const item = 'id databaseId title slug uri date modified'
const post = `${item} excerpt author { node { name slug } } featuredImage { node { sourceUrl altText } }`
const term = 'databaseId name slug description count uri'

const lists: Readonly<Record<string, string>> = {
  posts: `posts(first: 10) { nodes { ${post} } }`,
  'posts?_embed=1': `posts(first: 10) { nodes { ${post} categories { nodes { name } } } }`,
  'posts?per_page=5': `posts(first: 5) { nodes { ${post} } }`,
  'posts?sticky=true': `posts(first: 10, where: { onlySticky: true }) { nodes { ${post} } }`,
  'posts?orderby=modified': `posts(first: 10, where: { orderby: { field: MODIFIED, order: DESC } }) { nodes { ${post} } }`,
  categories: `categories(first: 10) { nodes { ${term} } }`,
  tags: `tags(first: 10) { nodes { ${term} } }`,
  pages: `pages(first: 10) { nodes { ${item} } }`,
  users: 'users(first: 10) { nodes { name slug description } }',
  media: 'mediaItems(first: 10) { nodes { title altText sourceUrl } }',
  comments: 'comments(first: 10) { nodes { content date } }',
  'search?search=plant': `posts(first: 10, where: { search: "plant" }) { nodes { ${item} } }`,
}

/** By what a path of the REST API looks like: the field of a query that shows the same item or list. */
const shapes: readonly (readonly [RegExp, (id: string) => string])[] = [
  [
    /^posts\/(\d+)/,
    (id) => `post(id: ${id}, idType: DATABASE_ID) { ${post} content categories { nodes { name } } }`,
  ],
  [/^pages\/(\d+)/, (id) => `page(id: ${id}, idType: DATABASE_ID) { ${item} content }`],
  [/^categories\/(\d+)/, (id) => `category(id: ${id}, idType: DATABASE_ID) { ${term} }`],
  [/^tags\/(\d+)/, (id) => `tag(id: ${id}, idType: DATABASE_ID) { ${term} }`],
  [/^media\/(\d+)/, (id) => `mediaItem(id: ${id}, idType: DATABASE_ID) { title altText caption sourceUrl }`],
  [
    /^posts\?categories=(\d+)/,
    (id) => `posts(first: 10, where: { categoryId: ${id} }) { nodes { ${post} } }`,
  ],
  [/^posts\?tags=(\d+)/, (id) => `posts(first: 10, where: { tagId: "${id}" }) { nodes { ${post} } }`],
  [/^posts\?author=(\d+)/, (id) => `posts(first: 10, where: { author: ${id} }) { nodes { ${post} } }`],
  [
    /^comments\?post=(\d+)/,
    (id) => `post(id: ${id}, idType: DATABASE_ID) { comments(first: 10) { nodes { content date } } }`,
  ],
]

const queryOf = (path: string): string | undefined => {
  const list = lists[path]
  if (list !== undefined) return list
  for (const [shape, fieldOf] of shapes) {
    const id = shape.exec(path)?.[1]
    if (id !== undefined) return fieldOf(id)
  }
  return undefined
}

const rest = (text: string): Target => ({ kind: 'REST', text })

/** One of each in turn, then what is left of the longer list. */
const alternating = <Item>(first: readonly Item[], second: readonly Item[]): readonly Item[] =>
  Array.from({ length: Math.max(first.length, second.length) }, (_, at) => [first[at], second[at]])
    .flat()
    .filter((one) => one !== undefined)

/** The paths of a blog, the newest posts before older ones. */
const blogPaths = (ids: Ids): readonly string[] => targetsOf({ ...ids, posts: [...ids.posts].reverse() })

/** Of a blog, and of a shop where there are products: the most wanted first. */
export const restPages = (ids: Ids, products: readonly number[]): readonly Page[] => {
  const blog = blogPaths(ids).map((path) => `/wp/v2/${path}`)
  const shop = products.length === 0 ? [] : shopPaths(products)
  return alternating(shop, blog)
    .slice(0, maxPages)
    .map((path) => ({ rest: rest(path) }))
}

/** Of a front end that gets each page by REST or by a query. */
export const headlessPages = (ids: Ids): readonly Page[] =>
  blogPaths(ids).flatMap((path): Page[] => {
    const field = queryOf(path)
    if (field === undefined) return []
    return [{ rest: rest(`/wp/v2/${path}`), query: { kind: 'GraphQL', text: `{ ${field} }` } }]
  })
