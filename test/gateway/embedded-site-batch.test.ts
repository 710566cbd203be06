import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, startSite } from '../demo/wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('neutral')
})
afterAll(() => site.close())

const batch = (requests: unknown, more: Record<string, unknown> = {}, as: string | undefined = admin) =>
  ask(`${site.rest}/batch/v1`, {
    method: 'POST',
    body: { requests, ...more },
    ...(as === undefined ? {} : { as }),
  })

test('items run in order and see what the ones before them did', async () => {
  const post = {
    path: '/site/v2/posts?_fields=id,slug',
    body: { title: 'Twin', status: 'publish', slug: 'twin' },
  }
  const { status, body } = await batch([post, post])
  expect(status).toBe(207)
  expect(body.responses.map((one: { body: { slug: string } }) => one.body.slug)).toEqual(['twin', 'twin-2'])
  expect(Object.keys(body.responses[0])).toEqual(['body', 'status', 'headers'])
  expect(Object.keys(body.responses[0].headers).sort()).toEqual(['Allow', 'Location'])
})

test('no items, no responses', async () => {
  const { status, body } = await batch([])
  expect([status, body]).toEqual([207, { responses: [] }])
})

test.each<[path: string, status: number, code: string]>([
  ['site/v2/posts', 404, 'rest_no_route'],
  ['/site/v2/posts/', 404, 'rest_no_route'],
  ['/index.php/site-json/site/v2/posts', 404, 'rest_no_route'],
  ['http:///bad', 400, 'parse_path_failed'],
  ['/batch/v1', 400, 'rest_batch_not_allowed'],
  ['/site/v2/media', 400, 'rest_batch_not_allowed'],
  ['/site/v2/posts/99999', 404, 'rest_post_invalid_id'],
])('the path %s is answered in its place, the others run', async (path, status, code) => {
  const fine = { path: '/site/v2/posts/2?_fields=id#fragment', method: 'PUT', body: {} }
  const { body } = await batch([fine, { path, body: {} }, fine])
  expect(body.responses.map((one: { status: number }) => one.status)).toEqual([200, status, 200])
  expect(body.responses[1].body.code).toBe(code)
})

test('the host of an absolute address means nothing', async () => {
  const { body } = await batch([
    { path: 'http://elsewhere.example/site/v2/posts/3?_fields=id', method: 'PUT', body: {} },
  ])
  expect(body.responses[0]).toMatchObject({ status: 200, body: { id: 3 } })
})

test('with require-all-validate nothing runs when one item is wrong', async () => {
  const { body } = await batch(
    [
      { path: '/site/v2/posts', body: { title: 'Never', status: 'publish' } },
      { path: '/site/v2/posts', body: { status: 'bogus' } },
    ],
    { validation: 'require-all-validate' },
  )
  expect(body.failed).toBe('validation')
  expect(body.responses[0]).toBeNull()
  expect(body.responses[1]).toMatchObject({ status: 400, body: { code: 'rest_invalid_param' }, headers: [] })
  expect((await ask(`${site.rest}/site/v2/posts?slug=never`)).body).toEqual([])
})

test('an item cannot sign in for itself', async () => {
  const item = {
    path: '/site/v2/posts/4',
    method: 'PUT',
    body: { title: 'x' },
    headers: { Authorization: admin },
  }
  const { status, body } = await ask(`${site.rest}/batch/v1`, { method: 'POST', body: { requests: [item] } })
  expect([status, body.responses[0].status, body.responses[0].body.code]).toEqual([
    207,
    401,
    'rest_cannot_edit',
  ])
})

test('an item that asks for the unlisted routes is run as well', async () => {
  const { body } = await batch([{ path: '/site/v2/categories', body: { name: 'From a batch' } }])
  expect(body.responses[0]).toMatchObject({ status: 201, body: { slug: 'from-a-batch' } })
})
