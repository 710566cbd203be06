import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeEach, describe, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json' }

type Tree = { readonly [key: string]: unknown }

let origin: Origin
let other: Origin
let gateway: TestGateway
beforeEach(async () => {
  origin = await startOrigin((_, wire) => wire.respond({ headers: json, content: '{"from":"one"}' }))
  other = await startOrigin((_, wire) => wire.respond({ headers: json, content: '{"from":"other"}' }))
})
closeAfterEach(() => [gateway, origin, other])

const open = (target: Origin, ...rules: readonly Tree[]): Tree => ({
  contract: 'open',
  mount: '/a',
  upstream: { targets: [target.origin] },
  cache: { rules },
})
const stored = (match: string, ttl = '60s', more: Tree = {}): Tree => ({ match, ttl, ...more })

const get = async (path: string): Promise<{ status: number; cache: string; text: string }> => {
  const response = await fetch(gateway.publicAddress + path)
  return {
    status: response.status,
    cache: response.headers.get('cache-status') ?? '',
    text: await response.text(),
  }
}
const isHit = async (path: string): Promise<boolean> => (await get(path)).cache.includes('hit')
const ready = async (): Promise<{ status: number; body: Record<string, unknown> }> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const post = (body = '{}'): Promise<Response> =>
  fetch(`${gateway.adminAddress}/reload`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  })

