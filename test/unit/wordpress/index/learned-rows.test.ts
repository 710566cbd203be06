import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { routeTemplate } from '../../../../src/service/route-paths.ts'
import { readIndex } from '../../../../src/wordpress/index/index-document.ts'
import { learnRows } from '../../../../src/wordpress/index/learn-rows.ts'
import { knowledgeOf } from '../../../../src/wordpress/index/site-index.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { anyText } from '../../../support/any-text.ts'
import { indexOf, publicDocument, publicRoot } from './upstream-index.ts'

const real = indexOf(publicDocument())
const learned = learnRows(real, siteRows)
const rowOf = (template: string) => learned.rows.find((row) => row.template === template)

test('every route of a real WordPress that no row lists becomes a row', () => {
  expect(learned.refusals).toEqual([])
  expect(learned.rows).toHaveLength(75)
  expect(new Set(learned.rows.map((row) => row.id)).size).toBe(75)
})

test.each([
  ['/site/v2/categories', 'categories', 'collection', 'upstream'],
  ['/site/v2/categories/{id}', 'categories', 'item', 'upstream'],
  ['/site/v2/site_pattern_category/{id}', 'site_pattern_category', 'item', 'upstream'],
  ['/site/v2/users', 'users', 'collection', 'upstream'],
  ['/site/v2/users/me', 'users', 'item', 'upstream'],
  ['/site/v2/users/{user_id}/application-passwords', 'users', 'related', 'upstream'],
  ['/site/v2/navigation/{id}', 'navigation', 'item', 'upstream'],
  ['/site/v2/navigation/{parent}/revisions', 'navigation', 'revisions', 'upstream'],
  ['/site/v2/navigation/{parent}/revisions/{id}', 'navigation', 'revision', 'upstream'],
  ['/site/v2/navigation/{id}/autosaves', 'navigation', 'autosaves', 'upstream'],
  ['/site/v2/navigation/{parent}/autosaves/{id}', 'navigation', 'autosave', 'upstream'],
  ['/site/v2/search', 'search', 'collection', 'upstream'],
  ['/site/v2/settings', 'settings', 'collection', 'upstream'],
  ['/site/v2/widget-types/{id}/render', 'widget-types', 'action', 'upstream'],
  ['/site/v2/block-patterns/patterns', 'block-patterns', 'lookup', 'upstream'],
  ['/site/v2/block-types/{namespace}/{name}', 'block-types', 'related', 'upstream'],
  // Its GET creates a navigation where there is none.
  ['/block-editor/v1/navigation-fallback', 'navigation', 'lookup', 'upstream'],
  ['/block-editor/v1/url-details', 'block-editor/v1/url-details', 'lookup', 'upstream'],
  ['/abilities/v1/categories', 'abilities/v1/categories', 'collection', 'upstream'],
  ['/abilities/v1/abilities/{name}/run', 'abilities/v1/abilities', 'related', 'upstream'],
  ['/site-health/v1', '', 'index', 'discovery'],
])('%s is of collection %j, %s, answered by %s', (template, collection, kind, handledBy) => {
  expect(rowOf(template)).toMatchObject({ collection, kind, handledBy })
})

test('endpoints, arguments and batch marks are those announced', () => {
  const row = rowOf('/site/v2/categories')
  expect(
    row?.endpoints.map(({ methods, allowBatch, acceptsUploads }) => [methods, allowBatch, acceptsUploads]),
  ).toEqual([
    [['GET'], true, undefined],
    [['POST'], true, true],
  ])
  expect(row?.endpoints[0]?.arguments['per_page']).toMatchObject({
    type: 'integer',
    default: 10,
    minimum: 1,
    maximum: 100,
  })
  expect(row?.endpoints[1]?.arguments['name']).toMatchObject({ type: 'string', required: true })
})

test('a learned row has everything that the upstream announces', () => {
  const { site } = knowledgeOf(real, {
    rows: [...siteRows, ...learned.rows],
    registered: [],
    publicRoot,
    unlistedRoutes: 'learn',
    undeclaredParameters: 'forward',
  })
  const routes = site.site['routes'] as Record<string, unknown>
  const announced = publicDocument().routes as Record<string, unknown>
  for (const row of learned.rows) expect(routes[row.pattern]).toEqual(announced[row.pattern])
})

