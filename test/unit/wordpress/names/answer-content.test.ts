import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { fromUpstream, jsonHeaders, names, publicRoot, upstreamRoot } from './wordpress-names.ts'

const escaped = (url: string): string => url.replaceAll('/', '\\/')
const down = (content: string): string => fromUpstream(names(), Buffer.from(content)).toString()

describe('JSON of a response', () => {
  test.each([
    [
      'an escaped URL',
      `{"href":"${escaped(`${upstreamRoot}/wp/v2/posts/5`)}"}`,
      `{"href":"${escaped(`${publicRoot}/site/v2/posts/5`)}"}`,
    ],
    ['a plain URL', `{"href":"${upstreamRoot}/wp/v2/posts/5"}`, `{"href":"${publicRoot}/site/v2/posts/5"}`],
    ['the root itself', `["${upstreamRoot}","${upstreamRoot}/"]`, `["${publicRoot}","${publicRoot}/"]`],
    [
      'names in its query',
      `{"href":"${escaped(`${upstreamRoot}/wp/v2/wp_pattern_category?wp_id=5`)}"}`,
      `{"href":"${escaped(`${publicRoot}/site/v2/site_pattern_category?site_id=5`)}"}`,
    ],
    ['escapes in its tail', `["${upstreamRoot}/wp/v2/x?s=\\u00e9"]`, `["${publicRoot}/site/v2/x?s=\\u00e9"]`],
    ['octets of its tail', `["${upstreamRoot}/wp/v2/x?s=é"]`, `["${publicRoot}/site/v2/x?s=é"]`],
    ['a template', `["${upstreamRoot}/wp/v2/{rel}"]`, `["${publicRoot}/site/v2/{rel}"]`],
    [
      'keys',
      '{"wp_id":5,"meta":{"wp_pattern_sync_status":""}}',
      '{"site_id":5,"meta":{"site_pattern_sync_status":""}}',
    ],
    [
      'namespaces',
      '{"namespaces":["oembed\\/1.0","wp\\/v2"],"namespace":"wp\\/v2"}',
      '{"namespaces":["oembed\\/1.0","site\\/v2"],"namespace":"site\\/v2"}',
    ],
    [
      'what clients make paths of',
      '{"rest_base":"wp_pattern_category","rest_namespace":"wp\\/v2"}',
      '{"rest_base":"site_pattern_category","rest_namespace":"site\\/v2"}',
    ],
    [
      'route patterns',
      '{"routes":{"\\/wp\\/v2\\/posts\\/(?P<id>[\\\\d]+)":{"namespace":"wp\\/v2"}}}',
      '{"routes":{"\\/site\\/v2\\/posts\\/(?P<id>[\\\\d]+)":{"namespace":"site\\/v2"}}}',
    ],
    [
      'fields in an envelope',
      `{"headers":{"Link":"<${escaped(upstreamRoot)}\\/wp\\/v2>; rel=\\"next\\""}}`,
      `{"headers":{"Link":"<${escaped(publicRoot)}\\/site\\/v2>; rel=\\"next\\""}}`,
    ],
    ['a call around it', '/**/cb({"wp_id":5})', '/**/cb({"site_id":5})'],
  ])('maps %s', (_what, content, expected) => {
    expect(down(content)).toBe(expected)
  })

  test.each([
    ['a mention of a name', '{"title":"wp_id and wp/v2","slug":"wp_pattern_category","name":"wp/v2"}'],
    ['a mention of a URL', `{"content":"<a href=\\"${escaped(upstreamRoot)}\\">x</a>"}`],
    ['a URL that goes on as text', `{"content":"${upstreamRoot}/ is our interface"}`],
    ['another path of the host', '{"link":"http:\\/\\/wordpress.test\\/index.php\\/hello-world\\/"}'],
    ['a longer last segment', `["${upstreamRoot}p","${upstreamRoot}-x/"]`],
    ['a longer host', '["http://wordpress.testing/index.php/wp-json/"]'],
    [
      'link relations',
      '{"_links":{"wp:term":[],"curies":[{"name":"wp","href":"https:\\/\\/api.w.org\\/{rel}"}]}}',
    ],
    ['pattern keys outside `routes`', '{"x":{"\\/wp\\/v2\\/posts":1},"routes":[{"\\/wp\\/v2":1}]}'],
    ['a URL that is too long', `["${upstreamRoot}/wp/v2/${'x'.repeat(9000)}"]`],
    ['what is not JSON', '}}]]"\\"wp_id"::{{[,,"'],
    ['an unfinished string', `{"a":"${upstreamRoot}`],
    ['nothing', ''],
  ])('leaves %s', (_what, content) => {
    expect(down(content)).toBe(content)
  })

  test.each([
    ['HTML', ['Content-Type', 'text/html']],
    ['no type', []],
    ['coded content', [...jsonHeaders, 'Content-Encoding', 'gzip']],
    ['a part', [...jsonHeaders, 'Content-Range', 'bytes 0-1/2']],
  ])('has no mapper for %s', (_what, lines) => {
    expect(names().fromUpstream(lines).mapper).toBeUndefined()
  })

  test('content nested deeper than WordPress writes it passes unmapped', () => {
    const deep = '['.repeat(5000)
    expect(down(`${deep}{"wp_id":1}`)).toBe(`${deep}{"wp_id":1}`)
    expect(down(`${'['.repeat(900)}{"wp_id":1}`)).toContain('site_id')
  })
})

