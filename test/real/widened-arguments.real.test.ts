import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { steadyAfterWrites } from './differential/steady-content.ts'
import { forAll } from './for-all.ts'
import { createRandom, type Random } from './promise-fuzz/random.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

/** REQUESTS=n for another number, SEED=n for others. */
const requests = Number(process.env['REQUESTS'] ?? times(30, 500))
const seed = Number(process.env['SEED'] ?? 20_261_127)
const root = '/index.php/wp-json'

type Sent = {
  readonly method: string
  readonly target: string
  readonly body?: string
  readonly type?: string
}

/** Values of arguments as people write them in a query: right ones, and those that only a callback or a filter takes. */
type Values = Readonly<Record<string, readonly string[]>>

const posts: Values = {
  per_page: ['10', '20', '020', '500', '300', '501', '0', 'x', '20.0', ''],
  page: ['1', '2', '1.0', '99', '0'],
  orderby: ['date', 'title', 'menu_order', 'id', 'slug', 'rand2', 'include', 'TITLE'],
  order: ['asc', 'desc', 'ASC', ''],
  status: ['archived', 'publish', 'archived,publish', 'publish,archived', 'Archived', 'zzz', 'draft'],
  exclude: ['4', '4,5', 'plant-of-the-day-50', '5,plant-of-the-day-51', 'none'],
  include: ['4,5,6', '6,5,4', '5'],
  region: ['south', 'north', 'South', 'west', ''],
  slug: ['plant-of-the-day-12', 'plant-of-the-day-12,plant-of-the-day-13'],
  categories: ['3', '3,4', '4,3', 'x'],
  search: ['12', 'day'],
  sticky: ['true', '0', 'maybe'],
}
const pages: Values = {
  per_page: ['-1', '4', '10', '-2', '100'],
  orderby: ['menu_order', 'title', 'date'],
  menu_order: ['3', '0', '-1', 'x'],
  slug: ['garden-page-2', 'nope'],
  parent: ['0', '109', '109,0'],
  order: ['asc', 'desc'],
}
const categories: Values = {
  hide_empty: ['true', 'false', '1', '0', 'yes', ''],
  orderby: ['count', 'name', 'id', 'slug', 'nope'],
  order: ['asc', 'desc', 'DESC'],
  per_page: ['2', '10', '101'],
}
const comments: Values = {
  order: ['asc', 'desc'],
  per_page: ['2', '10', '1', '0'],
  orderby: ['id', 'date_gmt', 'nope'],
  post: ['4', '4,5', 'x'],
}
const shown: Values = {
  count: ['1', '10', '100', '-1', '1000', 'x', '', '010', '10.0', ' 7'],
  flag: ['true', 'false', 'on', 'yes', '1', '0', 'no', ''],
  order: ['asc', 'desc', 'DESC', 'Asc', 'sideways'],
  'names[]': ['x', 'A b'],
  names: ['x', 'x,y'],
  'names[a]': ['q'],
  day: ['2024-01-01', '2024-01-01T00:00:00Z', '2024-01-01T01:00:00%2B01:00', 'soon'],
  user: ['0', '1', '2', 'me'],
  place: ['here', 'nowhere', 'longer', ''],
  'size[width]': ['3', 'x'],
  'size[unit]': ['mm', 'km'],
  size: ['large'],
  plain: ['1', '2', '3', '02', '2.0', '6', 'x', ''],
  ids: ['1,2', '2,1', '1', 'x', ''],
  'ids[]': ['1', '2'],
  phrase: ['none', 'None', 'some', ''],
}
const unannounced: Values = {
  x: ['1', '', 'a b'],
  'y[]': ['1', '2'],
  page: ['1', '2', '01'],
  utm_source: ['mail'],
}

