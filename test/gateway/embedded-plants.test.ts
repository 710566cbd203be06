import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream, SeenRequest } from '../../demo/embedded-server.ts'
import { ask, startPlants } from '../demo/wired-upstreams.ts'

const seen: SeenRequest[] = []
let store: EmbeddedUpstream
beforeAll(async () => {
  store = await startPlants({ onRequest: (request) => seen.push(request) })
})
afterAll(() => store.close())

const as = 'Bearer any-token'
const plants = (path = ''): string => `${store.origin}/plants${path}`

test.each([
  ['no credential', undefined],
  ['an empty token', 'Bearer '],
  ['another scheme', 'Basic YTpi'],
])('%s is answered 401 with a challenge and the plant error', async (_what, credential) => {
  const reply = await ask(plants(), credential === undefined ? {} : { as: credential })
  expect(reply.status).toBe(401)
  expect(reply.headers.get('www-authenticate')).toBe('Bearer')
  expect(reply.body).toEqual({ error: 401, message: expect.any(String) })
})

test('a list is an array of plants without identifiers, cut by limit', async () => {
  const all = await ask(plants(), { as })
  expect(all.status).toBe(200)
  expect(all.body).toHaveLength(20)
  for (const plant of all.body) expect(Object.keys(plant)).not.toContain('id')
  expect((await ask(plants('?limit=3'), { as })).body).toEqual(all.body.slice(0, 3))
  expect((await ask(plants('?limit=0'), { as })).status).toBe(400)
})

test('a plant is created, refused a second time, deleted, and gone', async () => {
  const created = await ask(plants(), { method: 'POST', as, body: { id: 500, name: 'Fig', tag: 'tree' } })
  expect(created.status).toBe(200)
  expect(created.body).toEqual({ name: 'Fig', tag: 'tree' })
  const again = await ask(plants(), { method: 'POST', as, body: { id: 500, name: 'Other' } })
  expect(again.status).toBe(409)
  expect(again.body.error).toBe(409)
  const gone = await ask(plants('/500'), { method: 'DELETE', as })
  expect([gone.status, gone.text]).toEqual([204, ''])
  expect((await ask(plants('/500'), { method: 'DELETE', as })).status).toBe(404)
})

test('identifiers of 64 bits are told apart where numbers would be rounded', async () => {
  const headers = { 'Content-Type': 'application/json' }
  const post = (id: string) =>
    ask(plants(), { method: 'POST', as, headers, body: `{"id": ${id}, "name": "Big"}` })
  expect((await post('9007199254740993')).status).toBe(200)
  expect((await post('9007199254740992')).status).toBe(200)
  expect((await post('9007199254740993')).status).toBe(409)
  expect((await ask(plants('/9007199254740992'), { method: 'DELETE', as })).status).toBe(204)
  expect((await ask(plants('/9007199254740992'), { method: 'DELETE', as })).status).toBe(404)
  expect((await post('9223372036854775807')).status).toBe(200)
  expect((await post('9223372036854775808')).status).toBe(400)
})

test('received requests are reported before the response', async () => {
  seen.length = 0
  await ask(plants('?limit=1'), { as })
  expect(seen.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /plants?limit=1'])
})
