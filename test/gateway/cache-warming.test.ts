import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const mount = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const publicly = { ...json, 'Cache-Control': 'max-age=60' }

const services = (): Record<string, unknown> => ({
  site: siteService(origin.origin),
  pages: {
    contract: 'open',
    mount: '/pages',
    upstream: { targets: [origin.origin], basePath: '/p' },
    cache: { profile: 'rfc-shared-cache' },
  },
  shops: {
    contract: 'open',
    mount: '/',
    hosts: ['a.shop.example', 'b.shop.example'],
    upstream: { targets: [origin.origin], basePath: '/s', host: 'preserve' },
    cache: { profile: 'rfc-shared-cache' },
  },
  plants: {
    contract: 'plants',
    mount: '/store',
    upstream: { targets: [origin.origin], basePath: '/store' },
    cache: { rules: [{ match: 'GET /plants', ttl: '60s', scope: 'credential' }] },
  },
})

const start = async (warm: Record<string, number>): Promise<void> => {
  origin = await startOrigin()
  origin.script = ({ target }, wire) =>
    target.includes('missing')
      ? wire.respond({ status: 500, headers: json, content: '{}' })
      : wire.respond({ headers: publicly, content: '[{"id":7,"type":"post"}]' })
  gateway = await startTestGateway({ services: services(), cache: { warm } })
}
const stop = async (): Promise<void> => {
  await gateway.close()
  await origin.close()
}

const post = async (path: string, body: unknown): Promise<Record<string, unknown>> => {
  const response = await fetch(`${gateway.adminAddress}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await response.json()) as Record<string, unknown>
}
const read = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
  const response = await fetch(`${gateway.publicAddress}${path}`, { headers })
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}
const readTimes = async (path: string, times: number): Promise<void> => {
  for (let i = 0; i < times; i += 1) await read(path)
}
const warmed = (outcome: string): Promise<number> =>
  gateway.metric('trellis_cache_warmed_total', `outcome="${outcome}"`)
const forget = (): void => {
  origin.received.length = 0
}
const agentsOf = (target: string): readonly (string | undefined)[] =>
  origin.received.filter((request) => request.target === target).map(({ headers }) => headers['user-agent'])
/** Declares the parameter `client_ref` as a key. */
const keyed = {
  openapi: '3.1.0',
  info: { title: 'Keyed', version: '1' },
  components: { securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'client_ref' } } },
  security: [{ key: [] }],
  paths: { '/a': { get: { responses: { 200: { description: 'a' } } } } },
}
const targets = (): string[] => origin.received.map(({ target }) => target)

describe('warming', () => {
  beforeEach(() => start({ perSecond: 1000 }))
  afterEach(stop)

  test('after a purge the most used removed responses are fetched again, the most used first', async () => {
    await readTimes('/pages/rare', 1)
    await readTimes('/pages/often', 4)
    await readTimes('/pages/sometimes', 2)
    await readTimes(`${mount}/site/v2/posts`, 9)
    forget()
    expect(await post('/cache/purge', { prefix: '/pages', warm: 2 })).toEqual({
      entries: 3,
      mode: 'hard',
      dryRun: false,
      warming: 2,
    })
    await expect.poll(() => warmed('fetched')).toBe(2)
    expect(targets()).toEqual(['/p/often', '/p/sometimes'])
    expect(await read('/pages/often')).toMatch(/^trellis; hit/)
    expect(await read('/pages/rare')).toMatch(/fwd=uri-miss/)
  })

  test('the request has no credential and names its purpose', async () => {
    await readTimes('/pages/a', 2)
    forget()
    await post('/cache/purge', { all: true, warm: true })
    await expect.poll(() => warmed('fetched')).toBe(1)
    const [sent] = origin.received
    const { headers, method } = sent ?? { headers: {} as Record<string, string>, method: '' }
    expect([method, headers['user-agent'], headers['authorization'], headers['cookie']]).toEqual([
      'GET',
      'trellis-warm',
      undefined,
      undefined,
    ])
  })

  test('the request has the scheme of the public URL', async () => {
    const own = await startTestGateway({
      publicUrl: 'https://example.org',
      services: { pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
    })
    try {
      const headers = { 'Content-Type': 'application/json' }
      const body = '{"urls":["/a"]}'
      await fetch(`${own.adminAddress}/cache/warm`, { method: 'POST', headers, body })
      await expect
        .poll(() => origin.received.map(({ headers }) => headers['x-forwarded-proto']))
        .toEqual(['https'])
    } finally {
      await own.close()
    }
  })

  test('responses of a credential are not fetched again, nor targets with a secret in the query', async () => {
    await read('/store/plants', { Authorization: 'Bearer one' })
    await read('/pages/a?token=secret')
    expect(await post('/cache/purge', { all: true, warm: true })).toMatchObject({ entries: 2, warming: 0 })
  })

  test('what another service declares as a key is no secret here', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-warming-'))
    const document = join(folder, 'openapi.json')
    await writeFile(document, JSON.stringify(keyed))
    const upstream = { targets: [origin.origin] }
    const cache = { rules: [{ match: 'GET /**', ttl: '60s' }] }
    const own = await startTestGateway({
      cache: { verify: { rate: '100/s' } },
      services: {
        pages: { contract: 'open', mount: '/pages', upstream: { ...upstream, basePath: '/p' }, cache },
        api: { contract: 'openapi', mount: '/api', document, upstream, cache },
      },
    })
    try {
      for (const path of ['/pages/a?client_ref=1', '/api/a?client_ref=1'])
        await (await fetch(own.publicAddress + path)).text()
      await expect.poll(() => agentsOf('/p/a?client_ref=1')).toContain('trellis-verify')
      const headers = { 'Content-Type': 'application/json' }
      const body = '{"all":true,"warm":true}'
      const purge = await fetch(`${own.adminAddress}/cache/purge`, { method: 'POST', headers, body })
      expect(await purge.json()).toMatchObject({ warming: 1 })
      await expect.poll(() => agentsOf('/p/a?client_ref=1')).toContain('trellis-warm')
      expect(agentsOf('/a?client_ref=1')).not.toContain('trellis-warm')
      expect(agentsOf('/a?client_ref=1')).not.toContain('trellis-verify')
    } finally {
      await own.close()
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('each host of a service gets its own response again', async () => {
    const at = (host: string) => post('/cache/warm', { urls: [`http://${host}/x`] })
    await at('a.shop.example')
    await at('b.shop.example')
    await expect.poll(() => warmed('fetched')).toBe(2)
    forget()
    expect(await post('/cache/purge', { all: true, warm: true })).toMatchObject({ entries: 2, warming: 2 })
    await expect.poll(() => origin.received.length).toBe(2)
    expect(origin.received.map(({ headers }) => headers['host']).sort()).toEqual([
      expect.stringContaining('a.shop.example'),
      expect.stringContaining('b.shop.example'),
    ])
  })

  test('after a soft purge too', async () => {
    await readTimes(`${mount}/site/v2/posts`, 2)
    forget()
    await post('/cache/purge', { all: true, mode: 'soft', warm: true })
    await expect.poll(() => origin.received.length).toBe(1)
    await expect.poll(() => read(`${mount}/site/v2/posts`)).toMatch(/^trellis; hit; ttl=(60|5\d)$/)
  })

  test('URLs are fetched on request; each that no GET is answered for is refused with the reason', async () => {
    const response = await post('/cache/warm', {
      urls: ['/pages/a', '/pages/missing', `${mount}/site/v2/posts?per_page=1000`, '/nothing-here'],
    })
    expect(response).toEqual({
      warming: 2,
      refused: [
        {
          url: `${mount}/site/v2/posts?per_page=1000`,
          detail: expect.stringContaining('GET of this URL is refused'),
        },
        { url: '/nothing-here', detail: 'no service is mounted there; trellis routes lists the paths' },
      ],
    })
    await expect.poll(() => warmed('fetched')).toBe(1)
    await expect.poll(() => warmed('failed')).toBe(1)
    expect(await read('/pages/a')).toMatch(/^trellis; hit/)
    await post('/cache/warm', { urls: ['/pages/a'] })
    await expect.poll(() => warmed('hit')).toBe(1)
  })

  test.each([
    ['no URLs', { urls: [] }, 'urls: expected a list of 1 to 1000'],
    ['another member', { urls: ['/a'], all: true }, 'the members urls and wait only'],
    ['a URL as it is shown', { urls: ['/a', '/b?token=[redacted]'] }, 'in place of a secret'],
    ['an empty URL', { urls: ['/a', ''] }, 'urls[1]: expected'],
    ['too many', { urls: Array.from({ length: 1001 }, () => '/a') }, 'urls: expected a list of 1 to 1000'],
  ])('a request with %s is refused', async (_description, body, detail) => {
    const response = await post('/cache/warm', body)
    expect(response).toMatchObject({ status: 400, code: 'invalid-warm' })
    expect(response['detail']).toContain(detail)
  })
})

