import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { folded, foldedTarget, pathReadings, targetParts } from '../../../src/http/targets.ts'
import { cost } from '../../support/cost.ts'

describe('a path is read', () => {
  test.each([
    ['in one way where servers do not differ', '/blog/a-b~c.d', ['/blog/a-b~c.d']],
    ['without regard to case', '/Blog', ['/blog']],
    ['without a slash at the end', '/blog/', ['/blog']],
    ['with merged slashes', '//blog///a', ['/blog/a']],
    ['without dots and spaces at the end of a segment', '/blog./a%20', ['/blog/a']],
    ['with and without parameters', '/a;x/b', ['/a;x/b', '/a/b']],
    ['with parameters in an escape', '/a%3Bx', ['/a;x', '/a']],
    ['with an escaped slash as text and as a slash', '/a%2Fb', ['/a%2fb', '/a/b']],
    ['as a script with the rest of the path', '/a.PHP/b', ['/a.php/b', '/a.php']],
    ['as each of two scripts', '/a.php/b.php/c', ['/a.php/b.php/c', '/a.php', '/a.php/b.php']],
    ['as a script with a space behind its name', '/a.php%20/b', ['/a.php/b', '/a.php']],
    ['as the root', '/', ['/']],
    ['as the root, of nothing but slashes', '///', ['/']],
  ])('%s: %s', (_how, path, readings) => {
    expect(pathReadings(path)).toEqual(readings)
  })

  test('in its folded form, which folding does not change', () => {
    const text = fc.string({ unit: fc.constantFrom('/', 'a', 'B', '.', ';', '%2F', '%20', '%3B', '.php') })
    fc.assert(
      fc.property(text, (rest) => {
        const form = folded(`/${rest}`)
        expect(pathReadings(`/${rest}`)).toContain(form)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each(['.', '/', ';', 'a.', '%2F', '.php/', ' .', '.php'])(
    'in linear time, of nothing but %j',
    (piece) => {
      const path = `/${piece.repeat(16_000 / piece.length)}x`
      expect(cost(() => pathReadings(path), 50)).toBeLessThan(50)
    },
  )
})

describe('a target is folded', () => {
  test.each([
    ['where servers do not differ, into itself', '/blog/a-b~c.d', '/blog/a-b~c.d'],
    ['without escapes', '/a%27b?i%64=a%7Eb+c', "/a'b?id=a~b%20c"],
    ['with escapes of slashes beside octets that are no UTF-8', '/a%2Fb%FF', '/a/b%ff'],
    ['without parameters and slashes of its path that some servers pass over', '/A//b;x/?a', '/a/b?a'],
    ['without the order of its parameters', '/?b=2&a=1', '/?a=1&b=2'],
    ['without empty parameters', '/?&&', '/'],
    ['without an empty value', '/?a=&b', '/?a&b'],
    ['with octets that are no UTF-8', '/?a=%FF%41', '/?a=%ffa'],
  ])('%s: %s', (_how, target, same) => {
    expect(foldedTarget(target)).toBe(foldedTarget(same))
    expect(targetParts(foldedTarget(target)).path).toBe(targetParts(same).path)
  })

  test('with a digest of its query, which may have secrets and be long', () => {
    const form = foldedTarget(`/a?userPin=1234&b=${'x'.repeat(900)}`)
    expect(form).toMatch(/^\/a\?#[\w-]{22}$/)
    expect(foldedTarget('/a?userPin=1235')).not.toBe(foldedTarget('/a?userPin=1234'))
  })

  test.each(['%26', '&', '=', '+', '%', '%2', 'a&', 'A', '%C3%A9'])(
    'in linear time, of nothing but %j',
    (piece) => {
      const target = `/?${piece.repeat(24_000 / piece.length)}`
      expect(cost(() => foldedTarget(target), 50)).toBeLessThan(50)
    },
  )
})

describe('the form that all spellings of a target have', () => {
  const limit = 1_024
  const pairs = Array.from({ length: limit / 4 }, (_, at) => `p${String(at).padStart(2, 'x')}`.slice(0, 3))
  const escaped = (text: string): string =>
    text.replace(/[^&]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)
  const spelledOtherwise = (query: string): readonly string[] => [
    query,
    query.split('&').toReversed().join('&&&'),
    escaped(query),
    query.replaceAll('&', '=&').toUpperCase(),
  ]
  const formsOf = (query: string): ReadonlySet<string> =>
    new Set(spelledOtherwise(query).map((spelling) => foldedTarget(`/a?${spelling}`)))

  test('is one for a query as long as it is read to its end, and one for a query that is longer by one octet', () => {
    const [form = '', ...others] = formsOf(pairs.join('&'))
    expect(others).toEqual([])
    expect(form).not.toBe('/a#long')
    expect([...formsOf(`${pairs.join('&')}y`)]).toEqual(['/a?#long'])
  })

  test('is the same for all long queries of a path', () => {
    const forms = ['a&', 'a=%41&', '%', `${'x'.repeat(limit)}`].map((text) =>
      foldedTarget(`/a?${text.repeat(limit)}`),
    )
    expect(new Set(forms)).toEqual(new Set(['/a?#long']))
    expect(foldedTarget(`/a?${'&'.repeat(8_000)}${'=&'.repeat(1_000)}`)).toBe('/a')
  })
})
