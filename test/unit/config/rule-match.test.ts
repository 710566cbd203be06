import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { firstRules, matchesRule, mayMatchPath, parseRuleMatch } from '../../../src/config/rule-match.ts'
import { pathReadings } from '../../../src/http/targets.ts'
import { cost, costBeside } from '../../support/cost.ts'

const ruleOf = (text: string) => {
  const reading = parseRuleMatch(text)
  if (reading.kind === 'fault') throw new Error(reading.message)
  return reading.value
}

describe('a cache rule matches', () => {
  test.each([
    ['the path itself', 'GET /plants', 'GET', '/plants', true],
    ['not a longer path', 'GET /plants', 'GET', '/plants/5', false],
    ['not a path that only begins the same', 'GET /plants', 'GET', '/plants2', false],
    ['HEAD with GET', 'GET /plants', 'HEAD', '/plants', true],
    ['not GET with HEAD', 'HEAD /plants', 'GET', '/plants', false],
    ['no other method', 'GET /plants', 'POST', '/plants', false],
    ['both of a list', 'HEAD,GET /plants', 'GET', '/plants', true],
    ['one segment with *', 'GET /site/v2/*', 'GET', '/site/v2/posts', true],
    ['no two segments with *', 'GET /site/v2/*', 'GET', '/site/v2/posts/5', false],
    ['part of a segment with *', 'GET /site/v2/po*s', 'GET', '/site/v2/posts', true],
    ['several * in one segment', 'GET /*o*t*', 'GET', '/posts', true],
    ['row templates with *', 'GET /site/v2/posts/*', 'GET', '/site/v2/posts/{id}', true],
    ['any rest with **', 'GET /site/v2/**', 'GET', '/site/v2/posts/5/revisions', true],
    ['no rest at all with **', 'GET /site/v2/**', 'GET', '/site/v2', true],
    ['nothing beside **', 'GET /site/v2/**', 'GET', '/site/v3/posts', false],
    ['** in the middle', 'GET /site/**/revisions', 'GET', '/site/v2/posts/5/revisions', true],
    ['** in the middle, wrong end', 'GET /site/**/revisions', 'GET', '/site/v2/posts/5', false],
    ['two **', 'GET /**/posts/**', 'GET', '/site/v2/posts/5', true],
    ['everything', 'GET /**', 'GET', '/', true],
    ['the root', 'GET /', 'GET', '/', true],
    ['only the root', 'GET /', 'GET', '/a', false],
    ['letter by letter, with case', 'GET /Plants', 'GET', '/plants', false],
  ])('%s: %s for %s %s is %s', (_description, text, method, path, expected) => {
    expect(matchesRule(ruleOf(text), method, path)).toBe(expected)
  })
})

test.each([
  '',
  'GET',
  '/a',
  'get /a',
  'GET a',
  'GET /a/',
  'GET //a',
  'GET /a/../b',
  'GET /a b',
  'GET /a**',
  'GET /é',
  'DELETE /a',
])('%j is no rule', (text) => {
  expect(parseRuleMatch(text).kind).toBe('fault')
})

/** The same question asked of a regular expression, which may backtrack but is easy to verify. */
const believable = (segments: readonly string[], path: readonly string[]): boolean => {
  const [first, ...rest] = segments
  if (first === undefined) return path.length === 0
  if (first === '**')
    return path.some((_, index) => believable(rest, path.slice(index))) || believable(rest, [])
  const [head, ...tail] = path
  if (head === undefined) return false
  return new RegExp(`^${first.replaceAll('*', '.*')}$`).test(head) && believable(rest, tail)
}

test('matching agrees with the definition for any pattern and path', () => {
  const segment = fc.stringMatching(/^[ab]{1,4}$/)
  const pattern = fc.oneof(
    segment,
    fc.constant('**'),
    fc.stringMatching(/^[ab*]{1,3}$/).filter((s) => !s.includes('**')),
  )
  fc.assert(
    fc.property(
      fc.array(pattern, { maxLength: 5 }),
      fc.array(segment, { maxLength: 6 }),
      (segments, path) => {
        const match = { text: '', methods: ['GET'], segments }
        expect(matchesRule(match, 'GET', `/${path.join('/')}`)).toBe(believable(segments, path))
      },
    ),
    { numRuns: 500 },
  )
})

test('a pattern made for backtracking is matched in bounded time', () => {
  const rule = ruleOf(`GET /${'*a'.repeat(20)}/${'**/a/'.repeat(20)}b`)
  const path = `/${'a'.repeat(4_000)}/${'a/'.repeat(2_000)}c`
  expect(matchesRule(rule, 'GET', path)).toBe(false)
  expect(cost(() => matchesRule(rule, 'GET', path), 200)).toBeLessThan(200)
})

describe('a hundred rules and limits for one long path cost little more than its readings', () => {
  const texts = (text: string): readonly string[] => Array.from({ length: 100 }, (_, at) => text + at)
  const rulesOf = (text: string) => texts(text).map((rule) => ({ match: ruleOf(rule) }))
  const shapes: [piece: string, rules: string][] = []
  for (const piece of ['a/', 'a.php/', 'a./', 'a%2f', 'a;b/'])
    for (const rules of ['GET /r', 'GET /a/**/r', 'GET /**/r']) shapes.push([piece, rules])

  test.each(shapes)('/%s… and %s…', (piece, text) => {
    const rules = rulesOf(text)
    let number = 0
    const path = (): string => {
      number += 1
      return `/${piece.repeat(7_900 / piece.length)}${number}`
    }
    const ask = (): void => {
      const asked = path()
      expect(rules.some(({ match }) => mayMatchPath(match, asked))).toBe(false)
      expect(firstRules(rules, 'GET', asked)).toEqual([undefined])
    }
    const readings = (): number => pathReadings(path()).map((reading) => reading.split('/')).length
    expect(costBeside(ask, readings, 5)).toBeLessThan(5)
  })
})
