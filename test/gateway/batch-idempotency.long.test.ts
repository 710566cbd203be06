import { beforeEach, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
let answerable: Promise<void>

beforeEach(async () => {
  answerable = Promise.resolve()
  let number = 0
  origin = await startOrigin(async (_, wire) => {
    await answerable
    number += 1
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: `{"number":${number}}` })
  })
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.1/32'],
    services: { site: siteService(origin.origin, { batch: { split: 'item' } }) },
  })
})
closeAfterEach(() => [gateway, origin])

const one = [{ method: 'PUT', path: '/site/v2/posts/1', body: { title: 'x' } }]

const send = async (
  key: string,
  headers: Record<string, string> = {},
  requests: unknown = one,
  signal?: AbortSignal,
) => {
  const response = await postBatch(gateway, { requests }, { 'Idempotency-Key': key, ...headers }, signal)
  return { status: response.status, text: await response.text() }
}

test('the same request with the same key gets the same response, and the upstream sees it once', async () => {
  const first = await send('"k"')
  expect(await send('"k"')).toEqual(first)
  expect(first.text).toContain('"number":1')
  expect(origin.received).toHaveLength(1)
  // The key is not the upstream's business: it would mean something else there.
  expect(origin.received[0]?.headers['idempotency-key']).toBeUndefined()
})

test.each([
  ['another setting', { batch: { split: 'item' }, compress: false }],
  ['other bounds for keys', { batch: { split: 'item', idempotency: { ttl: '2h' } } }],
])('a reload with %s forgets no key', async (_, settings) => {
  const first = await send('"k"')
  await gateway.put({
    trustedProxies: ['127.0.0.1/32'],
    services: { site: siteService(origin.origin, settings) },
  })
  expect(await send('"k"')).toEqual(first)
  expect(origin.received).toHaveLength(1)
})

test('another request with that key is 422 and runs nothing', async () => {
  await send('"k"')
  const { status, text } = await send('"k"', {}, [{ ...one[0], body: { title: 'y' } }])
  expect([status, JSON.parse(text).code]).toEqual([422, 'trellis_idempotency_key_reused'])
  expect(origin.received).toHaveLength(1)
})

test.each([
  ['credential', { Authorization: 'Basic eDp5' }],
  ['cookie', { Cookie: 'a=b' }],
  ['token', { 'X-Auth-Token': 'a' }],
  ['key', { 'X-Api-Key': 'a' }],
  ['session', { 'X-Session-Id': 'a' }],
  ['cart', { 'Cart-Token': 'a' }],
  ['user', { 'X-User': 'a' }],
])('a caller with another %s has other keys', async (_, headers) => {
  await send('"k"')
  expect((await send('"k"', headers)).text).toContain('"number":2')
})

test('a caller with a session has the same keys at another address', async () => {
  const cookie = { Cookie: 'PHPSESSID=abc; pll_language=de' }
  const first = await send('"k"', { ...cookie, 'X-Forwarded-For': '192.0.2.1' })
  expect(await send('"k"', { ...cookie, 'X-Forwarded-For': '192.0.2.2' })).toEqual(first)
})

test('callers at different addresses have keys of their own when their cookies say nothing about them', async () => {
  const cookie = { Cookie: 'cookieconsent=yes; pll_language=de' }
  const [first, second] = [{ 'X-Forwarded-For': '192.0.2.1' }, { 'X-Forwarded-For': '192.0.2.2' }]
  await send('"k"', { ...cookie, ...first })
  expect((await send('"k"', { ...cookie, ...second })).text).toContain('"number":2')
  expect((await send('"k"', first)).text).toContain('"number":1')
})

test('a key in flight gets 409, and its batch continues when the client disconnects', async () => {
  let release = (): void => {}
  answerable = new Promise((resolve) => {
    release = resolve
  })
  const client = new AbortController()
  const gone = send('"k"', {}, [...one, { ...one[0], path: '/site/v2/posts/1' }], client.signal)
  gone.catch(() => {})
  await origin.until(() => origin.received.length === 1)
  client.abort()
  const requests = [...one, { ...one[0], path: '/site/v2/posts/1' }]
  const { status, text } = await send('"k"', {}, requests)
  expect([status, JSON.parse(text).code]).toEqual([409, 'trellis_idempotency_key_in_flight'])
  release()
  await origin.until(() => origin.received.length === 2)
  await expect.poll(async () => (await send('"k"', {}, requests)).status).toBe(207)
  expect(origin.received).toHaveLength(2)
})

test('a batch without any executed item leaves its key free', async () => {
  expect((await send('"k"', {}, 'nonsense')).status).toBe(400)
  expect((await send('"k"')).status).toBe(207)
})

test('an invalid key gets 400', async () => {
  const { status, text } = await send('"a')
  expect([status, JSON.parse(text).code]).toEqual([400, 'trellis_idempotency_key_malformed'])
})

test('each item of a batch has the credentials of the batch', async () => {
  const credentials = {
    'X-Auth-Token': 'a',
    'X-Api-Key': 'b',
    'X-Session-Id': 'c',
    'Cart-Token': 'd',
    'X-User': 'e',
  }
  const planted = { 'X-User': 'planted', 'X-Auth-Token': 'planted' }
  const items = [1, 2].map((id) => ({
    method: 'PUT',
    path: `/site/v2/posts/${id}`,
    body: {},
    headers: planted,
  }))
  await send('"items"', credentials, items)
  expect(origin.received).toHaveLength(2)
  for (const { headers } of origin.received)
    for (const [name, value] of Object.entries(credentials)) expect(headers[name.toLowerCase()]).toBe(value)
})
