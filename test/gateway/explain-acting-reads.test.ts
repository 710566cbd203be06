import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// A GET that changes something counts as a write, and `explain` says so.

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_request, wire) => wire.respond({ content: '{}' }))
  const upstream = (basePath: string) => ({ targets: [origin.origin], basePath })
  gateway = await startTestGateway({
    services: {
      site: { contract: 'site', mount: '/wp-json', names: 'same', upstream: upstream('/wp-json') },
      pages: { contract: 'open', mount: '/', upstream: upstream('/') },
    },
  })
})
closeAfterAll(() => [gateway, origin])

test.each([
  ['/wp-json/wp-block-editor/v1/navigation-fallback', 'write, by creating-read: invalidates'],
  ['/wp-cron.php', 'write, by cron: invalidates'],
  ['/wp-admin/edit.php?_wpnonce=1', 'write, by nonce: invalidates'],
  ['/wp-json/wp/v2/posts', expect.stringMatching(/^(?:read|bypass)/)],
  ['/a-page', expect.stringMatching(/^(?:read|bypass)/)],
])('GET %s: %s', async (url, cache) => {
  const response = await fetch(
    `${gateway.adminAddress}/explain?${new URLSearchParams({ method: 'GET', url })}`,
  )
  expect(((await response.json()) as { cache: unknown }).cache).toEqual(cache)
})

test.each([
  ['FETCH', '400: no HTTP method has this name'],
  ['TRACE', '404: TRACE is not routed, since its response would show what the gateway adds'],
  ['CONNECT', 'CONNECT asks for a tunnel: the connection is closed'],
])('explain says that a method which no service gets is refused: %s', async (method, refused) => {
  const response = await fetch(`${gateway.adminAddress}/explain?method=${method}&url=/a-page`)
  expect(await response.json()).toMatchObject({ refused })
})