describe('a pattern', () => {
  test.each([
    ['/a/v1/b', '/a/v1/b'],
    ['/oembed/1.0/embed', '/oembed/1.0/embed'],
    ['/a/v1/(?P<id>[\\d]+)', '/a/v1/{id}'],
    ['/a/v1/(?P<id>(?:[\\d]+|me))/x', '/a/v1/{id}/x'],
    ['/a/v1/(?P<id>[)(\\]]+)/x', '/a/v1/{id}/x'],
    ['/a/v1/(?P<id>[])]+)', '/a/v1/{id}'],
    ['/a/v1/(?P<id>[^])]+)', '/a/v1/{id}'],
    ['/a/v1/(?P<id>\\))', '/a/v1/{id}'],
    ['/a\\/v1\\/x\\.y', '/a/v1/x.y'],
    ['/a/(?P<b>x)-(?P<c>y)', '/a/{b}-{c}'],
    ['/a/(?P<b>x)/(?P<b>y)', undefined],
    ['/a/([\\d]+)', undefined],
    ['/a/(?:x)', undefined],
    ['/a/.*', undefined],
    ['/a/x?', undefined],
    ['/a/[abc]', undefined],
    ['/a/x|/b', undefined],
    ['/a/(?P<id>[\\d]+', undefined],
    ['/a/(?P<id>[', undefined],
    ['/a/\\d', undefined],
    ['/a/\\', undefined],
    ['/a/{id}', undefined],
    ['/a/(?P<1>x)', undefined],
  ])('%s reads as %s', (pattern, template) => {
    expect(routeTemplate(pattern)).toBe(template)
  })
})

describe('a route that can be read, but not matched safely,', () => {
  const indexWith = (patterns: readonly string[]) =>
    indexOf({ routes: Object.fromEntries(patterns.map((pattern) => [pattern, get({})])) })
  const knowledge = (patterns: readonly string[]) =>
    knowledgeOf(indexWith(patterns), {
      rows: siteRows,
      registered: [],
      publicRoot,
      unlistedRoutes: 'learn',
      undeclaredParameters: 'strip',
    })

  test.each([
    ['/x/v1/(?P<id>(?=a)b)', 'pattern-not-understood'],
    ['/x/v1/(?P<id>(?:a{1,99}){1,99})', 'pattern-too-complex'],
    [`/x/v1/${'a'.repeat(505)}`, 'pattern-too-long'],
  ])('%.40s is refused, with the reason', (pattern, reason) => {
    const { learned } = knowledge(['/x/v1/plain', pattern])
    expect(learned.refusals).toEqual([{ pattern, reason }])
    expect(learned.rows.map((row) => row.pattern)).toEqual(['/x/v1/plain'])
  })

  test('of more than 16 that divide a path in several ways, the others are refused', () => {
    const patterns = Array.from({ length: 20 }, (_, at) => `/x/v1/(?P<a>.+)-${at}-(?P<b>.+)`)
    const { learned } = knowledge(patterns)
    expect(learned.refusals).toEqual(
      patterns.slice(16).map((pattern) => ({ pattern, reason: 'too-many-alike' })),
    )
    expect(learned.rows).toHaveLength(16)
  })
})

const route = (endpoints: unknown, namespace: unknown = 'x/v1') => ({ namespace, endpoints })
const get = (args: unknown) => route([{ methods: ['GET'], args }])
const learn = (routes: object) => learnRows(indexOf({ routes }), siteRows)

