import { describe, expect, test } from 'vitest'
import { cost } from '../../../support/cost.ts'
import { names, publicRoot, upstreamRoot } from './wordpress-names.ts'

const json = 'application/json'
const up = (content: string, contentType: string | undefined = json): string =>
  names().toUpstreamContent(Buffer.from(content), contentType).toString()

describe('JSON content of a request', () => {
  test.each([
    ['a key', '{"site_id":5}', '{"wp_id":5}'],
    [
      'a nested key',
      '{"meta":{"site_pattern_sync_status":"partial"}}',
      '{"meta":{"wp_pattern_sync_status":"partial"}}',
    ],
    ['keys in a list', '[{"site_id":1},{"site_id":2}]', '[{"wp_id":1},{"wp_id":2}]'],
    ['an escaped key', '{"site\\u005fid":5}', '{"wp_id":5}'],
    ['white space', '{ "site_id" :\n5 }', '{ "wp_id" :\n5 }'],
    ['a value is data', '{"title":"site_id","tags":["site_id"]}', '{"title":"site_id","tags":["site_id"]}'],
    ["WordPress's own spelling means nothing", '{"wp_id":5}', '{"site_id":5}'],
    ['nor escaped', '{"\\u0077p_id":5}', '{"site_id":5}'],
    ['a public URL', `{"url":"${publicRoot}/site/v2/posts/5"}`, `{"url":"${upstreamRoot}/wp/v2/posts/5"}`],
    ['a URL in a text', `{"content":"see ${publicRoot}/site/v2"}`, `{"content":"see ${publicRoot}/site/v2"}`],
    ['numbers beyond 2^53', '{"site_id":9007199254740993,"n":1.0e2}', '{"wp_id":9007199254740993,"n":1.0e2}'],
  ])('%s', (_what, content, expected) => {
    expect(up(content)).toBe(expected)
  })

  test.each([
    ['application/json; charset=utf-8', '{"wp_id":1}'],
    ['Application/JSON', '{"wp_id":1}'],
    ['application/vnd.site+json', '{"wp_id":1}'],
    ['text/plain', '{"site_id":1}'],
    ['multipart/form-data; boundary=x', '{"site_id":1}'],
  ])('content type %s', (contentType, expected) => {
    expect(up('{"site_id":1}', contentType)).toBe(expected)
  })

  test('content without a media type stays the same', () => {
    const content = Buffer.from('{"site_id":1}')
    expect(names().toUpstreamContent(content, undefined)).toBe(content)
  })
})

test('names of form headers are swapped, octets of values stay', () => {
  const form = 'application/x-www-form-urlencoded'
  expect(up('site_id=5&meta[site_pattern_sync_status]=&title=site_id+%C3%A9', form)).toBe(
    'wp_id=5&meta[wp_pattern_sync_status]=&title=site_id+%C3%A9',
  )
})

test('with `names: same` only public URLs change', () => {
  const mapper = names({ mode: 'same', publicRoot: 'http://gateway.test/index.php/wp-json' })
  const content = Buffer.from(
    '{"wp_id":1,"site_id":2,"a":"http:\\/\\/gateway.test\\/index.php\\/wp-json\\/wp\\/v2\\/x"}',
  )
  expect(mapper.toUpstreamContent(content, json).toString()).toBe(
    '{"wp_id":1,"site_id":2,"a":"http:\\/\\/wordpress.test\\/index.php\\/wp-json\\/wp\\/v2\\/x"}',
  )
})

test('content without a name or URL to map is not copied', () => {
  const mapper = names({ mode: 'same', publicRoot: upstreamRoot, upstreamRoots: () => [upstreamRoot] })
  const content = Buffer.from(`{"a":"${upstreamRoot}/x"}`)
  expect(mapper.toUpstreamContent(content, json)).toBe(content)
})

test('a form of a million separators takes little time and stays the same', () => {
  const form = 'application/x-www-form-urlencoded'
  const separators = '&'.repeat(1 << 20)
  const sent = `${separators}site_id=1&&title=site_id&`
  expect(up(sent, form)).toBe(`${separators}wp_id=1&&title=site_id&`)
  // A list of as many names takes a second.
  expect(cost(() => up(sent, form), 300)).toBeLessThan(300)
})

test('a name beyond the bound stays the same', () => {
  const name = `site_id${'[]'.repeat(1000)}`
  expect(up(`${name}=1&site_id=2`, 'application/x-www-form-urlencoded')).toBe(`${name}=1&wp_id=2`)
})