test.each([
  ['a value', '{"a":"http'],
  ['a key', '{"http'],
  ['a pattern', '{"routes":{"\\/wp'],
])('of %s without an end only a bounded part is held back', (_what, begun) => {
  const mapper = names().fromUpstream(jsonHeaders).mapper?.scanner()
  const chunk = Buffer.alloc(16 * 1024, 'x')
  mapper?.push(Buffer.from(begun))
  mapper?.push(chunk)
  expect(mapper?.push(chunk)).toBe(chunk)
  expect(mapper?.end().length).toBe(0)
})

test('a bound on length holds for chunks and for complete content alike', () => {
  const link = `<${upstreamRoot}/>; rel=x; title=${'x'.repeat(9000)}`
  const content = Buffer.from(JSON.stringify({ headers: { Link: link } }))
  expect(fromUpstream(names(), content).equals(content)).toBe(true)
  expect(fromUpstream(names(), content, [5000, 8000]).equals(content)).toBe(true)
})

test('a stream is mapped chunk by chunk', async () => {
  const mapper = names().fromUpstream(jsonHeaders).mapper?.transform()
  if (mapper === undefined) throw new Error('no mapper')
  const chunks = ['{"wp_', 'id":1,"a":"', upstreamRoot.slice(0, 9), `${upstreamRoot.slice(9)}/"`, '}'].map(
    (c) => Buffer.from(c),
  )
  const mapped = await buffer(Readable.from(chunks).pipe(mapper))
  expect(mapped.toString()).toBe(`{"site_id":1,"a":"${publicRoot}/"}`)
})

describe('the real post of WordPress', () => {
  const post = readFileSync(new URL('./fixtures/post.json', import.meta.url))

  test('has every REST link public and nothing else changed', () => {
    const mapped = fromUpstream(names(), post).toString()
    expect(mapped).not.toContain('wp-json')
    expect(mapped.split(escaped(publicRoot)).length).toBe(post.toString().split(escaped(upstreamRoot)).length)
    const back = mapped.replaceAll(escaped(`${publicRoot}/site/v2`), escaped(`${upstreamRoot}/wp/v2`))
    expect(back).toBe(post.toString())
  })

  test('is the same object when nothing changes', () => {
    const mapper = names({ mode: 'same', upstreamRoots: () => ['http://elsewhere.test/index.php/wp-json'] })
    const scanner = mapper.fromUpstream(jsonHeaders).mapper?.scanner()
    expect(scanner?.push(post)).toBe(post)
    expect(scanner?.end().length).toBe(0)
  })
})
