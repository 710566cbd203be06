import { forAll } from '../for-all.ts'

/** What the reads and writes of a measurement are about. */
export type Ids = Readonly<
  Record<'posts' | 'pages' | 'categories' | 'tags' | 'users' | 'media', readonly number[]>
>

const root = '/index.php/wp-json'

const idsOf = async (origin: string, collection: string, page = 1): Promise<readonly number[]> => {
  const query = `per_page=100&page=${page}&orderby=id&order=asc&_fields=id`
  const response = await fetch(`${origin}${root}/wp/v2/${collection}?${query}`)
  const items = (await response.json()) as readonly { readonly id: number }[]
  const ids = items.map(({ id }) => id)
  const isLast = page >= Number(response.headers.get('x-wp-totalpages') ?? 1)
  return isLast ? ids : [...ids, ...(await idsOf(origin, collection, page + 1))]
}

/** The items that an anonymous visitor sees, in the order of their ids. */
export const idsOn = async (origin: string): Promise<Ids> => {
  const names = ['posts', 'pages', 'categories', 'tags', 'users', 'media'] as const
  const lists = await forAll(names, (name) => idsOf(origin, name))
  return Object.fromEntries(names.map((name, at) => [name, lists[at] ?? []])) as unknown as Ids
}

const at = (ids: readonly number[], place: number): number => ids.at(place) ?? 0

/** The seven routes that every front end reads: lists and an item of each kind. */
export const coreRoutes = ({ posts, pages }: Ids): readonly string[] => [
  ...['/wp/v2/posts', `/wp/v2/posts/${at(posts, -10)}`, `/wp/v2/pages/${at(pages, 3)}`],
  ...['/wp/v2/categories', '/wp/v2/users', '/wp/v2/media', '/wp/v2/comments'],
]

/** 34 different reads of core's routes. */
export const readsOf = (ids: Ids): readonly string[] => {
  const { posts, pages, categories, tags, users, media } = ids
  const others = [
    ...['posts?per_page=5', 'posts?page=3', 'posts?_embed=1&per_page=3', 'posts?sticky=true'],
    ...[`posts?categories=${at(categories, 2)}`, `posts?tags=${at(tags, 2)}`, `posts?author=${at(users, 1)}`],
    ...[1, 5, 10, 20, 30].map((place) => `posts/${at(posts, place)}`),
    `posts/${at(posts, 40)}?_embed=1`,
    ...['pages', `pages/${at(pages, 1)}`, `pages/${at(pages, 5)}`],
    ...[`categories/${at(categories, 1)}`, `categories/${at(categories, 2)}`, 'tags', `tags/${at(tags, 1)}`],
    ...[`users/${at(users, 0)}`, `users/${at(users, 1)}`, `media/${at(media, 0)}`, `media/${at(media, 1)}`],
    ...[`comments?post=${at(posts, 20)}`, 'search?search=garden', 'types'],
  ].map((route) => `/wp/v2/${route}`)
  return [...coreRoutes(ids), ...others]
}

/** Reads of what plugins add; a site without the plugin answers them with 404. */
export const readsOfPlugins: readonly string[] = [
  ...['/wp/v2/books?per_page=3', '/wp/v2/genres', '/library/v1/chapter', '/wp/v2/films?per_page=3'],
  ...['/wc/store/v1/products?per_page=4', '/wc/store/v1/products/categories', '/pll/v1/languages'],
  // A parameter that no route declares, and Polylang reads.
  ...['/wp/v2/posts?lang=de&per_page=3', '/wp/v2/categories?lang=de'],
]