describe('a hostile route', () => {
  test.each([
    ['without endpoints', route(undefined), 'not-a-route'],
    ['with endpoints of the wrong kind', route({ methods: 'GET' }), 'not-a-route'],
    ['with no method that is known', route([{ methods: ['TRACE', 5], args: {} }]), 'no-methods'],
    ['with methods of the wrong kind', route([{ methods: 'GET' }]), 'no-methods'],
    [
      'with too many arguments',
      get(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`a${i}`, {}]))),
      'too-many-arguments',
    ],
    ['with a list of arguments', get([1]), 'too-many-arguments'],
  ])('%s is refused', (_what, entry, reason) => {
    expect(learn({ '/x/v1/a': entry })).toEqual({ rows: [], refusals: [{ pattern: '/x/v1/a', reason }] })
  })

  test.each([
    ['x/v1/a', 'pattern-unreadable'],
    ['/x/(.*)*$', 'pattern-unreadable'],
    [`/x/${'a'.repeat(600)}`, 'pattern-too-long'],
  ])('%.20s is refused', (pattern, reason) => {
    expect(learn({ [pattern]: get({}) }).refusals).toEqual([{ pattern, reason }])
  })

  test('in another case is the listed one', () => {
    expect(
      learn({ '/Site/V2/Posts': get({}), '/site/v2/global-styles/(?P<id>[\\/\\w-]+)': get({}) }).rows,
    ).toEqual([])
  })

  test('of a taken template is refused', () => {
    expect(learn({ '/x/v1/(?P<id>a)': get({}), '/x/v1/(?P<id>b)': get({}) })).toMatchObject({
      rows: [{ pattern: '/x/v1/(?P<id>a)' }],
      refusals: [{ reason: 'template-taken' }],
    })
  })

  test('of which there are thousands, registered before those of WordPress, keeps none of those out', () => {
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`/x/v1/a${i}`, get({})]))
    const { rows, refusals } = learn({ ...many, ...publicDocument().routes })
    expect(rows).toHaveLength(3075)
    expect(refusals).toEqual([])
    expect(rows.map(({ template }) => template)).toContain('/site/v2/categories')
  })

  test('cannot claim a namespace that it is not in', () => {
    expect(learn({ '/x/v1/posts': { ...get({}), namespace: 'site/v2' } }).rows).toMatchObject([
      { namespace: '', collection: '/x' },
    ])
  })

  test('keeps what is sound of its arguments', () => {
    const args = {
      good: {
        type: ['integer', 'null'],
        minimum: 1,
        enum: [1, null],
        default: [],
        unknown: 1,
        items: { type: 'string' },
      },
      bad: {
        type: 'evil',
        minimum: 'x',
        enum: [{}],
        pattern: 'x'.repeat(600),
        minLength: -1,
        required: 'yes',
        oneOf: {},
      },
      map: { properties: [], additionalProperties: { type: 'string' } },
      nothing: [],
      text: 'x',
    }
    expect(learn({ '/x/v1/a': get(args) }).rows[0]?.endpoints[0]?.arguments).toEqual({
      good: {
        type: ['integer', 'null'],
        minimum: 1,
        enum: [1, null],
        default: [],
        items: { type: 'string' },
      },
      bad: {},
      map: { properties: {}, additionalProperties: { type: 'string' } },
      nothing: {},
      text: {},
    })
  })

  test('is not followed into the depth', () => {
    let schema: object = { type: 'string' }
    for (let i = 0; i < 20; i++) schema = { type: 'array', items: schema }
    const kept = JSON.stringify(learn({ '/x/v1/a': get({ a: schema }) }).rows)
    expect(kept.split('"items"').length).toBeLessThan(10)
  })

  test('cannot reach a prototype', () => {
    const content =
      '{"routes":{"__proto__":{"endpoints":[]},"/x/v1/a":{"endpoints":[{"methods":["GET"],"args":{"__proto__":{"type":"string"}}}]}}}'
    const reading = readIndex(Buffer.from(content))
    if (reading.kind === 'refused') throw new Error(reading.reason)
    learnRows(reading.index, siteRows)
    expect(Object.hasOwn(Object.prototype, 'type')).toBe(false)
  })
})

test('whatever a document holds, nothing throws', () => {
  const patterns = fc.oneof(
    fc.constantFrom(...real.routes.keys()),
    fc.stringMatching(/^\/[a-z(?P<>)[\]\\/.*+|]{0,20}$/),
    anyText(),
  )
  const keys = fc.constantFrom(
    'namespace',
    'methods',
    'endpoints',
    'args',
    'type',
    'enum',
    'items',
    'properties',
    'allow_batch',
    'v1',
    '_links',
  )
  const junk = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom('GET', 'site/v2', null, 1, true, [], {}),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(keys, fc.string({ maxLength: 3 })), tie('value'), { maxKeys: 5 }),
    ),
  })).value
  const documents = fc.record({
    routes: fc.dictionary(patterns, junk, { maxKeys: 5 }),
    namespaces: junk,
    home: junk,
    _links: junk,
  })
  fc.assert(
    fc.property(documents, (document) => {
      const reading = readIndex(Buffer.from(JSON.stringify(document)))
      if (reading.kind === 'refused') return
      knowledgeOf(reading.index, {
        rows: siteRows.slice(0, 8),
        registered: siteRows.slice(0, 8),
        publicRoot,
        unlistedRoutes: 'learn',
        undeclaredParameters: 'forward',
      })
    }),
    { numRuns: 100 },
  )
})
