import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Names } from '../../../../src/wordpress/names/names.ts'
import { anyText } from '../../../support/any-text.ts'
import { fromUpstream, jsonHeaders, names, publicRoot, table, upstreamRoot } from './wordpress-names.ts'

const url = (root: string, namespace: string) =>
  fc
    .tuple(fc.constantFrom('', '/', '/posts/5', '?a=1', '/x#y'), fc.boolean())
    .map(([rest, bare]) => (bare ? root : `${root}/${namespace}${rest}`))

const key = fc.oneof(
  fc.constantFrom(
    'wp_id',
    'default',
    'site_id',
    'routes',
    'namespace',
    'namespaces',
    'rest_base',
    'Link',
    '/wp/v2/x',
    'a"b\\',
    'é',
  ),
  anyText({ maxLength: 3 }),
)

const text = (links: fc.Arbitrary<string>) =>
  fc.oneof(
    links,
    fc.constantFrom(
      'wp/v2',
      'site/v2',
      'wp_id',
      'wp_pattern_category',
      '<http://a>; rel="b"',
      'h',
      '\\',
      '"',
      '日本',
    ),
    anyText({ maxLength: 12 }),
  )

const document = (links: fc.Arbitrary<string>) =>
  fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      text(links),
      fc.constantFrom(null, true, -1.5e3),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  })).value

const forms: readonly ((value: unknown) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 1),
  (value) => JSON.stringify(value).replaceAll('/', '\\/'),
]

const json = (links: fc.Arbitrary<string>) =>
  fc.tuple(document(links), fc.constantFrom(...forms)).map(([value, write]) => Buffer.from(write(value)))

const upstreamJson = json(url(upstreamRoot, 'wp/v2'))
const publicJson = json(url(publicRoot, 'site/v2'))
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })

/** As a complete content is mapped: without the scanner where nothing in it can change. */
const complete = (mapper: Names, content: Buffer): string => {
  const mapping = mapper.fromUpstream(jsonHeaders).mapper
  return (mapping === undefined ? content : mapping.whole(content)).toString('latin1')
}

test('the boundaries of chunks do not change the mapped content', () => {
  const mapper = names()
  fc.assert(
    fc.property(upstreamJson, cuts, (content, shares) => {
      const whole = fromUpstream(mapper, content)
      expect(complete(mapper, content)).toBe(whole.toString('latin1'))
      const positions = shares.map((share) => Math.floor(share * content.length))
      expect(fromUpstream(mapper, content, positions).toString('latin1')).toBe(whole.toString('latin1'))
      const octetByOctet = [...content.keys()]
      expect(fromUpstream(mapper, content, octetByOctet).toString('latin1')).toBe(whole.toString('latin1'))
    }),
    { numRuns: 400 },
  )
})

test('the boundaries of chunks do not change mapped content that is not JSON', () => {
  const mapper = names()
  const octet = fc.constantFrom(...Buffer.from('"\\{}[],:/hu0 wp_id').values(), 0xc3, 0xff)
  fc.assert(
    fc.property(fc.array(octet, { maxLength: 60 }), (octets) => {
      const content = Buffer.from(octets)
      const split = fromUpstream(mapper, content, [...content.keys()])
      expect(split.equals(fromUpstream(mapper, content))).toBe(true)
      expect(complete(mapper, content)).toBe(split.toString('latin1'))
    }),
    { numRuns: 500 },
  )
})

test('a large public body is mapped in several turns as a small one is in one', async () => {
  const mapper = names()
  const items = Array.from(
    { length: 5_000 },
    (_, at) => `{"site_id":${at},"a":["${publicRoot}/site/v2/posts/${at}"]}`,
  )
  const mapped = await mapper.toUpstreamContent(Buffer.from(`[${items.join(',')}]`), 'application/json')
  const each = await Promise.all(
    items.map(async (item) => String(await mapper.toUpstreamContent(Buffer.from(item), 'application/json'))),
  )
  expect(each[7]).toContain('wp_id')
  expect(mapped.toString()).toBe(`[${each.join(',')}]`)
})

test('a public body mapped to the upstream and back is unchanged', async () => {
  const mapper = names()
  await fc.assert(
    fc.asyncProperty(publicJson, async (content) => {
      const up = await mapper.toUpstreamContent(content, 'application/json')
      expect(fromUpstream(mapper, up).toString('latin1')).toBe(content.toString('latin1'))
    }),
    { numRuns: 600 },
  )
})

const swapped = new Map(
  [...table.keys, ...table.namespaces, ...table.segments].flatMap((pair) => [
    [pair.neutral, pair.wordpress] as const,
    [pair.wordpress, pair.neutral] as const,
  ]),
)

const nameOf = (key: string, parent: string): string => {
  if (parent === 'routes') return key.replace(/^\/wp\/v2(?=\/|$)/, '/site/v2')
  return key.includes('/') ? key : (swapped.get(key) ?? key)
}

/** Key whose meaning a value has: the default of an argument `namespace` is a namespace. */
const meaningOf = (key: string, parent: string): string => {
  if (parent === 'routes') return ''
  return key === 'default' && parent.startsWith('namespace') ? 'namespace' : key
}

const mapText = (text: string, key: string): string => {
  const namesNamespace = key.startsWith('namespace') && text.includes('/')
  const namesSegment = key === 'rest_base' && text.endsWith('_pattern_category')
  if (namesNamespace || namesSegment) return swapped.get(text) ?? mapText(text, '')
  return text.startsWith(upstreamRoot)
    ? text.replace(upstreamRoot, publicRoot).replace('-json/wp/v2', '-json/site/v2')
    : text
}

/** The mapping once more, on the parsed document and for the URLs made above only. */
const model = (value: unknown, key = ''): unknown => {
  if (typeof value === 'string') return mapText(value, key)
  if (Array.isArray(value)) return value.map((item) => model(item, key === 'routes' ? '' : key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([own, inner]) => [nameOf(own, key), model(inner, meaningOf(own, key))]),
  )
}

test('mapping changes keys and links and nothing else', () => {
  const mapper = names()
  fc.assert(
    fc.property(upstreamJson, (content) => {
      expect(JSON.parse(fromUpstream(mapper, content).toString())).toEqual(
        model(JSON.parse(content.toString())),
      )
    }),
    { numRuns: 800 },
  )
})

test('a body without names and REST URLs is not copied', () => {
  const mapper = names()
  const plain = fc
    .json({ stringUnit: 'binary' })
    .filter((content) => !/wp|site|rout|namesp|rest_|Link|http/.test(content))
  fc.assert(
    fc.property(plain, (content) => {
      const octets = Buffer.from(content)
      const scanner = mapper.fromUpstream(jsonHeaders).mapper?.scanner()
      expect(scanner?.push(octets)).toBe(octets)
      expect(scanner?.end().length).toBe(0)
    }),
    { numRuns: 300 },
  )
})