describe('warming is bounded', () => {
  afterEach(stop)

  test('in the targets that wait: further ones are dropped and counted', async () => {
    await start({ max: 2, concurrency: 1, perSecond: 1000 })
    origin.script = async (_, wire) => {
      await pause(50)
      wire.respond({ headers: publicly, content: '{}' })
    }
    const urls = Array.from({ length: 5 }, (_, at) => `/pages/${at}`)
    expect(await post('/cache/warm', { urls })).toMatchObject({ warming: 2 })
    expect(await warmed('dropped')).toBe(3)
    await expect.poll(() => warmed('fetched')).toBe(2)
  })

  test('in the requests in flight', async () => {
    await start({ concurrency: 2, perSecond: 1000 })
    origin.script = async (_, wire) => {
      await pause(20)
      wire.respond({ headers: publicly, content: '{}' })
    }
    await post('/cache/warm', { urls: Array.from({ length: 8 }, (_, at) => `/pages/${at}`) })
    await expect.poll(() => warmed('fetched')).toBe(8)
    expect(origin.maxInFlight).toBe(2)
  })

  test('in the requests that begin in a second', async () => {
    await start({ concurrency: 8, perSecond: 10 })
    const began = performance.now()
    await post('/cache/warm', { urls: Array.from({ length: 5 }, (_, at) => `/pages/${at}`) })
    await expect.poll(() => warmed('fetched')).toBe(5)
    // Five begin within four intervals of 100 ms.
    expect(performance.now() - began).toBeGreaterThan(380)
  })

  test('a gateway with targets that still wait can be closed at once', async () => {
    await start({ perSecond: 1 })
    await post('/cache/warm', { urls: ['/pages/a', '/pages/b', '/pages/c'] })
    await gateway.close()
    const { length } = origin.received
    await pause(30)
    expect(origin.received).toHaveLength(length)
  })
})
