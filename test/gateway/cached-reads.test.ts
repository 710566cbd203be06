import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const root = (): string => `${gateway.publicAddress}/index.php/site-json`
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({ services: { site: siteService(origin.origin) } })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (_, wire) => wire.respond({ headers: json, content: '[{"id":1}]' })
})

describe('reads', () => {
  test('the first goes to the upstream, the second is a hit with Age, in Cache-Status and in the metrics', async () => {
    const hits = (): Promise<number> =>
      gateway.metric('trellis_requests_total', 'route="/site/v2/pages"', 'cache="hit"')
    const first = await fetch(`${root()}/site/v2/pages?per_page=3`)
    expect(first.headers.get('cache-status')).toMatch(
      /^trellis; fwd=uri-miss; fwd-status=200; ttl=(60|5\d); stored$/,
    )
    expect(await hits()).toBe(0)
    const second = await fetch(`${root()}/site/v2/pages?per_page=3`)
    expect(second.headers.get('cache-status')).toMatch(/^trellis; hit; ttl=\d+$/)
    expect(second.headers.get('age')).toMatch(/^\d+$/)
    expect(await second.text()).toBe('[{"id":1}]')
    expect(await hits()).toBe(1)
    expect(origin.received.map(({ target }) => target)).toEqual(['/index.php/wp-json/wp/v2/pages?per_page=3'])
  })

  test('two spellings of the same query share one stored response, and the upstream gets the canonical one', async () => {
    await fetch(`${root()}/site/v2/posts?per_page=10&categories[]=7&categories[]=3&page=1&utm_source=mail`)
    const second = await fetch(`${root()}/SITE/v2//posts/?categories=3,7`)
    expect(second.headers.get('cache-status')).toContain('hit')
    expect(origin.received.map(({ target }) => target)).toEqual([
      '/index.php/wp-json/wp/v2/posts?categories=3,7',
    ])
  })

  test('a client that has the response gets 304 with the strong entity tag of the gateway', async () => {
    const first = await fetch(`${root()}/site/v2/blocks`)
    const etag = first.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[\w-]{20,}"$/)
    const second = await fetch(`${root()}/site/v2/blocks`, { headers: { 'If-None-Match': etag } })
    expect(second.status).toBe(304)
    expect(origin.received).toHaveLength(1)
    expect(origin.received[0]?.headers['if-none-match']).toBeUndefined()
  })

  test('HEAD is answered from the stored response to GET, without content', async () => {
    await fetch(`${root()}/site/v2/media`)
    const head = await fetch(`${root()}/site/v2/media`, { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.headers.get('content-length')).toBe('10')
    expect(await head.text()).toBe('')
    expect(origin.received).toHaveLength(1)
  })

  test('200 concurrent reads of a list that is not stored send one request to the upstream', async () => {
    origin.script = async (_, wire) => {
      // Answers when all clients wait: a request that was not collapsed would be counted.
      while ((await gateway.metric('trellis_in_flight_requests')) < 200) await pause(20)
      wire.respond({ headers: json, content: '[{"id":2}]' })
    }
    const responses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const response = await fetch(`${root()}/site/v2/posts?search=stampede`)
        return [response.status, await response.text()]
      }),
    )
    expect(new Set(responses.map(String))).toEqual(new Set(['200,[{"id":2}]']))
    expect(origin.received).toHaveLength(1)
  })
})