const lists: readonly (readonly [path: string, values: Values, more: string])[] = [
  ['/wp/v2/posts', posts, '_fields=id,slug,status'],
  ['/wp/v2/posts', posts, '_fields=id'],
  ['/wp/v2/pages', pages, '_fields=id,slug,menu_order'],
  ['/wp/v2/categories', categories, '_fields=id,slug,count'],
  ['/wp/v2/comments', comments, '_fields=id,post'],
  ['/widened/v1/shown', shown, ''],
  ['/widened/v1/shown', shown, ''],
  ['/widened/v1/shown/key', shown, ''],
  ['/widened/v1/unannounced', unannounced, ''],
]

const aRead = (random: Random): Sent => {
  const [path, values, more] = random.pick(lists)
  const parts = random
    .some(Object.keys(values), 4)
    .map((name) => `${name}=${random.pick(values[name] ?? [''])}`)
  const query = [...parts, ...(more === '' ? [] : [more])].join('&')
  return { method: 'GET', target: `${path}${query === '' ? '' : `?${query}`}` }
}

/** Members of JSON bodies. */
const members: Readonly<Record<string, readonly unknown[]>> = {
  count: [5, '5', -1, 1000, 'x', null, true],
  flag: [true, 'on', 0, 'no', null],
  order: ['DESC', 'asc', 'sideways'],
  names: [['a', 'B c'], [], { a: 'q' }],
  day: ['2024-01-01', ''],
  user: [0, 3, ''],
  place: ['here', 'longer', 'nowhere', ''],
  size: [{ width: 3 }, { unit: 'km' }, 'large', {}, [1, 2]],
  plain: [2, '3', 6, 2.5, 'x'],
  ids: [[1, 2], '1,2', [], 'x'],
  phrase: ['some', null, { a: 1 }],
}
const ofPosts: Readonly<Record<string, readonly unknown[]>> = {
  status: ['archived', 'publish', 'draft', 'zzz'],
  comment_status: ['members', 'open', 'closed', 'other'],
  ping_status: ['open', 'other'],
  title: ['Written', { raw: 'Raw' }, 7],
  categories: [[3], '3,4', ['x']],
  date: ['2025-07-01T08:00:00', 'soon'],
  format: ['standard', 'aside', 'nope'],
  region: ['south'],
}

const aWrite = (random: Random): Sent => {
  const isPost = random.chance(0.5)
  const values = isPost ? ofPosts : members
  const body = Object.fromEntries(
    random.some(Object.keys(values), 4).map((name) => [name, random.pick(values[name] ?? [])]),
  )
  const ofOwn = random.pick([
    'POST /widened/v1/shown',
    'PUT /widened/v1/shown/key',
    'POST /widened/v1/unannounced',
  ])
  const ofPost = random.pick([
    'POST /wp/v2/posts',
    'PUT /wp/v2/posts/30',
    'POST /wp/v2/posts/31',
    'PATCH /wp/v2/posts/32',
  ])
  const [method = '', path = ''] = (isPost ? ofPost : ofOwn).split(' ')
  if (isPost || random.chance(0.7)) {
    const headers = isPost
      ? '?_fields=id,status,comment_status,ping_status,title.raw,categories,date,format&context=edit'
      : ''
    return { method, target: path + headers, body: JSON.stringify(body), type: 'application/json' }
  }
  // As a form of a page sends it.
  const names = random.some(Object.keys(shown), 4)
  const form = names.map((name) => `${name}=${random.pick(shown[name] ?? [''])}`).join('&')
  return { method, target: path, body: form, type: 'application/x-www-form-urlencoded' }
}

type Seen = {
  readonly status: number
  readonly content: unknown
  readonly total: string | null
  readonly pages: string | null
}

type Refusal = {
  readonly code?: string
  readonly data?: { readonly params?: Readonly<Record<string, string>> }
}

/**
 * The same by meaning: of several arguments that WordPress refuses the gateway names those that it checks itself, and WordPress those
 * of the phase that fails first, in the order of the query, which the gateway writes anew.
 */
