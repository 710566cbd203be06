import { oneOf, type Random } from '../support/random.ts'

/** The items of the simulated upstream. */
export const items = [1, 2, 3, 4, 5] as const

/** What a client reads: the version of each item shown. */
export type Shown = Readonly<Record<string, number>>

/** Something that can be read. `targets`: spellings of one request. */
export type Resource = {
  readonly name: string
  readonly items: readonly number[]
  readonly targets: readonly string[]
}

type WriteRequest = {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer | undefined
}

/** How clients and the upstream speak of items and lists. */
export type Interface = {
  readonly kind: 'open' | 'site'
  readonly item: (item: number) => Resource
  readonly lists: readonly Resource[]
  /** The items that a target shows at the upstream; undefined: there is nothing. */
  readonly itemsAt: (target: string) => readonly number[] | undefined
  readonly write: WriteRequest
  /** Headers of a response, and of one to a write. */
  readonly readHeaders: (target: string) => readonly string[]
  readonly writeHeaders: readonly string[]
  readonly content: (target: string, versions: Shown) => Buffer
  readonly shown: (text: string) => Shown
  /** Do lists show what is known of a write without a complete response? */
  readonly unknownReachesLists: boolean
}

const jsonType = ['Content-Type', 'application/json'] as const

const json = (content: unknown): Buffer => Buffer.from(JSON.stringify(content))

const listPath = '/list'

/** Tags in headers of the upstream: a write of one item leaves the other items stored. */
const openInterface: Interface = {
  kind: 'open',
  item: (item) => ({ name: `/items/${item}`, items: [item], targets: [`/items/${item}`] }),
  lists: [{ name: listPath, items, targets: [listPath] }],
  itemsAt: (target) => (target === listPath ? items : items.filter((item) => target === `/items/${item}`)),
  write: { method: 'PUT', headers: {}, content: undefined },
  readHeaders: (target) => (target === listPath ? [...jsonType, 'Cache-Groups', '"items"'] : jsonType),
  writeHeaders: [...jsonType, 'Cache-Group-Invalidation', '"items"'],
  content: (_, versions) => json(versions),
  shown: (text) => JSON.parse(text) as Shown,
  unknownReachesLists: false,
}

type Post = { readonly id: number; readonly title: { readonly rendered: string } }

const postsPath = '/site/v2/posts'
const firstTwo = [1, 2] as const

const includedIn = (query: string): readonly number[] => {
  const all = new URLSearchParams(query)
  const ids = [...all].flatMap(([name, value]) => (name.startsWith('include') ? value.split(',') : []))
  return ids.map(Number)
}

/** The table of the site contract: nothing in the headers says what a write changes. */
const siteInterface: Interface = {
  kind: 'site',
  item: (item) => ({
    name: `${postsPath}/${item}`,
    items: [item],
    targets: [`${postsPath}/${item}`, `${postsPath}/${item}?context=view`],
  }),
  lists: [
    {
      name: postsPath,
      items,
      targets: [
        `${postsPath}?per_page=100`,
        `${postsPath}?order=desc&per_page=100`,
        `${postsPath}?per_page=100&page=1`,
      ],
    },
    {
      name: `${postsPath}:first`,
      items: firstTwo,
      targets: [
        `${postsPath}?include=1,2&per_page=100`,
        `${postsPath}?per_page=100&include[]=1&include[]=2`,
        `${postsPath}?include=2,1&per_page=100`,
      ],
    },
  ],
  itemsAt: (target) => {
    const [path = '', query = ''] = target.split('?')
    if (path !== postsPath) return items.filter((item) => path === `${postsPath}/${item}`)
    const included = includedIn(query)
    return included.length === 0 ? items : items.filter((item) => included.includes(item))
  },
  write: {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    content: json({ title: 'another' }),
  },
  readHeaders: (target) =>
    target.startsWith(`${postsPath}?`)
      ? [...jsonType, 'X-WP-Total', String(items.length), 'X-WP-TotalPages', '1']
      : jsonType,
  writeHeaders: jsonType,
  content: (target, versions) => {
    const posts = Object.entries(versions).map(([id, version]) => ({
      ...{ id: Number(id), type: 'post', slug: `post-${id}` },
      title: { rendered: String(version) },
    }))
    return json(target.split('?')[0] === postsPath ? posts : posts[0])
  },
  shown: (text) => {
    const parsed = JSON.parse(text) as Post | readonly Post[]
    const posts = [parsed].flat() as readonly Post[]
    return Object.fromEntries(posts.map(({ id, title }) => [id, Number(title.rendered)]))
  },
  unknownReachesLists: true,
}

export const interfaceOf = (kind: Interface['kind']): Interface =>
  kind === 'open' ? openInterface : siteInterface

/** All that shows an item. */
export const resourcesWith = (service: Interface, item: number): readonly Resource[] => [
  service.item(item),
  ...service.lists.filter((list) => list.items.includes(item)),
]

/** What is read of it through the cache in front. */
export const nameAtFront = ({ name }: Resource): string => `front:${name}`

export const targetOf = ({ targets }: Resource, random: Random): string =>
  targets.length === 1 ? (targets[0] ?? '') : oneOf(random, targets)
