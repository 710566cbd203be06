import { expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

/** A post has the title that it was given last. */
const site = (): Script => {
  let title = 'first'
  return ({ method, content }, wire) => {
    const body = content.length > 0 ? JSON.parse(content.toString()) : {}
    if (method !== 'GET') title = body.title ?? title
    wire.respond({ status: 200, headers: json, content: `{"id":77,"title":${JSON.stringify(title)}}` })
  }
}

const start = async (): Promise<void> => {
  origin = await startOrigin(site())
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
    },
  })
}

type Reply = { status: number; body: { code?: string; [name: string]: unknown } }

const responses = async (
  requests: readonly unknown[],
  headers?: Record<string, string>,
  more: object = {},
): Promise<Reply[]> => {
  const response = await postBatch(gateway, { requests, ...more }, headers)
  expect(response.status).toBe(207)
  return ((await response.json()) as { responses: Reply[] }).responses
}

const sent = (): string[] => origin.received.map(({ method, target }) => `${method} ${target.slice(18)}`)
const get = (path: string, more: object = {}) => ({ method: 'GET', path: `/site/v2${path}`, ...more })
const put = (path: string, body: object, more: object = {}) => ({
  method: 'PUT',
  path: `/site/v2${path}`,
  body,
  ...more,
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
  const replies = await responses([get('/posts/1'), put('/posts/1', { title: 'second' }), get('/posts/1')])
  expect(replies.map(({ body }) => body['title'])).toEqual(['first', 'second', 'second'])
  expect(sent()).toEqual(['GET /wp/v2/posts/1', 'PUT /wp/v2/posts/1', 'GET /wp/v2/posts/1'])
})

test('references, dependencies, services and dry runs have no effect, as in WordPress', async () => {
  await start()
  const replies = await responses(
    [
      put('/posts/1', { title: 'x' }, { id: 'a', service: 'other' }),
      put('/posts/2', { title: 'y' }, { dependsOn: ['b'] }),
    ],
    {},
    { extensions: true, dryRun: true },
  )
  expect(replies.map(({ status }) => status)).toEqual([200, 200])
  expect(sent()).toHaveLength(2)
})
