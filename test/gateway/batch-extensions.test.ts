import { afterEach, expect, test } from 'vitest'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let plants: Origin
let gateway: TestGateway
afterEach(async () => {
  await gateway?.close()
  await origin?.close()
  await plants?.close()
})

/** A post has an id of 64 bits, a slug that is no plain segment, and the title it was given last. */
const site = (): Script => {
  let title = 'first'
  return ({ method, target, content }, wire) => {
    const body = content.length > 0 ? JSON.parse(content.toString()) : {}
    if (method !== 'GET') title = body.title ?? title
    if (target.includes('/posts/404')) {
      wire.respond({ status: 404, fields: json, content: '{"code":"rest_post_invalid_id"}' })
      return
    }
    const status = method === 'POST' && target.endsWith('/posts') ? 201 : 200
    wire.respond({
      status,
      fields: json,
      content: `{"id":77,"big":9007199254740993,"slug":"a/b","meta":{"n":[1,2]},"title":${JSON.stringify(title)}}`,
    })
  }
}

const start = async (batch: Record<string, unknown> = {}, script: Script = site()): Promise<void> => {
  origin = await startOrigin(script)
  plants = await startOrigin((_, wire) =>
    wire.respond({ status: 200, fields: json, content: '{"name":"fern"}' }),
  )
  gateway = await startTestGateway({
    services: {
      plants: { contract: 'plants', mount: '/store', upstream: { targets: [plants.origin] } },
      site: siteService(origin.origin, {
        batch: { services: ['plants'], ...batch },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
      }),
    },
  })
}

type Answer = { status: number; body: { code?: string; [name: string]: unknown } }

const send = async (
  requests: readonly unknown[],
  more: object = {},
  headers: Record<string, string> = {},
) => {
  const answer = await postBatch(gateway, { extensions: true, requests, ...more }, headers)
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text }
}

const responses = async (
  requests: readonly unknown[],
  headers?: Record<string, string>,
): Promise<Answer[]> => {
  const { status, text } = await send(requests, {}, headers)
  expect([status, text]).toEqual([207, expect.anything()])
  return JSON.parse(text).responses
}

const sent = (): string[] => origin.received.map(({ method, target }) => `${method} ${target.slice(18)}`)
const get = (path: string, more: object = {}) => ({ method: 'GET', path: `/site/v2${path}`, ...more })
const put = (path: string, body: object, more: object = {}) => ({
  method: 'PUT',
  path: `/site/v2${path}`,
  body,
  ...more,
})

test.each([
  ['the request does not ask', 'on-request', { extensions: false }],
  ['the configuration says no', 'off', { extensions: true }],
])('a GET is refused as WordPress refuses it when %s', async (_, extensions, more) => {
  await start({ extensions })
  const { status, text } = await send([get('/posts/1')], more)
  expect([status, JSON.parse(text).code]).toEqual([400, 'rest_invalid_param'])
  expect(origin.received).toEqual([])
})

test('extensions that the configuration enables need no request header', async () => {
  await start({ extensions: 'on' })
  const { status } = await send([get('/posts/1')], { extensions: undefined })
  expect(status).toBe(207)
})

test('identical reads are one request, the next batch gets them from the cache', async () => {
  await start()
  const reads = [get('/posts/1'), get('/posts/1'), get('/posts/1?_fields=id')]
  expect((await responses(reads)).map(({ status }) => status)).toEqual([200, 200, 200])
  expect(sent().sort()).toEqual(['GET /wp/v2/posts/1', 'GET /wp/v2/posts/1?_fields=id'])
  await responses(reads)
  expect(origin.received).toHaveLength(2)
})

test('identical reads with a credential are also one request', async () => {
  await start()
  await responses([get('/posts/1'), get('/posts/1'), get('/posts/2')], { Authorization: 'Basic eDp5' })
  expect(sent().sort()).toEqual(['GET /wp/v2/posts/1', 'GET /wp/v2/posts/2'])
})

test('a read after a write in the same batch sees the write, and one before it does not', async () => {
  await start()
  await responses([get('/posts/1')])
  const answers = await responses([get('/posts/1'), put('/posts/1', { title: 'second' }), get('/posts/1')])
  expect(answers.map(({ body }) => body['title'])).toEqual(['first', 'second', 'second'])
  expect(sent()).toEqual(['GET /wp/v2/posts/1', 'PUT /wp/v2/posts/1', 'GET /wp/v2/posts/1'])
})

