import { expect, test } from 'vitest'
import { parseItemPath } from '../../../src/wordpress/batch.ts'

const target = (path: string, query = '') => ({ kind: 'target', path, query })

test.each([
  ['a path as it is', '/site/v2/posts', target('/site/v2/posts')],
  ['a query', '/site/v2/posts/5?_fields=id,slug', target('/site/v2/posts/5', '_fields=id,slug')],
  ['a fragment is dropped', '/site/v2/posts?a=1#x?b=2', target('/site/v2/posts', 'a=1')],
  ['a host is ignored', 'http://evil.example/site/v2/posts?a=1', target('/site/v2/posts', 'a=1')],
  ['so is one with user and port', 'https://u:p@evil.example:81/site/v2/posts', target('/site/v2/posts')],
  ['and one without a scheme', '//evil.example/site/v2/posts', target('/site/v2/posts')],
  [
    'text that is not ASCII is escaped',
    '/site/v2/posts?search=ä b',
    target('/site/v2/posts', 'search=%C3%A4%20b'),
  ],
  ['half a surrogate pair too', '/site/v2/posts?search=\ud800', target('/site/v2/posts', 'search=%EF%BF%BD')],
  [
    'a line break does not reach the wire',
    '/site/v2/posts?a=\r\nX: y',
    target('/site/v2/posts', 'a=__X:%20y'),
  ],
])('understands %s', (_, text, expected) => {
  expect(parseItemPath(text)).toEqual(expected)
})

test.each([
  ['no leading slash', 'site/v2/posts'],
  ['a trailing slash', '/site/v2/posts/'],
  ['nothing', ''],
  ['a host alone', 'http://evil.example'],
  ['an empty segment in front', '//elsewhere.example'],
  ['dot segments', '/site/v2/posts/../../../admin'],
  ['a dot segment at the end', '/site/v2/posts/..'],
  ['an escaped dot segment', '/site/v2/%2e%2e/admin'],
  ['an escaped digit', '/site/v2/posts/%35'],
  ['a backslash', '/site\\v2\\posts'],
  ['a space', '/site/v2/posts /5'],
  ['a scheme that is none', 'javascript:alert(1)'],
])('finds no route for %s', (_, text) => {
  expect(parseItemPath(text)).toEqual({ kind: 'no-route' })
})

test.each([
  ['http:///site/v2/posts'],
  ['http://:80/site/v2/posts'],
  ['http://host:99999/site/v2/posts'],
  ['///site/v2/posts'],
])('cannot parse %s', (text) => {
  expect(parseItemPath(text)).toEqual({ kind: 'unparsable' })
})

test.each([
  '_method=DELETE',
  '%5Fmethod=DELETE',
  '.method=DELETE',
  '+_method=DELETE',
  '_method%00%FF=DELETE',
  '_method[]=DELETE',
  'rest_route=/wp/v2/users',
  'rest.route=/wp/v2/users',
  'rest[route=/wp/v2/users',
  'rest%20route=/wp/v2/users',
  '_envelope=1',
  '_embed',
  '_jsonp=x',
])('drops %s, which would come to life outside a batch', (parameter) => {
  expect(parseItemPath(`/site/v2/posts?a=1&${parameter}&b=2`)).toEqual(target('/site/v2/posts', 'a=1&b=2'))
})
