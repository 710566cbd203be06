import { randomFrom, zipf } from './random.ts'

/** What one reader asks for, in terms that say nothing about spelling. */
type Meaning = {
  readonly path: string
  readonly parameters: readonly (readonly [name: string, value: string | readonly string[]])[]
}

/** A request of the trace. Targets are relative to the root of the site. */
export type TraceRequest =
  | { readonly kind: 'read'; readonly target: string }
  | { readonly kind: 'write'; readonly method: string; readonly target: string; readonly content: string }

type Random = () => number

const pick = <T>(random: Random, from: readonly [T, ...T[]] | readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T

const shuffled = <T>(random: Random, list: readonly T[]): T[] =>
  list
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

const words = [
  'post',
  'number',
  'words of',
  'body',
  'page',
  'news',
  'plants',
  'number 7',
  'of post 12',
  'sub',
]

/** What a site's front end, its search box and its feeds ask for. */
const catalogue = (posts: readonly number[], pages: readonly number[]): Meaning[] => {
  const all = '/site/v2/posts'
  const of = (path: string, ...parameters: Meaning['parameters']): Meaning => ({ path, parameters })
  return [
    ...range(1, 5).map((page) => of(all, ['page', String(page)], ['per_page', '10'])),
    ...range(1, 5).map((page) => of(all, ['page', String(page)], ['per_page', '5'])),
    ...range(1, 2).map((page) => of(all, ['page', String(page)], ['per_page', '20'])),
    ...range(1, 3).map((page) => of(all, ['page', String(page)], ['_embed', 'true'])),
    ...range(1, 3).map((page) => of(all, ['page', String(page)], ['_fields', ['id', 'title', 'link']])),
    ...range(2, 7).map((id) => of(all, ['categories', [String(id)]])),
    ...range(2, 6).map((id) => of(all, ['categories', [String(id), '7']], ['per_page', '5'])),
    ...range(8, 17).map((id) => of(all, ['tags', [String(id)]], ['orderby', 'title'], ['order', 'asc'])),
    ...range(1, 3).map((id) => of(all, ['author', [String(id)]])),
    ...words.flatMap((word) => [of(all, ['search', word]), of('/site/v2/search', ['search', word])]),
    ...posts.map((id) => of(`${all}/${id}`)),
    ...posts.slice(0, 20).map((id) => of(`${all}/${id}`, ['_embed', 'true'])),
    ...posts.slice(0, 20).map((id) => of('/site/v2/comments', ['post', [String(id)]])),
    ...pages.map((id) => of(`/site/v2/pages/${id}`)),
    of('/site/v2/pages', ['per_page', '20'], ['orderby', 'menu_order'], ['order', 'asc']),
    of('/site/v2/categories'),
    of('/site/v2/categories', ['per_page', '100'], ['hide_empty', 'true']),
    of('/site/v2/tags'),
    of('/site/v2/users'),
    of('/site/v2/media'),
    ...range(2, 7).map((id) => of(`/site/v2/categories/${id}`)),
  ]
}

/** How one client writes requests: always in the same way, and no two in quite the same. */
type Habits = {
  readonly reversed: boolean
  readonly list: 'comma' | 'brackets' | 'numbered'
  readonly space: '+' | '%20'
  readonly slash: boolean
  readonly defaults: boolean
  readonly noise: string
}

const habitsOf = (random: Random): Habits => ({
  reversed: random() < 0.5,
  list: pick(random, ['comma', 'brackets', 'numbered']),
  space: pick(random, ['+', '%20']),
  slash: random() < 0.2,
  defaults: random() < 0.3,
  noise: random() < 0.3 ? `utm_source=client${Math.floor(random() * 100)}` : '',
})

const listed = (name: string, values: readonly string[], { list }: Habits): string[] => {
  // The embedded site reads `_fields` in these two spellings only.
  if (list === 'comma' || (name === '_fields' && list === 'numbered')) return [`${name}=${values.join(',')}`]
  return values.map((value, i) => `${name}[${list === 'numbered' ? i : ''}]=${value}`)
}

const isList = ({ path }: Meaning): boolean => path === '/site/v2/posts'

const spelled = (meaning: Meaning, habits: Habits): string => {
  const named = new Set(meaning.parameters.map(([name]) => name))
  const groups = meaning.parameters.map(([name, value]) =>
    typeof value === 'string'
      ? [`${name}=${value.replaceAll(' ', habits.space)}`]
      : listed(name, value, habits),
  )
  if (habits.defaults && isList(meaning)) {
    if (!named.has('page')) groups.push(['page=1'])
    if (!named.has('per_page')) groups.push(['per_page=10'])
  }
  if (habits.reversed) groups.reverse()
  if (habits.noise !== '') groups.push([habits.noise])
  const path = habits.slash ? `${meaning.path}/` : meaning.path
  return groups.length === 0 ? path : `${path}?${groups.flat().join('&')}`
}

export type TraceOptions = {
  readonly seed: number
  readonly operations: number
  readonly writeShare: number
  readonly clients: number
  readonly posts: readonly number[]
  readonly pages: readonly number[]
}

/** Reads follow Zipf's law over targets and over clients; writes are those of editors. */
export function* traceRequests(options: TraceOptions): Generator<TraceRequest> {
  const { posts, pages } = options
  const random = randomFrom(options.seed)
  const meanings = shuffled(random, catalogue(posts, pages))
  const clients = Array.from({ length: options.clients }, () => habitsOf(random))
  const nextMeaning = zipf(random, meanings.length, 0.9)
  const nextClient = zipf(random, clients.length, 0.9)
  for (let n = 0; n < options.operations; n += 1) {
    if (random() < options.writeShare) yield writeOf(random, n, posts, pages)
    else {
      const target = spelled(meanings[nextMeaning()] as Meaning, clients[nextClient()] as Habits)
      yield { kind: 'read', target }
    }
  }
}

const writeOf = (
  random: Random,
  n: number,
  posts: readonly number[],
  pages: readonly number[],
): TraceRequest => {
  const write = (method: string, path: string, headers: Record<string, unknown>): TraceRequest => ({
    kind: 'write',
    method,
    target: `/site/v2${path}`,
    content: JSON.stringify(headers),
  })
  const post = pick(random, posts)
  const at = random()
  if (at < 0.55) return write('POST', `/posts/${post}`, { title: `Post ${post} as of ${n}` })
  if (at < 0.7) return write('POST', `/posts/${post}`, { categories: [2 + Math.floor(random() * 5)] })
  if (at < 0.85)
    return write('POST', '/posts', {
      title: `New ${n}`,
      status: 'publish',
      content: 'words',
      categories: [3],
    })
  return write('PUT', `/pages/${pick(random, pages)}`, { title: `Page as of ${n}` })
}
