import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mapWhole } from '../../../src/request/names.ts'
import { fromUpstream, jsonFields, names, publicRoot, upstreamRoot } from './wordpress-names.ts'

/** One root in front of another, one that is the public one, and one that ends like another word. */
const roots = [
  upstreamRoot,
  'http://wordpress.test',
  publicRoot,
  'http://gateway.test',
  'http://other.test/wp-json',
]

const mapper = () => names({ mode: 'same', upstreamRoots: () => roots })

const whole = (content: Buffer): string => {
  const mapping = mapper().fromUpstreamContent(jsonFields)
  return mapping === undefined ? '' : mapWhole(mapping, content).toString('latin1')
}

const asPieces = (content: Buffer): string => fromUpstream(mapper(), content).toString('latin1')

const url = fc
  .tuple(
    fc.constantFrom(...roots, 'https://wordpress.test', 'http://elsewhere.test'),
    fc.constantFrom(
      '',
      '/',
      '/wp/v2/posts/5',
      '?a=1&b=<',
      '#x',
      'p/x',
      '/a b',
      '/é',
      '/\\u00e9',
      '/"',
      '/a\\b',
    ),
  )
  .map((parts) => parts.join(''))

const text = fc.oneof(
  { arbitrary: url, weight: 4 },
  url.map((one) => `<${one}>; rel="next"`),
  url.map((one) => `see "${one}"`),
  fc.string({ unit: 'binary', maxLength: 6 }),
)

const key = fc.oneof(url, fc.constantFrom('href', '_links', 'Link', 'routes', 'namespace', 'rest_base'))

const { value: document } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(null, true, -1.5e3),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
}))

const forms: readonly ((value: unknown) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 1),
  (value) => JSON.stringify(value).replaceAll('/', '\\/'),
]

test('without swapped names complete content maps to the same octets as its chunks', () => {
  fc.assert(
    fc.property(document, fc.constantFrom(...forms), (value, write) => {
      const content = Buffer.from(write(value))
      expect(whole(content)).toBe(asPieces(content))
    }),
    { numRuns: 3000 },
  )
})

test.each([
  ['a link', `{"href":"${upstreamRoot}/wp/v2/posts/5"}`, `{"href":"${publicRoot}/wp/v2/posts/5"}`],
  ['the root by itself', `["${upstreamRoot}"]`, `["${publicRoot}"]`],
  ['a longer word', `["${upstreamRoot}x/posts"]`, undefined],
  ['the name of a member', `{"${upstreamRoot}/x" : 1}`, undefined],
  ['a quoted text', `["\\"${upstreamRoot}/x\\""]`, undefined],
])('%s', (_, content, mapped) => {
  const sameHost = names({ mode: 'same', upstreamRoots: () => [upstreamRoot] })
  const mapping = sameHost.fromUpstreamContent(jsonFields)
  if (mapping === undefined) throw new Error('nothing maps it')
  expect(mapWhole(mapping, Buffer.from(content)).toString()).toBe(mapped ?? content)
})
