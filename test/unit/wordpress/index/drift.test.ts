import { expect, test } from 'vitest'
import {
  compareWithUpstream,
  isArgumentTakenOtherwise,
  type Unlisted,
} from '../../../../src/wordpress/index/drift.ts'
import { rowsInOtherNames } from '../../../../src/wordpress/names/names.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { indexOf, publicDocument, realIndex, table } from './upstream-index.ts'

type Loose = { [name: string]: Loose } & { [index: number]: Loose }

const forwarding: Unlisted = { routes: 'learn', parameters: 'forward' }

const driftAfter = (change: (routes: Loose) => void) => {
  const document = publicDocument()
  change(document.routes as unknown as Loose)
  return compareWithUpstream(siteRows, indexOf(document), forwarding)
}

const set = (object: Loose | undefined, name: string, value: unknown): void => {
  Object.assign(object as object, { [name]: value })
}

const listOf = (routes: Loose) => routes['/site/v2/posts']?.['endpoints']?.[0] as Loose
const argumentsOf = (routes: Loose) => listOf(routes)['args'] as Loose

test('the table and WordPress 6.9 agree, under either names', () => {
  expect(driftAfter(() => {})).toEqual([])
  const upstreamRows = rowsInOtherNames(siteRows, table)
  const index = indexOf(JSON.parse(realIndex.toString()))
  expect(compareWithUpstream(upstreamRows, index, forwarding)).toEqual([])
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
  expect(compareWithUpstream(rows, indexOf({ routes: {} }), forwarding)).toHaveLength(2000)
})

const matterAfter = (change: (routes: Loose) => void, unlisted: Unlisted = forwarding): boolean => {
  const document = publicDocument()
  change(document.routes as unknown as Loose)
  const differences = compareWithUpstream(siteRows, indexOf(document), unlisted)
  expect(differences.length).toBeGreaterThan(0)
  return differences.some(({ matters }) => matters)
}

const changed =
  (argument: string, schema: object): ((routes: Loose) => void) =>
  (routes) =>
    Object.assign(argumentsOf(routes)[argument] as object, schema)

test.each<[string, (routes: Loose) => void, boolean]>([
  ['a route that went away', (routes) => delete routes['/site/v2/posts'], true],
  [
    'a method that came',
    (routes) =>
      set(routes['/site/v2/posts'], 'endpoints', [
        ...Object.values(routes['/site/v2/posts']?.['endpoints'] ?? {}),
        { methods: ['DELETE'] },
      ]),
    true,
  ],
  ['an argument that went away', (routes) => delete argumentsOf(routes)['sticky'], false],
  ['an argument that came', (routes) => set(argumentsOf(routes), 'new', {}), false],
  ['another default', changed('order', { default: 'asc' }), true],
  ['a default that went away', changed('order', { default: undefined }), true],
  ['a value that came', changed('order', { enum: ['asc', 'desc', 'random'] }), true],
  ['a value that went away', changed('order', { enum: ['desc'] }), false],
  ['a higher bound', changed('per_page', { maximum: 200 }), true],
  ['a lower bound', changed('per_page', { maximum: 50 }), false],
  ['a bound that went away', changed('per_page', { maximum: undefined }), true],
  ['another type', changed('page', { type: 'string' }), true],
  ['one value where the gateway takes a list', changed('author', { type: 'string', items: undefined }), true],
  [
    'one value where the gateway takes a list of such',
    changed('slug', { type: 'string', items: undefined }),
    false,
  ],
  ['a pattern that came', changed('search', { pattern: '^x' }), false],
  ['required now', changed('search', { required: true }), false],
])('what the gateway answers: %s', (_what, change, expected) => {
  expect(matterAfter(change)).toBe(expected)
})

test('a value that the gateway refuses and the upstream accepts is a difference that matters', () => {
  const added = (routes: Loose) => set(argumentsOf(routes), 'new', {})
  expect(matterAfter(added, { ...forwarding, parameters: 'strip' })).toBe(true)
  const renamed = (routes: Loose) => {
    const pattern = '/site/v2/global-styles/(?P<id>[\\/\\d+]+)'
    set(routes, '/site/v2/global-styles/(?P<id>[\\/\\w-]+)', routes[pattern])
    delete routes[pattern]
  }
  expect(matterAfter(renamed)).toBe(false)
  expect(matterAfter(renamed, { ...forwarding, routes: 'refuse' })).toBe(true)
})

test.each([
  ['items', false],
  ['not', true],
])('a schema with another bound inside of %s: is an argument taken otherwise?', (keyword, expected) => {
  const schema = (minimum: number) => ({ [keyword]: { minimum } })
  expect(isArgumentTakenOtherwise(schema(5), schema(9))).toBe(expected)
})
