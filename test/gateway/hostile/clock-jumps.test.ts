import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'

// The wall clock of the machine is set back or forward while the gateway runs. Durations are measured by the monotonic clock.

const hour = 3_600_000
const year = 365 * 24 * hour
const jumps = [-30 * year, -year, -hour, hour, year, 30 * year]

const realNow = Date.now
let shiftMs = 0
const jump = (ms: number): void => {
  shiftMs += ms
}

type Tree = { readonly [key: string]: unknown }

const root = '/index.php/site-json'
let version = 0
let origin: Origin
let gateway: TestGateway | undefined

/** An upstream of which the contents tell versions apart. */
const versions: Script = ({ target, method }, wire) => {
  if (target.includes('/posts/404')) return wire.respond({ status: 404, fields: json, content: '{}' })
  if (method === 'GET') version += 1
  return wire.respond({ fields: json, content: JSON.stringify({ version }) })
}
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

beforeEach(async () => {
  shiftMs = 0
  version = 0
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + shiftMs)
  origin = await startOrigin(versions)
})
afterEach(async () => {
  await gateway?.close()
  gateway = undefined
  await origin.close()
  vi.restoreAllMocks()
})

const start = async (service: Tree = {}, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, service) }, ...more })
}
type Got = { readonly status: number; readonly cache: string; readonly age: number; readonly text: string }
const get = async (path = '/site/v2/posts'): Promise<Got> => {
  const response = await fetch(`${gateway?.publicAddress}${root}${path}`)
  const text = await response.text()
  return {
    status: response.status,
    cache: response.headers.get('cache-status') ?? '',
    age: Number(response.headers.get('age') ?? 0),
    text,
  }
}

describe.each(jumps)('a wall clock that jumps by %i ms', (ms) => {
  test('lets a caller over a rate limit ask again when the window is over, and not before', async () => {
    await start({}, { rateLimits: [{ name: 'all', service: 'site', max: 1, window: '500ms' }] })
    expect((await get()).status).toBe(200)
    expect((await get()).status).toBe(429)
    jump(ms)
    expect((await get()).status).toBe(429)
    await pause(600)
    expect((await get()).status).toBe(200)
  })
})
