import type { WordPress } from '../wordpress/start-wordpress.ts'
import type { Random } from './random.ts'

const listed = {
  posts: 'posts?per_page=100&_fields=id&status=publish,draft,private',
  pages: 'pages?per_page=100&_fields=id',
  categories: 'categories?per_page=100&_fields=id',
  tags: 'tags?per_page=100&_fields=id',
  comments: 'comments?per_page=100&_fields=id',
  media: 'media?per_page=100&_fields=id',
  menus: 'menus?_fields=id',
  'menu-items': 'menu-items?_fields=id',
  blocks: 'blocks?_fields=id',
  navigation: 'navigation?_fields=id',
  users: 'users?context=edit&_fields=id',
} as const

/** No list shows it: the active theme names it, for which it is made. */
const globalStylesId = async ({ restRoot }: WordPress, authorization: string): Promise<string> => {
  const response = await fetch(`${restRoot}/wp/v2/themes?status=active`, { headers: { authorization } })
  const id = /global-styles\\?\/(\d+)/.exec(await response.text())?.[1]
  if (id === undefined) throw new Error('the active theme names no global styles')
  return id
}

const madeOnly = ['wp_pattern_category', 'notes', 'widgets'] as const

export type Pool = keyof typeof listed | (typeof madeOnly)[number] | 'global-styles'

/** Ids, or references to what a write creates, of the things that writes and reads are about: few, so that they meet. */
export type Pools = Readonly<Record<Pool, string[]>>

/** What the site holds before any write. */
export type Seeded = Readonly<Record<Pool, readonly string[]>>

export const seededIds = async (wordpress: WordPress, authorization: string): Promise<Seeded> => {
  const entries = Object.entries(listed).map(async ([pool, path]) => {
    const response = await fetch(`${wordpress.restRoot}/wp/v2/${path}`, { headers: { authorization } })
    const items = (await response.json()) as { id: number }[]
    return [pool, items.map(({ id }) => String(id))] as const
  })
  const found = Object.fromEntries(await Promise.all(entries))
  return {
    ...found,
    'global-styles': [await globalStylesId(wordpress, authorization)],
    ...Object.fromEntries(madeOnly.map((pool) => [pool, []])),
  } as unknown as Seeded
}

const max: Partial<Record<Pool, number>> = {
  posts: 2,
  pages: 1,
  categories: 3,
  tags: 3,
  media: 2,
  'menu-items': 3,
}

/** Some of what is there. */
export const choosePools = (seeded: Seeded, random: Random): Pools =>
  Object.fromEntries(
    Object.entries(seeded).map(([pool, ids]) => {
      const left = [...ids]
      const count = Math.min(left.length, max[pool as Pool] ?? 3)
      return [pool, Array.from({ length: count }, () => left.splice(random.int(left.length), 1)[0])]
    }),
  ) as unknown as Pools
