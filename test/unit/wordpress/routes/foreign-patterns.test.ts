import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileRowPattern } from '../../../../src/service/route-paths.ts'
import { createRouter } from '../../../../src/service/router.ts'
import type { Row } from '../../../../src/service/row.ts'
import { announcedRoutes } from '../../../contracts/discovery-document.ts'
import { inOneLine } from './found.ts'

const rowOf = (pattern: string): Row => ({
  id: pattern,
  template: pattern,
  pattern,
  namespace: '',
  collection: '',
  kind: 'item',
  handledBy: 'upstream',
  endpoints: [{ methods: ['GET'], arguments: {} }],
})

const routerOf = (...patterns: string[]) => createRouter(patterns.map(rowOf))
const announced = Object.keys(announcedRoutes())

/** The same pattern for a backtracking matcher; only for short paths. */
const native = (pattern: string): RegExp => new RegExp(`^${pattern.replaceAll('(?P<', '(?<')}$`, 'i')

const pieces = fc.constantFrom(
  ...[
    'site/v2',
    'posts',
    'templates',
    'global-styles',
    'themes',
    'users',
    'me',
    'font-collections',
    'block-types',
  ],
  ...[
    'abilities/v1/abilities',
    'run',
    'plugins',
    'revisions',
    'autosaves',
    'variations',
    'lookup',
    'mine',
    'Home',
  ],
  ...['5', '42', 'a-b', 'a_b', 'core', 'x.y', 'oembed', '1.0', 'embed'],
)
const paths = fc.array(pieces, { maxLength: 7 }).map((list) => `/${list.join('/')}`)

const edits = fc.array(
  fc.record({
    at: fc.nat(),
    removed: fc.nat({ max: 1 }),
    added: fc.constantFrom('', 'a', 'Z', '7', '-', '_', '.', '/', '%', '+', ':', '@', '/revisions', '\u0081'),
    inUpperCase: fc.boolean(),
  }),
  { maxLength: 2 },
)

/** Paths that the pattern matches, and the same paths with a few characters changed. */
const pathsFor = (pattern: string): fc.Arbitrary<string> =>
  fc
    .tuple(fc.stringMatching(new RegExp(native(pattern).source), { maxLength: 80 }), edits)
    .map(([path, changes]) =>
      changes.reduce((text, { at, removed, added, inUpperCase }) => {
        const from = at % (text.length + 1)
        const rest = text.slice(from + removed)
        return text.slice(0, from) + added + (inUpperCase ? rest.toUpperCase() : rest)
      }, path),
    )
    // Cleaned paths have no white space and no control characters.
    .filter((path) => /^[!-~\u0081]*$/.test(path))

