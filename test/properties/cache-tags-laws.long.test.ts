import fc from 'fast-check'
import { expect, test } from 'vitest'
import { siteTags } from '../../src/wordpress/tags/tags.ts'
import { times } from '../support/breadth.ts'
import { found, reaches, tagger } from '../unit/cache/site-fixture.ts'

const collections = fc.oneof(
  fc.constantFrom(...Object.keys(siteTags)),
  fc.constantFrom('', 'shop/v1/offers', 'constructor', '__proto__'),
)
const ids = fc.oneof(fc.nat().map(String), fc.string({ minLength: 1, maxLength: 200 }))

/** Values where identifiers, types and relations stand in a real response, and anything else beside them. */
const body = fc.oneof(
  fc.jsonValue(),
  fc.record(
    {
      id: fc.jsonValue(),
      type: fc.oneof(fc.constantFrom('post', 'page', 'constructor'), fc.jsonValue()),
      taxonomy: fc.jsonValue(),
      author: fc.jsonValue(),
      categories: fc.jsonValue(),
      previous: fc.jsonValue(),
      _embedded: fc.dictionary(fc.constantFrom('author', 'wp:term', '__proto__', 'x'), fc.jsonValue()),
    },
    { requiredKeys: [] },
  ),
)

const contents = fc.oneof(
  body.map((value) => Buffer.from(JSON.stringify(value))),
  fc.array(body).map((values) => Buffer.from(JSON.stringify(values))),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
)

const headers = fc.array(
  fc.tuple(
    fc.constantFrom(
      'Surrogate-Key',
      'Cache-Tag',
      'xkey',
      'Cache-Groups',
      'Cache-Group-Invalidation',
      'X-WP-TotalPages',
    ),
    fc.string(),
  ),
  { maxLength: 4 },
)

const kinds = fc.constantFrom(
  'collection' as const,
  'item' as const,
  'revisions' as const,
  'action' as const,
  'lookup' as const,
)

test('no response makes the tagger throw or grow, and every tag belongs to its service', () => {
  fc.assert(
    fc.property(collections, kinds, ids, contents, headers, (collection, kind, id, content, lines) => {
      const routeMatch = found(collection, kind, { id })
      const response = { status: 200, headers: lines.flat(), content }
      const stored = tagger.storedTags(routeMatch, { page: 1, author: [1] }, response)
      const written = tagger.writtenTags(routeMatch, () => undefined, 'PUT', response)
      const all = [...stored, ...written]
      expect(all.every((tag) => tag.startsWith('site/'))).toBe(true)
      expect(stored.length).toBeLessThan(500)
      expect(stored).toContain('site/all')
      expect(written.length).toBeGreaterThan(0)
    }),
    { numRuns: times(300, 1_000) },
  )
})

test('whatever a response says, a write reaches the item in its path and the lists of its collection', () => {
  fc.assert(
    fc.property(
      collections,
      ids,
      contents,
      contents,
      fc.constantFrom('PUT', 'DELETE'),
      (collection, id, before, after, method) => {
        const item = found(collection, 'item', { id })
        const write = { found: item, method, response: { status: 200, headers: [], content: after } }
        const shown = (text: Buffer): unknown => {
          try {
            return JSON.parse(text.toString())
          } catch {
            return {}
          }
        }
        expect(reaches(write, { found: item, body: shown(before) })).toBe(true)
        const list = { found: found(collection, 'collection'), args: { page: 1 }, body: shown(before) }
        expect(reaches(write, list)).toBe(true)
      },
    ),
    { numRuns: times(300, 1_000) },
  )
})