test('an item that depends on a failed item is not sent and gets 424, and so do items that depend on that one', async () => {
  await start()
  const answers = await responses([
    put('/posts/404', { title: 'x' }, { id: 'gone' }),
    put('/posts/1', { title: 'y' }, { id: 'next', dependsOn: ['gone'] }),
    put('/posts/2', { title: 'z' }, { dependsOn: ['next'] }),
    put('/posts/3', { title: 'w' }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([404, 424, 424, 200])
  expect(answers[1]?.body.code).toBe('trellis_failed_dependency')
  expect(sent().sort()).toEqual(['PUT /wp/v2/posts/3', 'PUT /wp/v2/posts/404'])
})

test('an item that was refused here has failed as well', async () => {
  await start()
  const answers = await responses([
    put('/posts/1', { status: 'nonsense' }, { id: 'bad' }),
    put('/posts/2', { title: 'y' }, { dependsOn: ['bad'] }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([400, 424])
  expect(origin.received).toEqual([])
})

test('a reference takes the type of its value, and in the path one encoded segment', async () => {
  await start({ split: 'item' })
  const answers = await responses([
    { path: '/site/v2/posts', body: { title: 'new' }, id: 'new' },
    put('/posts/{new#/body/id}?_fields=id', {
      featured_media: { $ref: 'new#/body/meta/n/1' },
      title: { $ref: 'new#/body/title' },
    }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([201, 200])
  expect(sent()).toEqual(['POST /wp/v2/posts', 'PUT /wp/v2/posts/77?_fields=id'])
  expect(origin.received[1]?.content.toString()).toBe('{"featured_media":2,"title":"new"}')
})

test('an integer of 64 bits comes through a reference as it is', async () => {
  await start()
  await responses([get('/posts/1', { id: 'a' }), put('/posts/2', { meta: { n: { $ref: 'a#/body/big' } } })])
  expect(origin.received[1]?.content.toString()).toBe('{"meta":{"n":9007199254740993}}')
})

test.each([
  [
    'a value that the row refuses',
    put('/posts/2', { author: { $ref: 'a#/body/slug' } }),
    400,
    'rest_invalid_param',
  ],
  [
    'a value that is not there',
    put('/posts/2', { title: { $ref: 'a#/body/none' } }),
    424,
    'trellis_unresolved_reference',
  ],
  ['a text with a slash in the path', put('/posts/{a#/body/slug}', { title: 'x' }), 404, 'rest_no_route'],
  [
    'an object in the path',
    put('/posts/{a#/body/meta}', { title: 'x' }),
    424,
    'trellis_unresolved_reference',
  ],
])('%s: the resolved item is checked, and not sent', async (_, item, status, code) => {
  await start()
  const answers = await responses([get('/posts/1', { id: 'a' }), item])
  expect([answers[1]?.status, answers[1]?.body.code]).toEqual([status, code])
  expect(sent()).toEqual(['GET /wp/v2/posts/1'])
})

test.each([
  ['an item that names itself', [put('/posts/1', {}, { id: 'a', dependsOn: ['a'] })]],
  ['a later item', [put('/posts/1', {}, { dependsOn: ['b'] }), put('/posts/2', {}, { id: 'b' })]],
  [
    'two that name each other',
    [put('/posts/1', {}, { id: 'a', dependsOn: ['b'] }), put('/posts/2', {}, { id: 'b', dependsOn: ['a'] })],
  ],
  ['an unknown id', [put('/posts/1', { title: { $ref: 'x#/body/id' } })]],
  ['one id twice', [put('/posts/1', {}, { id: 'a' }), put('/posts/2', {}, { id: 'a' })]],
  ['an id with other characters', [put('/posts/1', {}, { id: 'a b' })]],
  ['a reference that is none', [put('/posts/1', {}, { id: 'a' }), put('/posts/2', { title: { $ref: 'a' } })]],
  [
    'a reference below 33 lists',
    [
      put('/posts/1', {}, { id: 'a' }),
      put('/posts/2', { meta: JSON.parse(`${'['.repeat(32)}{"$ref":"a#/body/id"}${']'.repeat(32)}`) }),
    ],
  ],
  [
    'more than 32 references',
    [
      put('/posts/1', {}, { id: 'a' }),
      put('/posts/{a#/body/id}', { meta: Array(32).fill({ $ref: 'a#/body/id' }) }),
    ],
  ],
  ['a reference in a query', [put('/posts/1', {}, { id: 'a' }), get('/posts?slug={a#/body/slug}')]],
  ['a service that may not be addressed', [get('/x', { service: 'admin' })]],
])('%s is a 400 for the whole batch, and nothing is sent', async (_, requests) => {
  await start()
  const { status, text } = await send(requests)
  expect([status, JSON.parse(text).code]).toEqual([400, 'rest_invalid_param'])
  expect(origin.received).toEqual([])
})

test('an item for another service gets there with its own credential and never with that of the batch', async () => {
  await start()
  const answers = await responses(
    [
      {
        method: 'POST',
        path: '/plants',
        body: { id: 9, name: 'fern' },
        service: 'plants',
        headers: { Authorization: 'Bearer p' },
        id: 'fern',
      },
      { method: 'GET', path: '/plants', service: 'plants' },
      put('/posts/1', { title: { $ref: 'fern#/body/name' } }, { headers: { Authorization: 'Basic no' } }),
    ],
    { Authorization: 'Basic eDp5', Cookie: 'wordpress_logged_in_x=1' },
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 200])
  expect(plants.received.map(({ fields }) => [fields['authorization'], fields['cookie']])).toEqual([
    ['Bearer p', undefined],
  ])
  expect(origin.received.map(({ fields }) => fields['authorization'])).toEqual(['Basic eDp5'])
  expect(origin.received[0]?.content.toString()).toBe('{"title":"fern"}')
})

test('a dry run answers what would run and after what, and sends nothing', async () => {
  await start()
  const requests = [
    put('/posts/1', { title: 'x' }, { id: 'a' }),
    get('/posts/1?per_page=2'),
    put('/posts/2', { title: { $ref: 'a#/body/title' } }),
    { path: '/site/v2/nowhere' },
  ]
  const { status, text } = await send(requests, { dryRun: true })
  expect(status).toBe(200)
  expect(JSON.parse(text).plan).toMatchObject([
    { index: 0, id: 'a', runs: true, method: 'PUT', path: '/site/v2/posts/1', after: [] },
    { index: 1, runs: true, method: 'GET', after: [0] },
    { index: 2, runs: true, refersTo: [0], after: [0, 1] },
    { index: 3, runs: false, status: 404 },
  ])
  expect(origin.received).toEqual([])
})
