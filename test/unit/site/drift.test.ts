import { expect, test } from 'vitest'
import { siteRows } from '../../../src/contracts/site/route-table.ts'
import { compareWithUpstream } from '../../../src/site/drift.ts'
import { indexOf, names, publicDocument, realIndex } from './upstream-index.ts'

type Loose = { [name: string]: Loose } & { [index: number]: Loose }

const driftAfter = (change: (routes: Loose) => void) => {
  const document = publicDocument()
  change(document.routes as unknown as Loose)
  return compareWithUpstream(siteRows, indexOf(document))
}

const set = (object: Loose | undefined, name: string, value: unknown): void => {
  Object.assign(object as object, { [name]: value })
}

const listOf = (routes: Loose) => routes['/site/v2/posts']?.['endpoints']?.[0] as Loose
const argumentsOf = (routes: Loose) => listOf(routes)['args'] as Loose

test('the table and WordPress 6.9 agree, under either names', () => {
  expect(driftAfter(() => {})).toEqual([])
  const upstreamRows = names.rowsInUpstreamNames(siteRows)
  expect(compareWithUpstream(upstreamRows, indexOf(JSON.parse(realIndex.toString())))).toEqual([])
})

const posts = { route: '/site/v2/posts' }

test.each<[string, (routes: Loose) => void, object[]]>([
  ['a route went away', (routes) => delete routes['/site/v2/posts'], [{ kind: 'route-missing', ...posts }]],
  [
    'a pattern is another',
    (routes) => {
      const pattern = '/site/v2/global-styles/(?P<id>[\\/\\d+]+)'
      set(routes, '/site/v2/global-styles/(?P<id>[\\/\\w-]+)', routes[pattern])
      delete routes[pattern]
    },
    [
      {
        kind: 'pattern-changed',
        route: '/site/v2/global-styles/{id}',
        theirs: '/site/v2/global-styles/(?P<id>[\\/\\w-]+)',
      },
    ],
  ],
  [
    'a method went away',
    (routes) => set(routes['/site/v2/posts'], 'endpoints', [listOf(routes)]),
    [{ kind: 'method-missing', ...posts, method: 'POST' }],
  ],
  [
    'a method came',
    (routes) =>
      set(routes['/site/v2/posts'], 'endpoints', [
        ...Object.values(routes['/site/v2/posts']?.['endpoints'] ?? {}),
        { methods: ['DELETE'] },
      ]),
    [{ kind: 'method-added', ...posts, method: 'DELETE' }],
  ],
  [
    'a batch mark',
    (routes) => set(listOf(routes), 'allow_batch', undefined),
    [{ kind: 'batch-changed', ...posts, method: 'GET', ours: { v1: true } }],
  ],
  [
    'an argument went away',
    (routes) => delete argumentsOf(routes)['sticky'],
    [{ kind: 'argument-missing', ...posts, argument: 'sticky' }],
  ],
  [
    'an argument came',
    (routes) => set(argumentsOf(routes), 'new', {}),
    [{ kind: 'argument-added', ...posts, argument: 'new' }],
  ],
  [
    'a default',
    (routes) => set(argumentsOf(routes)['order'], 'default', 'asc'),
    [{ kind: 'argument-changed', argument: 'order', keyword: 'default', ours: 'desc', theirs: 'asc' }],
  ],
  [
    'a type',
    (routes) => set(argumentsOf(routes)['page'], 'type', 'string'),
    [{ kind: 'argument-changed', argument: 'page', keyword: 'type', ours: 'integer', theirs: 'string' }],
  ],
  [
    'a bound went away',
    (routes) => set(argumentsOf(routes)['per_page'], 'maximum', undefined),
    [{ kind: 'argument-changed', argument: 'per_page', keyword: 'maximum', ours: 100, theirs: undefined }],
  ],
  [
    'a required argument',
    (routes) => set(argumentsOf(routes)['search'], 'required', true),
    [{ kind: 'argument-changed', argument: 'search', keyword: 'required', theirs: true }],
  ],
  ['not required, said by silence', (routes) => delete argumentsOf(routes)['search']?.['required'], []],
  [
    'an argument of an update, whose methods share it',
    (routes) => {
      const update = routes['/site/v2/posts/(?P<id>[\\d]+)']?.['endpoints']?.[1]
      set(update?.['args']?.['slug'], 'type', 'integer')
    },
    [{ kind: 'argument-changed', method: 'POST', argument: 'slug', ours: 'string', theirs: 'integer' }],
  ],
  ['words', (routes) => set(argumentsOf(routes)['search'], 'description', 'other words'), []],
  ['the order of an enum', (routes) => set(argumentsOf(routes)['order'], 'enum', ['desc', 'asc']), []],
  [
    'nonsense',
    (routes) => set(routes['/site/v2/posts'], 'endpoints', 5),
    [
      { kind: 'method-missing', method: 'GET' },
      { kind: 'method-missing', method: 'POST' },
    ],
  ],
])('%s', (_what, change, expected) => {
  const differences = driftAfter(change)
  expect(differences).toHaveLength(expected.length)
  expect(differences).toMatchObject(expected)
})

test('two different services are not listed without end', () => {
  const rows = Array.from(
    { length: 3000 },
    (_, i) => ({ ...siteRows[0], template: `/${i}`, pattern: `/${i}` }) as (typeof siteRows)[number],
  )
  expect(compareWithUpstream(rows, indexOf({ routes: {} }))).toHaveLength(2000)
})
