import type { Random } from '../promise-fuzz/random.ts'
import type { Ids } from '../sites/reads.ts'

type Shape = {
  readonly fields: readonly string[]
  /** Fields that lead to one other object, or to many. */
  readonly one?: Readonly<Record<string, ShapeName>>
  readonly many?: Readonly<Record<string, ShapeName>>
}
type ShapeName = 'Post' | 'Page' | 'User' | 'Category' | 'Tag' | 'Comment' | 'MediaItem'

const content = ['id', 'title', 'slug', 'uri', 'modified', 'date', 'status']
const term = ['id', 'name', 'slug', 'uri', 'description', 'count']

const shapes: Readonly<Record<ShapeName, Shape>> = {
  Post: {
    fields: [...content, 'content', 'excerpt', 'commentCount', 'commentStatus', 'isSticky'],
    one: { author: 'User', featuredImage: 'MediaItem' },
    many: { categories: 'Category', tags: 'Tag', comments: 'Comment' },
  },
  Page: { fields: [...content, 'content', 'menuOrder'], one: { author: 'User' } },
  User: { fields: ['id', 'name', 'slug', 'uri', 'description'], many: { posts: 'Post', pages: 'Page' } },
  Category: { fields: term, one: { parent: 'Category' }, many: { posts: 'Post', children: 'Category' } },
  Tag: { fields: term, many: { posts: 'Post' } },
  Comment: { fields: ['id', 'content', 'date', 'status'], many: { replies: 'Comment' } },
  MediaItem: { fields: ['id', 'title', 'altText', 'caption', 'sourceUrl', 'slug'], one: { author: 'User' } },
}

/** Fields of an object with at most so many levels below; a connection takes two. */
const selection = (random: Random, name: ShapeName, levels: number): string => {
  const { fields, one = {}, many = {} } = shapes[name]
  const own = random.some(fields, 3)
  const links = Object.entries({ ...one, ...many })
  if (levels < 3 || links.length === 0) return (own.length === 0 ? ['id'] : own).join(' ')
  const [field, to] = random.pick(links)
  const below = selection(random, to, levels - 2)
  const linked = field in one ? `${field} { node { ${below} } }` : `${field}(first: 3) { nodes { ${below} } }`
  return [...own, linked].join(' ')
}

const items = [
  ['post', 'Post', 'posts'],
  ['page', 'Page', 'pages'],
  ['category', 'Category', 'categories'],
  ['tag', 'Tag', 'tags'],
  ['mediaItem', 'MediaItem', 'media'],
  ['user', 'User', 'users'],
] as const

const lists: readonly (readonly [string, ShapeName])[] = [
  ['posts(first: 5)', 'Post'],
  ['posts(first: 10, where: {orderby: {field: MODIFIED, order: DESC}})', 'Post'],
  ['posts(first: 5, where: {search: "oak"})', 'Post'],
  ['pages(first: 5)', 'Page'],
  ['categories(first: 10)', 'Category'],
  ['tags(first: 10)', 'Tag'],
  ['users(first: 5)', 'User'],
  ['comments(first: 5)', 'Comment'],
  ['mediaItems(first: 5)', 'MediaItem'],
]

const settings: readonly string[] = [
  '{ __typename }',
  '{ generalSettings { title description } }',
  '{ readingSettings { postsPerPage } }',
  '{ contentNodes(first: 10) { nodes { id uri modified } } }',
  '{ menus { nodes { name } } }',
  '{ contentTypes { nodes { name } } }',
]

/** Different queries of a front end, one to six levels deep: most pages show an item, some a list. */
export const randomQueries = (random: Random, ids: Ids, count: number): readonly string[] => {
  const queries = new Set(settings)
  const next = (): string => {
    const levels = 2 + random.int(5)
    if (random.chance(0.25)) {
      const [list, shape] = random.pick(lists)
      return `{ ${list} { nodes { ${selection(random, shape, Math.max(1, levels - 2))} } } }`
    }
    const [field, shape, pool] = random.chance(0.6) ? items[0] : random.pick(items)
    const id = random.pick(ids[pool])
    return `{ ${field}(id: ${id}, idType: DATABASE_ID) { ${selection(random, shape, levels - 1)} } }`
  }
  while (queries.size < count) queries.add(next())
  // A post that is not there yet.
  queries.add(`{ post(id: ${(ids.media.at(-1) ?? 0) + 1}, idType: DATABASE_ID) { title } }`)
  return [...queries]
}
