import { targetParts } from '../../../src/http/targets.ts'
import {
  get,
  type Interface,
  items,
  json,
  jsonType,
  present,
  type Resource,
  type Shown,
  type States,
  withPath,
} from './interface.ts'

type Post = { readonly id: number; readonly title: { readonly rendered: string } }

const postsPath = '/site/v2/posts'
const firstTwo = [1, 2] as const
/** Those of one category, to which no write adds any. */
const category = 7
const categorized = [1, 3, 5] as const

const included = (query: string): readonly number[] => {
  const all = new URLSearchParams(query)
  const ids = [...all].flatMap(([name, value]) => (name.startsWith('include') ? value.split(',') : []))
  return ids.map(Number)
}

const listed = (query: string): readonly number[] => {
  if (new URLSearchParams(query).get('categories') !== null) return categorized
  const ids = included(query)
  return ids.length === 0 ? items : items.filter((item) => ids.includes(item))
}

const madeAt = '2026-01-01T00:00:00'

/** All that the table of the contract compares: a write changes the title, and perhaps the status. */
const postOf = (id: number, version: number, status: 'publish' | 'trash') => ({
  ...{ id, type: 'post', slug: `post-${id}`, status, link: `https://site.test/post-${id}/` },
  ...{ date: madeAt, date_gmt: madeAt, modified: madeAt, modified_gmt: madeAt, author: 1 },
  guid: { rendered: `https://site.test/?p=${id}` },
  title: { rendered: String(version) },
  ...{ content: { rendered: '', protected: false }, excerpt: { rendered: '', protected: false } },
  ...{ featured_media: 0, comment_status: 'open', ping_status: 'open', sticky: false, format: 'standard' },
  ...{ tags: [], categories: categorized.some((item) => item === id) ? [category] : [] },
})

const posts = (states: States) => present(states).map(([id, version]) => postOf(id, version, 'publish'))

const shown = (text: string): Shown => {
  const parsed = JSON.parse(text) as Post | readonly Post[]
  return Object.fromEntries(
    ([parsed].flat() as readonly Post[]).map(({ id, title }) => [id, Number(title.rendered)]),
  )
}

const list = (name: string, shownItems: readonly number[], queries: readonly string[]): Resource => ({
  ...{ name, items: shownItems, shown },
  requests: queries.map((query) => get(`${postsPath}?${query}`)),
})

const itemPath = (item: number): string => `${postsPath}/${item}`

/** Without the trash. A plugin may bring it back even then. */
const isForced = (item: number): boolean => item % 2 === 0

/** The table of the site contract: nothing in the headers says what a write changes. */
export const siteInterface: Interface = {
  kind: 'site',
  item: (item) => ({
    ...{ name: itemPath(item), items: [item], shown },
    requests: [get(itemPath(item)), get(`${itemPath(item)}?context=view`)],
  }),
  lists: [
    list(postsPath, items, ['per_page=100', 'order=desc&per_page=100', 'per_page=100&page=1']),
    list(`${postsPath}:first`, firstTwo, [
      'include=1,2&per_page=100',
      'per_page=100&include[]=1&include[]=2',
      'include=2,1&per_page=100',
    ]),
    list(`${postsPath}:category`, categorized, [
      `categories=${category}&per_page=100`,
      `per_page=100&categories[]=${category}`,
    ]),
  ],
  viewOf: ({ target }) => {
    const { path, query } = targetParts(target)
    if (path === postsPath)
      return {
        items: listed(query),
        rendered: (states) => {
          const all = posts(states)
          const headers = [...jsonType, 'X-WP-Total', String(all.length), 'X-WP-TotalPages', '1']
          return { status: 200, headers, content: json(all) }
        },
      }
    const item = items.find((one) => path === itemPath(one) && withPath(one, path))
    if (item === undefined) return undefined
    return {
      items: [item],
      rendered: (states) => {
        const [post] = posts(states)
        const missing = { code: 'rest_post_invalid_id', message: 'Invalid post ID.', data: { status: 404 } }
        return { status: post === undefined ? 404 : 200, headers: jsonType, content: json(post ?? missing) }
      },
    }
  },
  write: (item, verb) => ({
    method: verb === 'delete' ? 'DELETE' : 'POST',
    target: verb === 'delete' && isForced(item) ? `${itemPath(item)}?force=true` : itemPath(item),
    headers: verb === 'delete' ? {} : { 'content-type': 'application/json' },
    content:
      verb === 'delete'
        ? undefined
        : json({ title: 'another', ...(verb === 'publish' ? { status: 'publish' } : {}) }),
  }),
  writeHeaders: jsonType,
  written: ({ item, verb, version, isGone }) => {
    const post = postOf(item, version, isGone ? 'trash' : 'publish')
    const isForGood = verb === 'delete' && isForced(item)
    return { status: 200, content: json(isForGood ? { deleted: true, previous: post } : post) }
  },
  savesAnew: false,
  unknownReachesLists: true,
  batchTarget: '/batch/v1',
  batchHeaders: { 'content-type': 'application/json' },
}
