import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'

let upstream: HttpServer
let gateway: TestGateway
let content = 'first'
let isFailing = false

beforeAll(async () => {
  upstream = await startHttpServer((request, response) => {
    if (isFailing) {
      if (request.url?.endsWith('reset') === true) response.destroy()
      else response.writeHead(503).end()
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end(content)
  })
  gateway = await startTestGateway({
    services: {
      api: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [upstream.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h', staleWhileRevalidate: '1h', staleIfError: '1h' }] },
      },
      wide: {
        contract: 'open',
        mount: '/wide',
        upstream: { targets: [upstream.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
      site: {
        contract: 'site',
        mount: '/site-json',
        upstream: { targets: [upstream.origin] },
        unlistedRoutes: 'refuse',
        discovery: { source: 'static', identity: { name: 'Site' } },
      },
    },
  })
})
closeAfterAll(() => [gateway, upstream])

const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
  const response = await fetch(gateway.adminAddress + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await response.json()) as Record<string, unknown>
}

test('what is stored since before a soft purge does not prove that a read of a build is as it was', async () => {
  const { build } = await post('/builds', {})
  await fetch(`${gateway.publicAddress}/1`, { headers: { 'Trellis-Build': String(build) } })
  content = 'second'
  expect(await post('/cache/purge', { prefix: '/1', mode: 'soft' })).toMatchObject({ entries: 1 })
  expect(await (await fetch(`${gateway.adminAddress}/builds/${build}`)).json()).toMatchObject({
    changed: ['/1'],
  })
})

test.each(['/fails/error', '/fails/reset'])(
  'a fetch of %s that fails after a soft purge clears no doubt, and neither does what is served stale',
  async (path) => {
    const { build } = await post('/builds', {})
    const read = async (): Promise<number> =>
      (await fetch(gateway.publicAddress + path, { headers: { 'Trellis-Build': String(build) } })).status
    const changed = async (): Promise<unknown> =>
      ((await (await fetch(`${gateway.adminAddress}/builds/${build}`)).json()) as { changed: unknown })
        .changed
    expect(await read()).toBe(200)
    expect(await changed()).toEqual([])
    isFailing = true
    expect(await post('/cache/purge', { prefix: path, mode: 'soft' })).toMatchObject({ entries: 1 })
    expect(await changed()).toEqual([path])
    expect(await read()).toBe(200)
    expect(await changed()).toEqual([path])
    isFailing = false
  },
)

test('what the gateway refuses, and a GET that may write, count as changed: a page may have been made of them', async () => {
  const { build } = await post('/builds', {})
  const statusOf = async (path: string): Promise<number> =>
    (await fetch(gateway.publicAddress + path, { headers: { 'Trellis-Build': String(build) } })).status
  expect(await statusOf('/site-json/site/v2/nothing')).toBe(404)
  expect(await statusOf('/site-json/site/v2/posts?per_page=0')).toBe(400)
  expect(await statusOf('/page?_wpnonce=1')).toBe(200)
  expect(await (await fetch(`${gateway.adminAddress}/builds/${build}`)).json()).toMatchObject({
    changed: ['/page?_wpnonce=1', '/site-json/site/v2/nothing', '/site-json/site/v2/posts?per_page=0'],
  })
})

test('only-if-cached that finds nothing counts as changed', async () => {
  const { build } = await post('/builds', {})
  const response = await fetch(`${gateway.publicAddress}/wide/1`, {
    headers: { 'Trellis-Build': String(build), 'Cache-Control': 'only-if-cached' },
  })
  expect(response.status).toBe(504)
  expect(await (await fetch(`${gateway.adminAddress}/builds/${build}`)).json()).toMatchObject({
    changed: ['/wide/1'],
  })
})