describe('patterns of another discovery document', () => {
  test.each(announced)('RE2 and a backtracking matcher find the same groups: %s', (pattern) => {
    const compiled = compileRowPattern(pattern)
    if (compiled.kind === 'skipped') throw new Error(compiled.reason)
    const expression = native(pattern)
    fc.assert(
      fc.property(pathsFor(pattern), (path) => {
        const groups = compiled.groupsOf(path, path.toLowerCase())
        const expected = expression.exec(path)
        expect(groups && Object.fromEntries(groups)).toEqual(expected ? { ...expected.groups } : undefined)
      }),
      { numRuns: 100 },
    )
  })

  test('all 133 that WordPress announces are matched', () => {
    expect(announced).toHaveLength(133)
    expect(announced.filter((pattern) => compileRowPattern(pattern).kind !== 'pattern')).toEqual([])
  })

  test('the first row that PHP matches is found', () => {
    const router = routerOf(...announced)
    fc.assert(
      fc.property(fc.oneof(paths, fc.constantFrom(...announced)), (path) => {
        const expected = announced.find((pattern) => native(pattern).test(path))
        const routeMatch = router.find('GET', path)
        // Refused are readings that differ with and without merged slashes, and what a pattern is when taken as a path.
        fc.pre(routeMatch.kind !== 'refused')
        expect(routeMatch.kind === 'found' ? routeMatch.row.id : undefined).toBe(expected)
      }),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['/(?P<a>a+)(?P<b>a*)', /^\/(?<a>a+)(?<b>a*)$/],
    ['/(?P<a>a+?)(?P<b>a*)', /^\/(?<a>a+?)(?<b>a*)$/],
    ['/(?P<a>a|ab)(?P<b>c|bcd|b*)', /^\/(?<a>a|ab)(?<b>c|bcd|b*)$/],
    ['/(?P<a>(?:a|b)*)(?P<b>[bc]{1,3})', /^\/(?<a>(?:a|b)*)(?<b>[bc]{1,3})$/],
    ['/(?P<a>a?b?c?)(?P<b>[^a]{2}|.)', /^\/(?<a>a?b?c?)(?<b>[^a]{2}|.)$/],
    ['/(?P<a>(?:a*)*)b(?P<c>.*)', /^\/(?<a>(?:a*)*)b(?<c>.*)$/],
  ])('ambiguous patterns give the groups of a backtracking matcher: %s', (pattern, expression) => {
    const router = routerOf(pattern)
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), maxLength: 8 }), (text) => {
        const groups = expression.exec(`/${text}`)?.groups
        const routeMatch = router.find('GET', `/${text}`)
        // An empty identifier has no spelling.
        if (groups === undefined || Object.values(groups).includes(''))
          expect(routeMatch.kind).not.toBe('found')
        else expect(routeMatch).toMatchObject({ kind: 'found', pathParameters: groups })
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['a name with a slash', '/v1/(?P<name>[a-z0-9-]+/[a-z0-9-]+)', '/v1/core/paragraph', 'core/paragraph'],
    ['words', '/v1/(?P<name>[\\w-]+)', '/v1/a_b-c', 'a_b-c'],
    ['one of several', '/v1/(?P<name>(?:[\\d]+|me))/x', '/v1/me/x', 'me'],
    ['a count', '/v1/(?P<name>[\\d]{4})', '/v1/2026', '2026'],
    ['a lazy repetition', '/v1/(?P<name>[a-z\\/]+?)/run', '/v1/a/run/b/run', 'a/run/b'],
    ['groups within', '/v1/(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)', '/v1/a-b-c', 'a-b-c'],
    ['a name with a minus at the edge', '/v1/(?P<name>[a-zA-Z0-9_-]+)', '/v1/A-_9', 'A-_9'],
    ['a POSIX class', '/v1/(?P<name>[[:alpha:]]+)', '/v1/abc', 'abc'],
    ['a name that objects have', '/v1/(?P<__proto__>[a-z]+)', '/v1/abc', undefined],
  ])('%s is matched', (_what, pattern, path, value) => {
    const routeMatch = routerOf(pattern).find('GET', path)
    expect(routeMatch).toMatchObject({ kind: 'found', path })
    if (routeMatch.kind === 'found')
      expect(Object.entries(routeMatch.pathParameters)[0]?.[1]).toBe(value ?? 'abc')
  })

  test.each([
    ['look-ahead', '/v1/(?=a)a', 'pattern-not-understood'],
    ['look-behind', '/v1/(?<=a)a', 'pattern-not-understood'],
    ['a back reference', '/v1/(?P<a>.)\\1', 'pattern-not-understood'],
    ['a named back reference', '/v1/(?P<a>.)(?P=a)', 'pattern-not-understood'],
    ['an anchor', '/v1/a$', 'pattern-not-understood'],
    ['an atomic group', '/v1/(?>a+)b', 'pattern-not-understood'],
    ['a possessive repetition', '/v1/a++', 'pattern-not-understood'],
    ['recursion', '/v1/(?R)', 'pattern-not-understood'],
    ['an inline flag', '/v1/(?-i)a', 'pattern-not-understood'],
    ['a verb', '/v1/(*COMMIT)a', 'pattern-not-understood'],
    ['another spelling of a named group', '/v1/(?<a>[a-z]+)', 'pattern-not-understood'],
    ['a count without a minimum', '/v1/(?P<a>a{,3})', 'pattern-not-understood'],
    ['a character by its number', '/v1/(?P<a>\\x61)', 'pattern-not-understood'],
    ['a Unicode class', '/v1/(?P<a>\\p{L}+)', 'pattern-not-understood'],
    ['an open class', '/v1/(?P<a>[a-z', 'pattern-not-understood'],
    ['an open group', '/v1/(?P<a>a', 'pattern-not-understood'],
    ['a group that is closed twice', '/v1/(?P<a>a))', 'pattern-not-understood'],
    ['a range that goes back', '/v1/(?P<a>[z-a])', 'pattern-not-understood'],
    ['a repetition of nothing', '/v1/+', 'pattern-not-understood'],
    ['a count that goes back', '/v1/(?P<a>a{3,2})', 'pattern-not-understood'],
    ['a letter beyond ASCII', '/v1/é', 'pattern-not-understood'],
    ['one name twice', '/v1/(?P<a>a)/(?P<a>b)', 'pattern-not-understood'],
    ['a named group in another', '/v1/(?P<a>a(?P<b>b))', 'pattern-not-understood'],
    ['an optional part without a name', '/v1/a(?:/b)?', 'pattern-not-understood'],
    ['alternatives without a name', '/v1/a|/v1/b', 'pattern-not-understood'],
    ['no slash at the beginning', 'v1/a', 'pattern-not-understood'],
    ['no literal at the beginning', '(?P<a>.*)', 'pattern-not-understood'],
    ['nothing at all', '', 'pattern-not-understood'],
    ['a long pattern', `/${'a'.repeat(500)}`, 'pattern-too-long'],
    ['a large count', '/v1/(?P<a>a{999})', 'pattern-too-complex'],
    ['a count of a long group', `/v1/(?P<a>(?:${'a'.repeat(400)}){900})`, 'pattern-too-complex'],
    ['counts of counts', '/v1/(?P<a>(?:(?:a{9}){9}){9})', 'pattern-too-complex'],
    ['many parentheses', `/${'('.repeat(400)}`, 'pattern-not-understood'],
  ])('%s is skipped', (_what, pattern, reason) => {
    const router = routerOf(pattern, '/v1/other')
    expect(compileRowPattern(pattern)).toEqual({ kind: 'skipped', reason })
    expect(inOneLine(router.find('GET', '/v1/other'))).toBe('/v1/other /v1/other')
  })

  test('the number of ambiguous rows with one prefix is limited', () => {
    const patterns = Array.from({ length: 40 }, (_, i) => `/v1/(?P<a>(?:a|b)+)/x${i}`)
    const router = routerOf(...patterns)
    const found = patterns.map((_, i) => router.find('GET', `/v1/ab/x${i}`).kind)
    expect(found).toEqual([...Array(16).fill('found'), ...Array(24).fill('unlisted')])
  })

  test('an earlier row wins', () => {
    const router = routerOf('/v1/(?P<a>[a-z]+)', '/v1/me', '/v1/(?P<b>.+)')
    expect(inOneLine(router.find('GET', '/v1/me'))).toBe('/v1/(?P<a>[a-z]+) /v1/me')
  })
})
