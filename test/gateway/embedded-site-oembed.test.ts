import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, home, reader, startSite } from '../demo/wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('wordpress')
})
afterAll(() => site.close())

const embed = (page: string, query = '', as?: string, route = 'embed') => {
  const url = encodeURIComponent(`${home}/index.php/${page}/`)
  return ask(`${site.rest}/oembed/1.0/${route}?url=${url}${query}`, as === undefined ? {} : { as })
}

test('a post is described with its author, its image and the markup to embed it', async () => {
  const { status, body } = await embed('post-number-1')
  expect(status).toBe(200)
  expect(Object.keys(body)).toEqual([
    'version',
    'provider_name',
    'provider_url',
    'author_name',
    'author_url',
    'title',
    'type',
    'width',
    'height',
    'html',
    'thumbnail_url',
    'thumbnail_width',
    'thumbnail_height',
  ])
  expect(body.html).toContain(`src="${home}/index.php/post-number-1/embed/`)
})

test('the same as XML', async () => {
  const { headers, text } = await embed('page-1/page-4', '&format=xml')
  expect(headers.get('content-type')).toBe('text/xml; charset=UTF-8')
  expect(text).toMatch(/^<\?xml version="1\.0"\?>\n<oembed><version>1\.0<\/version>.*<title>Page 4<\/title>/)
  expect(text).toContain('&lt;blockquote')
})

test.each([
  ['300', 300, 200],
  ['5000', 600, 338],
  ['10', 200, 200],
])('a width of %s is kept within bounds', async (asked, width, height) => {
  const { body } = await embed('post-number-2', `&maxwidth=${asked}`)
  expect([body.width, body.height]).toEqual([width, height])
})

test.each([
  ['a page that is not there', 'nope'],
  ['a draft', 'post-number-58'],
])('%s is not found', async (_what, page) => {
  const { status, body } = await embed(page)
  expect([status, body.code]).toEqual([404, 'oembed_invalid_url'])
})

test.each([
  ['the anonymous', undefined, 401],
  ['a subscriber', reader, 403],
  ['the administrator', admin, 200],
])('the lookup for editors, asked by %s', async (_who, as, status) => {
  expect((await embed('post-number-3', '', as, 'proxy')).status).toBe(status)
})