describe('a valid configuration', () => {
  test('takes effect at once and keeps the stored responses, connections and limits that it does not change', async () => {
    const services = {
      a: open(origin, stored('GET /x')),
      b: { ...open(other, stored('GET /**')), mount: '/b' },
    }
    // Without the line an idle connection is closed after a second.
    origin.script = (_, wire) => wire.respond({ headers: { ...json, 'Keep-Alive': 'timeout=20' } })
    gateway = await startTestGateway({ services })
    await get('/a/x')
    await get('/b/x')
    const { accepted } = origin
    const more = { ...services, b: { ...services.b, mount: '/c' } }
    expect(await gateway.put({ services: more })).toMatchObject({ kind: 'applied' })
    expect((await get('/b/x')).status).toBe(404)
    expect((await get('/c/x')).text).toBe('{"from":"other"}')
    expect(await isHit('/a/x')).toBe(true)
    await get('/a/y')
    expect(origin.accepted).toBe(accepted)
    expect(await gateway.metric('trellis_config_reloads_total', 'applied')).toBe(1)
    expect(await gateway.metric('trellis_config_last_reload_good')).toBe(1)
  })

  test('a service with a changed rule begins with an empty cache, others keep theirs', async () => {
    const services = (ttl: string): Tree => ({
      a: open(origin, stored('GET /x', ttl), stored('GET /y')),
      b: { ...open(origin, stored('GET /y')), mount: '/b' },
    })
    gateway = await startTestGateway({ services: services('1h') })
    for (const target of ['/a/x', '/a/y', '/b/y']) await get(target)
    await gateway.put({ services: services('30s') })
    expect(await isHit('/b/y')).toBe(true)
    expect((await get('/a/y')).cache).toContain('uri-miss')
    expect((await get('/a/x')).cache).toContain('uri-miss')
    expect((await get('/a/x')).cache).toMatch(/hit; ttl=(30|2\d)(\D|$)/)
  })

  test('a removed rule removes its stored responses; a new one begins without any', async () => {
    gateway = await startTestGateway({ services: { a: open(origin, stored('GET /x')) } })
    await get('/a/x')
    await gateway.put({ services: { a: open(origin, stored('GET /y')) } })
    expect((await get('/a/x')).cache).toContain('no-rule')
    await gateway.put({ services: { a: open(origin, stored('GET /x')) } })
    expect((await get('/a/x')).cache).toContain('uri-miss')
  })

  test('a new upstream removes all stored responses of the service', async () => {
    gateway = await startTestGateway({ services: { a: open(origin, stored('GET /x')) } })
    await get('/a/x')
    await gateway.put({ services: { a: open(other, stored('GET /x')) } })
    expect((await get('/a/x')).text).toBe('{"from":"other"}')
    await expect.poll(() => origin.open).toBe(0)
  })

  test('a request in flight finishes with the configuration it began with, and stores nothing under its rules', async () => {
    gateway = await startTestGateway({ services: { a: open(origin, stored('GET /x', '1h')) } })
    let release: (() => void) | undefined
    origin.script = async (_, wire) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      wire.respond({ headers: json, content: '{"from":"slow"}' })
    }
    const slow = get('/a/x')
    await origin.until(() => release !== undefined)
    await gateway.put({ services: { a: open(other, stored('GET /x', '30s')) } })
    expect((await get('/a/x')).text).toBe('{"from":"other"}')
    // A third one, which uses neither way: the first is still needed.
    await gateway.put({ services: { a: open(other, stored('GET /x', '31s')) } })
    release?.()
    expect(await slow).toMatchObject({ status: 200, text: '{"from":"slow"}' })
    expect((await get('/a/x')).text).toBe('{"from":"other"}')
    await expect.poll(() => origin.open).toBe(0)
  })

  test('a response that is fetched after a reload does not get the lifetime of the rules before it', async () => {
    const services = (ttl: string): Tree => ({
      a: {
        ...open(origin, stored('GET /x', ttl)),
        upstream: { targets: [origin.origin], retry: { attempts: 1 } },
      },
    })
    gateway = await startTestGateway({ services: services('1h') })
    let release: (() => void) | undefined
    origin.script = async (_, wire) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      // Cannot be shared with the waiting request, which fetches again.
      wire.respond({ headers: { ...json, 'Cache-Control': 'private' }, content: '{"from":"private"}' })
    }
    const leader = get('/a/x')
    await origin.until(() => release !== undefined)
    const follower = get('/a/x')
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(2)
    await gateway.put({ services: services('30s') })
    origin.script = (_, wire) => wire.respond({ headers: json, content: '{"from":"late"}' })
    release?.()
    await Promise.all([leader, follower])
    await pause(30)
    expect((await get('/a/x')).cache).not.toMatch(/ttl=3\d\d\d/)
    expect((await get('/a/x')).cache).toMatch(/hit; ttl=(30|2\d)(\D|$)/)
  })

  test('a response that an earlier request fetches from the earlier upstream is never one of the new upstream', async () => {
    const config = (target: Origin) => ({ services: { a: open(target, stored('GET /**')) } })
    gateway = await startTestGateway(config(origin))
    const [read, ended] = [createLatch(), createLatch()]
    origin.script = async ({ target }, wire, count) => {
      // Keeps the earlier configuration alive.
      if (target === '/long') await ended.opened
      if (count > 2) return wire.respond({ headers: json, content: '{"from":"late"}' })
      await read.opened
      // Cannot be shared with the waiting request, which fetches again.
      wire.respond({ headers: { ...json, 'Cache-Control': 'private' }, content: '{"from":"private"}' })
    }
    const long = get('/a/long')
    await origin.until(() => origin.received.length === 1)
    const leader = get('/a/x')
    await origin.until(() => origin.received.length === 2)
    const follower = get('/a/x')
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(3)
    await gateway.put(config(other))
    read.open()
    expect((await leader).text).toBe('{"from":"private"}')
    expect((await follower).text).toBe('{"from":"late"}')
    expect((await get('/a/x')).text).toBe('{"from":"other"}')
    ended.open()
    await long
    expect(await isHit('/a/x')).toBe(true)
  })

  test('connections to an upstream close when the last configuration that uses them has finished', async () => {
    const site = (target: Origin, ttl: string): Tree => ({
      site: siteService(target.origin, { cache: { rules: [stored('GET /site/v2/**', ttl)] } }),
    })
    gateway = await startTestGateway({ services: site(origin, '1h') })
    let release: (() => void) | undefined
    origin.script = async ({ method }, wire) => {
      if (method === 'GET') {
        await new Promise<void>((resolve) => {
          release = resolve
        })
      }
      wire.respond({ headers: json, content: '{"from":"one"}' })
    }
    const first = get('/index.php/site-json/site/v2/posts')
    await origin.until(() => release !== undefined)
    await gateway.put({ services: site(origin, '2h') })
    // Its content is read before anything is asked of the upstream.
    const content = '{"title":"x"}'
    const second = httpRequest(`${gateway.publicAddress}/index.php/site-json/site/v2/posts`, {
      method: 'POST',
      headers: { ...json, Authorization: 'Basic YTpi', 'Content-Length': content.length },
    })
    const responded = once(second, 'response')
    second.write(content.slice(0, 5))
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(2)
    await gateway.put({ services: site(other, '2h') })
    release?.()
    expect((await first).status).toBe(200)
    await pause(50)
    second.end(content.slice(5))
    const [response] = (await responded) as [IncomingMessage]
    expect([response.statusCode, await text(response)]).toEqual([200, '{"from":"one"}'])
    await expect.poll(() => origin.open).toBe(0)
  })

  test('an equal configuration changes nothing, however it is written', async () => {
    const services = { a: open(origin, stored('GET /x', '60s')) }
    gateway = await startTestGateway({ services })
    await get('/a/x')
    expect(await gateway.put({ services: { a: open(origin, stored('GET /x', '1m')) } })).toMatchObject({
      kind: 'unchanged',
    })
    expect(await isHit('/a/x')).toBe(true)
  })
})

