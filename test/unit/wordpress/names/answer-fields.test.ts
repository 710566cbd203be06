import { describe, expect, test } from 'vitest'
import { names, publicRoot, upstreamRoot } from './wordpress-names.ts'

const mapped = (name: string, value: string): string | undefined =>
  names().fromUpstream([name, value]).headers[1]

describe('headers of a response', () => {
  test.each([
    ['Link', `<${upstreamRoot}/>; rel="https://api.w.org/"`, `<${publicRoot}/>; rel="https://api.w.org/"`],
    [
      'Link',
      `<${upstreamRoot}/wp/v2/posts?page=1>; rel="prev", <${upstreamRoot}/wp/v2/posts?page=3>; rel="next"`,
      `<${publicRoot}/site/v2/posts?page=1>; rel="prev", <${publicRoot}/site/v2/posts?page=3>; rel="next"`,
    ],
    [
      'Link',
      `<${upstreamRoot}/wp/v2/blocks?wp_pattern_category%5B0%5D=3&_fields=id%2Cwp_id&page=2>; rel="next"`,
      `<${publicRoot}/site/v2/blocks?site_pattern_category%5B0%5D=3&_fields=id,site_id&page=2>; rel="next"`,
    ],
    [
      'Link',
      '<http://wordpress.test/index.php/hello-world/>; rel="alternate"; type=text/html',
      '<http://wordpress.test/index.php/hello-world/>; rel="alternate"; type=text/html',
    ],
    [
      'Link',
      `<http://a.test/>; title="a \\"<${upstreamRoot}/>\\" b", <${upstreamRoot}/>; rel=x`,
      `<http://a.test/>; title="a \\"<${upstreamRoot}/>\\" b", <${publicRoot}/>; rel=x`,
    ],
    ['Link', `<${upstreamRoot}`, `<${upstreamRoot}`],
    ['Location', `${upstreamRoot}/wp/v2/posts/5`, `${publicRoot}/site/v2/posts/5`],
    ['location', '/index.php/wp-json/wp/v2/posts/5?a=1#b', '/index.php/site-json/site/v2/posts/5?a=1#b'],
    ['Location', '//index.php/wp-json/', '//index.php/wp-json/'],
    ['Location', 'http://wordpress.test/wp-login.php', 'http://wordpress.test/wp-login.php'],
    ['Location', `${upstreamRoot}p/x`, `${upstreamRoot}p/x`],
    ['Location', 'https://wordpress.test/index.php/wp-json/wp/v2/posts/5', `${publicRoot}/site/v2/posts/5`],
    ['Content-Location', `${upstreamRoot}/wp/v2/posts/5`, `${publicRoot}/site/v2/posts/5`],
    ['X-Other', `${upstreamRoot}/wp/v2`, `${upstreamRoot}/wp/v2`],
    ['ETag', '"a"', '"a"'],
    ['Content-Length', '5', '5'],
  ])('%s: %s', (name, value, expected) => {
    expect(mapped(name, value)).toBe(expected)
  })

  test('headers that describe the octets are removed when the content is mapped', () => {
    const lines = [
      'Content-Type',
      'application/json',
      'Content-Length',
      '5',
      'ETag',
      '"a"',
      'X',
      'y',
      'Accept-Ranges',
      'bytes',
    ]
    expect(names().fromUpstream(lines).headers).toEqual([
      'Content-Type',
      'application/json',
      'ETag',
      'W/"a"',
      'X',
      'y',
    ])
  })

  test('repeated lines keep their order', () => {
    const lines = ['Link', `<${upstreamRoot}/>; rel=a`, 'X', '1', 'Link', `<${upstreamRoot}/>; rel=b`]
    expect(names().fromUpstream(lines).headers).toEqual([
      'Link',
      `<${publicRoot}/>; rel=a`,
      'X',
      '1',
      'Link',
      `<${publicRoot}/>; rel=b`,
    ])
  })

  test('a root that is learned later is translated from then on', () => {
    const learned: { root: string | undefined } = { root: undefined }
    const mapper = names({ learned, upstreamRoots: (root) => (root === undefined ? [] : [root]) })
    const lines = ['Location', `${upstreamRoot}/wp/v2/posts/5`]
    expect(mapper.fromUpstream(lines).headers).toEqual(lines)
    learned.root = `${upstreamRoot}/`
    expect(mapper.fromUpstream(lines).headers[1]).toBe(`${publicRoot}/site/v2/posts/5`)
  })

  test('with `names: same` and one root for both sides the same lines are returned', () => {
    const lines = ['Location', `${upstreamRoot}/wp/v2/posts/5`]
    const mapper = names({ mode: 'same', publicRoot: upstreamRoot, upstreamRoots: () => [upstreamRoot] })
    expect(mapper.fromUpstream(lines).headers).toBe(lines)
  })
})
