import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** Reads show the version. A write breaks off without a response, and commits when `commit` opens. */
let origin: Origin
let gateway: TestGateway
let version: number
let commit: Latch

const cache = { rules: [{ match: 'GET /**', ttl: '1h' }] }
/** Nothing ends because a busy machine is late. */
const timeouts = { headers: '1m', idle: '1m', total: '1m' }
const pages = (more: Record<string, unknown> = {}) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin], timeouts },
  cache,
  ...more,
})
const site = (more: Record<string, unknown> = {}) => siteService(origin.origin, { cache, ...more })

beforeEach(async () => {
  version = 1
  commit = createLatch()
  origin = await startOrigin(async ({ method }, wire) => {
    if (method === 'GET')
      return wire.respond({
        headers: { 'Content-Type': 'application/json' },
        content: `[{"id":${version}}]`,
      })
    wire.reset()
    await commit.opened
    version += 1
  })
})
afterEach(async () => {
  await gateway.close()
  await origin.close()
})

const read = async (path: string): Promise<readonly [string, string]> => {
  const response = await fetch(gateway.publicAddress + path)
  return [await response.text(), response.headers.get('cache-status') ?? '']
}

const list = '/index.php/site-json/site/v2/posts'
describe('a write of unknown outcome, and then a reload', () => {
  test.each([
    ['renames the service', () => ({ renamed: pages() }), '/import'],
    ['adds a site at its upstream', () => ({ pages: pages(), site: site() }), list],
    [
      'adds another open service',
      () => ({ pages: pages(), more: pages({ mount: '/more' }) }),
      '/more/import',
    ],
    ['moves the service', () => ({ pages: pages({ mount: '/moved' }) }), '/moved/import'],
    [
      'changes its base path',
      () => ({
        pages: pages({ mount: '/', upstream: { targets: [origin.origin], basePath: '/import', timeouts } }),
      }),
      '/',
    ],
    [
      'changes a rule',
      () => ({ pages: pages({ cache: { rules: [{ match: 'GET /**', ttl: '2h' }] } }) }),
      '/import',
    ],
    ['makes a site of it', () => ({ pages: site() }), list],
  ])('%s', async (_, services, path) => {
    gateway = await startTestGateway({ services: { pages: pages() } })
    await fetch(`${gateway.publicAddress}/import`, { method: 'POST', body: 'x' })
    expect(await gateway.put({ services: services() })).toMatchObject({ kind: 'applied' })
    for (let times = 0; times < 2; times += 1) expect((await read(path))[1]).toContain('unsettled')
    commit.open()
    await expect.poll(() => version).toBe(2)
    expect((await read(path))[0]).toBe('[{"id":2}]')
  })
})