describe('callers stay apart', () => {
  test.each([
    ['a credential', { Authorization: 'Basic YWRtaW46eA==' }, 'authorization'],
    ['a login cookie', { Cookie: 'wordpress_logged_in_abc=1' }, 'cookie'],
    ['a nonce', { 'X-WP-Nonce': 'abc' }, 'nonce'],
  ])('%s bypasses the cache and is sent on', async (_, headers, reason) => {
    const target = `${root()}/site/v2/posts/77?_fields=${reason}`
    await fetch(target)
    const own = await fetch(target, { headers: headers as Record<string, string> })
    expect(own.headers.get('cache-status')).toBe(`trellis; fwd=bypass; detail=${reason}`)
    expect(origin.received).toHaveLength(2)
    const [name, value] = Object.entries(headers)[0] ?? []
    expect(origin.received[1]?.headers[String(name).toLowerCase()]).toBe(value)
    const anonymous = await fetch(target)
    expect(anonymous.headers.get('cache-status')).toContain('hit')
  })

  test('a response with private or Set-Cookie is not stored', async () => {
    origin.script = (_, wire) => wire.respond({ headers: { ...json, 'Set-Cookie': 'a=1' }, content: '[]' })
    await fetch(`${root()}/site/v2/posts?search=cookie`)
    await fetch(`${root()}/site/v2/posts?search=cookie`)
    expect(origin.received).toHaveLength(2)
  })
})

describe('after an acknowledged write no read returns older data', () => {
  const item = (title: string): string => `{"id":5,"type":"post","title":{"rendered":"${title}"}}`

  test.each(['PUT', 'PATCH', 'POST'])('%s of an item', async (method) => {
    let title = 'old'
    origin.script = (request, wire) => {
      if (request.method === method) title = 'new'
      wire.respond({
        headers: json,
        content: request.target.includes('/5') ? item(title) : `[${item(title)}]`,
      })
    }
    const read = async (path: string): Promise<string> => (await fetch(`${root()}${path}`)).text()
    const paths = ['/site/v2/posts/5', `/site/v2/posts?search=${method}`]
    for (const path of paths) expect(await read(path)).toContain('old')
    const write = await fetch(`${root()}/site/v2/posts/5`, {
      method,
      headers: { 'Content-Type': 'application/json' },
      body: '{"title":"new"}',
    })
    expect(write.headers.get('cache-status')).toBe('trellis; fwd=method')
    for (const path of paths) expect(await read(path)).toContain('new')
    await fetch(`${root()}/site/v2/posts/5`, { method: 'DELETE' })
  })

  test('a write whose outcome is unknown counts as done', async () => {
    let asked = 0
    origin.script = (request, wire) => {
      if (request.method === 'DELETE') return wire.reset()
      asked += 1
      wire.respond({ headers: json, content: item('any') })
    }
    await fetch(`${root()}/site/v2/posts/5?_fields=id`)
    const write = await fetch(`${root()}/site/v2/posts/5`, { method: 'DELETE' })
    expect(write.status).toBe(502)
    await fetch(`${root()}/site/v2/posts/5?_fields=id`)
    expect(asked).toBe(2)
  })

  test.each([
    [501, 1],
    [500, 1],
    [504, 2],
  ])('a response of %i to a write: %i more read until it is kept again', async (status, reads) => {
    const target = `${root()}/site/v2/blocks?search=${status}`
    let asked = 0
    origin.script = (request, wire) => {
      if (request.method !== 'GET') return wire.respond({ status, headers: json, content: '{}' })
      asked += 1
      wire.respond({ headers: json, content: '[]' })
    }
    await fetch(target)
    await fetch(`${root()}/site/v2/blocks/5`, { method: 'DELETE' })
    await fetch(target)
    await fetch(target)
    // While the write may still be carried out, nothing that it could change is kept.
    expect(asked).toBe(1 + reads)
  })

  test('the response to a read that was in flight when the write was answered is not stored', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let state = 'old'
    origin.script = async (request, wire) => {
      if (request.method === 'GET') {
        const seen = state
        if (seen === 'old') await held
        return wire.respond({ headers: json, content: item(seen) })
      }
      state = 'new'
      wire.respond({ headers: json, content: item(state) })
    }
    const target = `${root()}/site/v2/posts/5?_fields=id,title`
    const slow = fetch(target).then((response) => response.text())
    await origin.until(() => origin.received.length === 1)
    const write = { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: '{}' }
    expect((await fetch(`${root()}/site/v2/posts/5`, write)).status).toBe(200)
    const after = fetch(target).then((response) => response.text())
    expect(await after).toContain('new')
    release()
    expect(await slow).toContain('old')
    expect(await (await fetch(target)).text()).toContain('new')
  })
})
