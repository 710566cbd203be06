import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'

let upstream: HttpServer
let gateway: TestGateway
let content = 'first'

beforeAll(async () => {
  upstream = await startHttpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end(content)
  })
  gateway = await startTestGateway({
    services: {
      api: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [upstream.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h', staleWhileRevalidate: '1h' }] },
      },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
})

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