const differs = (ours: Seen, theirs: Seen): boolean => {
  if (isDeepStrictEqual(ours, theirs)) return false
  const [our, their] = [ours.content as Refusal, theirs.content as Refusal]
  if (ours.status !== 400 || theirs.status !== 400 || our.code !== 'rest_invalid_param') return true
  const [named, others] = [our.data?.params ?? {}, their.data?.params ?? {}]
  const isOther = (name: string): boolean => others[name] !== undefined && others[name] !== named[name]
  return our.code !== their.code || Object.keys(named).some(isOther)
}

describeWith(
  'php',
  'a real WordPress that takes more than the contract says, and routes with callbacks of their own',
  () => {
    /** One is asked directly, the other through the gateway: both get every request. */
    let direct: WordPress
    let behind: WordPress
    let gateway: TestGateway

    beforeAll(async () => {
      const start = () => startWordPress({ plugins: ['widened'] })
      ;[direct, behind] = await Promise.all([start(), start()])
      gateway = await startTestGateway({
        services: {
          site: siteService(behind.origin, {
            mount: root,
            names: 'same',
            discovery: { source: 'upstream' },
            cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
          }),
        },
      })
      expect((await fetch(`${gateway.publicAddress}${root}/`)).status).toBe(200)
    }, 300_000)
    afterAll(async () => {
      await gateway?.close()
      await Promise.all([direct?.stop(), behind?.stop()])
    })

    const send = async (
      origin: string,
      { credentials }: WordPress,
      { method, target, body, type }: Sent,
    ): Promise<{ seen: Seen; isHit: boolean }> => {
      const isOfCore = target.startsWith('/wp/')
      const headers = {
        ...(type === undefined ? {} : { 'Content-Type': type }),
        ...(body !== undefined && isOfCore ? { Authorization: basic(credentials.admin) } : {}),
      }
      const content = body === undefined ? {} : { body }
      const response = await fetch(origin + root + target, { method, headers, ...content })
      const text = await response.text()
      return {
        seen: {
          status: response.status,
          content: steadyAfterWrites(text.startsWith('<') ? text : JSON.parse(text)),
          total: response.headers.get('x-wp-total'),
          pages: response.headers.get('x-wp-totalpages'),
        },
        isHit: /^trellis; ?hit/.test(response.headers.get('cache-status') ?? ''),
      }
    }

    test(`${requests} random requests get what WordPress answers, hits as well (SEED=${seed})`, async () => {
      const random = createRandom(seed)
      const all = Array.from({ length: requests }, () =>
        random.chance(0.75) ? aRead(random) : aWrite(random),
      )
      const counts = { reads: 0, writes: 0, hits: 0, refused: 0 }
      const differences: object[] = []
      const compare = async (request: Sent): Promise<void> => {
        const { seen: theirs } = await send(direct.origin, direct, request)
        counts.refused += Number(theirs.status >= 400)
        const times = request.method === 'GET' ? 2 : 1
        counts[times === 2 ? 'reads' : 'writes'] += 1
        for (let time = 1; time <= times; time += 1) {
          const { seen: ours, isHit } = await send(gateway.publicAddress, behind, request)
          counts.hits += Number(isHit)
          if (differs(ours, theirs)) differences.push({ ...request, time, ours, theirs })
        }
      }
      while (all.length > 0) {
        const nextWrite = all.findIndex(({ method }) => method !== 'GET')
        await forAll(all.splice(0, nextWrite < 0 ? all.length : nextWrite), compare)
        for (const write of all.splice(0, 1)) await compare(write)
      }
      process.stdout.write(`${JSON.stringify(counts)}\n`)
      expect(differences).toEqual([])
      expect(counts.hits).toBeGreaterThan(counts.reads / 4)
      // What is refused is random; all or none of it would compare nothing.
      expect(counts.refused).toBeGreaterThan(requests / 20)
      expect(counts.refused).toBeLessThan((requests * 3) / 4)
    }, 600_000)
  },
)