describe('a refused configuration', () => {
  test('with faults keeps the previous one in force, and metrics, readiness and the response report it', async () => {
    const services = { a: open(origin, stored('GET /x')) }
    gateway = await startTestGateway({ services })
    await get('/a/x')
    const outcome = await gateway.put({ services: { a: open(other, stored('GET /x', 'soon')) } })
    expect(outcome).toMatchObject({ kind: 'invalid', faults: [expect.stringContaining('rules[0].ttl')] })
    expect(await isHit('/a/x')).toBe(true)
    expect(await ready()).toEqual({
      status: 200,
      body: { status: 'ready', reasons: [], degraded: [{ reason: 'config' }], findings: [], unknown: [] },
    })
    expect(await gateway.metric('trellis_config_reloads_total', 'invalid')).toBe(1)
    expect(await gateway.metric('trellis_config_last_reload_good')).toBe(0)
    const response = await post()
    expect(response.status).toBe(422)
    expect(await response.json()).toMatchObject({ code: 'invalid', detail: expect.stringContaining('ttl') })
    await gateway.put({ services })
    expect((await ready()).body['degraded']).toEqual([])
    expect((await post()).status).toBe(200)
  })

  test('with a misspelt key names the position and the key that is similar', async () => {
    const services = { a: open(origin, stored('GET /x')) }
    gateway = await startTestGateway({ services })
    expect(await gateway.put({ limit: { bodyBytes: '1MiB' }, services })).toMatchObject({
      kind: 'invalid',
      faults: [expect.stringMatching(/^\d+:\d+ limit: .* \(did you mean "limits"\?\)$/)],
    })
  })

  test('with another port names that key alone, and not the public URL that is made from it', async () => {
    const services = { a: open(origin, stored('GET /x')) }
    gateway = await startTestGateway({ services })
    const changed = { listen: { port: 1 }, cache: { warm: { concurrency: 1 } }, services }
    expect(await gateway.put(changed)).toEqual({
      kind: 'restart-needed',
      keys: ['listen.port', 'cache.warm'],
    })
    expect(await gateway.put({ publicUrl: 'http://a.example', services })).toMatchObject({
      keys: ['publicUrl'],
    })
  })

  test('that needs a restart is refused as a whole, with the names of its keys', async () => {
    gateway = await startTestGateway({ services: { a: open(origin, stored('GET /x')) } })
    await get('/a/x')
    const changed = {
      workers: 1,
      limits: { headerBytes: '32KiB' },
      cache: { maxBytes: '8MiB' },
      services: { a: open(other, stored('GET /x')) },
    }
    expect(await gateway.put(changed)).toEqual({
      kind: 'restart-needed',
      keys: ['limits.headerBytes', 'cache.maxBytes'],
    })
    expect(await get('/a/x')).toMatchObject({ text: '{"from":"one"}', cache: expect.stringContaining('hit') })
    const response = await post()
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({ detail: 'limits.headerBytes\ncache.maxBytes' })
  })
})

test('POST /reload is a write of the admin side', async () => {
  gateway = await startTestGateway({ services: { a: open(origin) } })
  const asText = await fetch(`${gateway.adminAddress}/reload`, { method: 'POST', body: '{}' })
  expect(asText.status).toBe(415)
  const elsewhere = await fetch(`${gateway.adminAddress}/reload`, {
    method: 'POST',
    headers: { ...json, Origin: 'https://a.test' },
    body: '{}',
  })
  expect(elsewhere.status).toBe(403)
})

test('100 reloads under load fail no request', async () => {
  const services = (round: number): Tree => ({
    a: open(round % 3 === 0 ? other : origin, stored('GET /x', `${60 + (round % 2)}s`)),
    ...(round % 2 === 0 ? {} : { b: { ...open(other), mount: '/b' } }),
  })
  gateway = await startTestGateway({ services: services(1) })
  let running = true
  const failures: unknown[] = []
  let responded = 0
  const client = async (path: string, init: RequestInit): Promise<void> => {
    while (running) {
      try {
        const response = await fetch(gateway.publicAddress + path, init)
        await response.text()
        if (response.status === 200) responded += 1
        else failures.push(response.status)
      } catch (error) {
        failures.push(error)
      }
      await pause(1)
    }
  }
  const upload = { method: 'POST', body: 'x'.repeat(20_000) }
  const clients = [
    ...Array.from({ length: 4 }, () => client('/a/x', {})),
    ...Array.from({ length: 4 }, (_, n) => client(`/a/miss/${n}`, {})),
    ...Array.from({ length: 2 }, () => client('/a/upload', upload)),
  ]
  for (let round = 2; round < 102; round += 1) {
    expect(await gateway.put({ services: services(round) })).toMatchObject({ kind: 'applied' })
    const before = responded
    await expect.poll(() => responded, { interval: 1 }).toBeGreaterThan(before + 1)
  }
  running = false
  await Promise.all(clients)
  expect(failures).toEqual([])
  expect(await gateway.metric('trellis_config_reloads_total', 'applied')).toBe(100)
})

test('reloads leave no earlier configuration in memory', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const put = async (from: number, until: number): Promise<number> => {
    for (let round = from; round < until; round += 1) {
      const rules = [stored('GET /x', `${60 + round}s`)]
      const limit = { name: 'all', service: 'a', match: 'GET /**', by: 'address', max: 1_000 }
      const config = {
        rateLimits: [{ ...limit, window: `${60 + round}s` }],
        services: { a: open(round % 2 === 0 ? other : origin, ...rules) },
      }
      expect(await gateway.put(config)).toMatchObject({ kind: 'applied' })
      await (await fetch(`${gateway.publicAddress}/a/x`)).text()
    }
    collect()
    return process.memoryUsage().heapUsed
  }
  gateway = await startTestGateway({ services: { a: open(origin) } })
  const before = await put(0, 10)
  expect((await put(10, 40)) - before).toBeLessThan(8_000_000)
})
