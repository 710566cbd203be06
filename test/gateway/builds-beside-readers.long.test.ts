import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { type Page, type Site, SiteBuilder } from '../support/site-builder.ts'

const root = '/index.php/site-json/site/v2'
const pages = 500
const maxConcurrent = 4
/** Of each response; with them the pages of the build alone would fill the cache three times. */
const length = 48 * 1024
/** What readers read: three quarters of the cache. */
const used = 120
const menu = `${root}/pages/1000`

const site: Site = new Map(
  Array.from({ length: pages }, (_, at): [string, Page] => [
    `${at}.html`,
    async (read) => JSON.stringify([await read(menu), await read(`${root}/posts/${at + 1}`)]),
  ]),
)

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin(({ target }, wire) => {
    const id = Number(/\/(\d+)$/.exec(target)?.[1])
    const content = JSON.stringify({ id, type: 'post', status: 'publish', content: 'x'.repeat(length) })
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content })
  })
  gateway = await startTestGateway({
    cache: { maxBytes: '8MiB' },
    services: {
      blog: siteService(origin.origin, {
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', maxConcurrent, clientShare: 1 },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
      }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

const begin = async (): Promise<string> => {
  const response = await fetch(`${gateway.adminAddress}/builds`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{}',
  })
  return ((await response.json()) as { readonly build: string }).build
}

/** Cache-Status of a reader's request. */
const read = async (path: string): Promise<string> => {
  const response = await fetch(gateway.publicAddress + path)
  expect(response.status).toBe(200)
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}
const ofReader = (nth: number): string => `${root}/posts/${10_000 + nth}`
const readAll = async (): Promise<readonly string[]> => {
  const statuses: string[] = []
  for (let nth = 0; nth < used; nth += 1) statuses.push(await read(ofReader(nth)))
  return statuses
}

test('a build of more than the cache holds evicts nothing that readers use, and stays within maxConcurrent', async () => {
  await read(menu)
  await readAll()
  expect(await gateway.metric('trellis_cache_evictions_total')).toBe(0)
  const { script } = origin
  // Nothing is answered before as many are in flight as may be.
  origin.script = async (request, wire, count) => {
    await origin.until(() => origin.maxInFlight >= maxConcurrent)
    await pause(1)
    await script(request, wire, count)
  }
  const builder = new SiteBuilder(site)
  const before = origin.received.length
  const [made, ...during] = await Promise.all([
    builder.build(builder.all(), { origin: gateway.publicAddress, build: await begin(), concurrency: 16 }),
    readAll(),
    readAll(),
  ])
  expect(made).toBe(pages)
  expect(origin.received).toHaveLength(before + pages)
  expect(origin.maxInFlight).toBe(maxConcurrent)
  for (const statuses of [...during, await readAll()])
    expect(statuses.filter((status) => !status.includes('; hit'))).toEqual([])
  expect(await read(menu)).toContain('; hit')
  expect(await gateway.metric('trellis_cache_evictions_total')).toBe(0)
  origin.script = script
})

test('readers and builds share the upstream request of a URL', async () => {
  const { script } = origin
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  origin.script = async (request, wire, count) => {
    await released
    await script(request, wire, count)
  }
  const before = origin.received.length
  const path = `${root}/posts/20000`
  const headers = { 'Trellis-Build': await begin() }
  const requests = [{ headers }, {}, { headers: { 'Trellis-Build': await begin() } }, {}].map(
    async (init) => {
      const response = await fetch(gateway.publicAddress + path, init)
      await response.arrayBuffer()
      return response.status
    },
  )
  await origin.until(() => origin.received.length > before)
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBeGreaterThanOrEqual(4)
  release()
  expect(await Promise.all(requests)).toEqual([200, 200, 200, 200])
  expect(origin.received).toHaveLength(before + 1)
  origin.script = script
})
