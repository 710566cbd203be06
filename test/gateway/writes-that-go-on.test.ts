import { beforeEach, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** A program that shows its progress: `begun`, and `done` when it has changed something; reads show the version. */
let origin: Origin
let gateway: TestGateway
let version: number
let goOn: Latch

const heads = {
  'of known length': ['Content-Length: 9\r\n\r\nbegun', 'done'],
  'in chunks': ['Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n', '4\r\ndone\r\n0\r\n\r\n'],
} as const

const start = async (
  [begin, end]: readonly [string, string],
  more: readonly string[] = [],
): Promise<void> => {
  origin = await startOrigin(async ({ method }, wire) => {
    if (method === 'GET') {
      const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60' }
      wire.respond({ headers, content: `[{"id":${version}}]` })
      return
    }
    wire.write(['HTTP/1.1 200 OK', ...more, begin].join('\r\n'))
    await goOn.opened
    version += 1
    wire.write(end)
  })
  gateway = await startTestGateway({
    services: {
      pages: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
      site: siteService(origin.origin),
    },
  })
}
beforeEach(() => {
  version = 1
  goOn = createLatch()
})
closeAfterEach(() => [gateway, origin])

const post = (): Promise<Response> => fetch(`${gateway.publicAddress}/import`, { method: 'POST', body: 'x' })
const read = async (path: string): Promise<string> => (await fetch(gateway.publicAddress + path)).text()
const paths = ['/import', '/index.php/site-json/site/v2/posts'] as const
const readAll = (): Promise<readonly string[]> => Promise.all(paths.map(read))

test.each(Object.entries(heads))(
  'what a write changes while its response arrives is shown by every read after the end of the response: %s',
  async (_, parts) => {
    await start(parts)
    const response = await post()
    expect(await readAll()).toEqual(['[{"id":1}]', '[{"id":1}]'])
    goOn.open()
    expect(await response.text()).toBe('begundone')
    expect(await readAll()).toEqual(['[{"id":2}]', '[{"id":2}]'])
  },
)

test.each(Object.entries(heads))(
  'a representation that a POST responds with is stored when its end has arrived: %s',
  async (_, parts) => {
    await start(parts, ['Content-Location: /import', 'Cache-Control: max-age=60'])
    const response = await post()
    await readAll()
    goOn.open()
    await response.text()
    expect(await readAll()).toEqual(['begundone', '[{"id":2}]'])
  },
)

test('a write whose client leaves before the end of the response invalidates once more', async () => {
  await start(heads['in chunks'])
  const response = await post()
  await readAll()
  version += 1
  await response.body?.cancel()
  await expect.poll(readAll).toEqual(['[{"id":2}]', '[{"id":2}]'])
})
