import { describe, expect, test } from 'vitest'
import { plantFault, plants } from '../real/promise-fuzz/plants.ts'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

const json = { 'Content-Type': 'application/json' }

type Shown = { [path: string]: string }

/** Each path shows its text; a write to a path changes it at once and is answered after a while. */
const start = async (shown: Shown, more: Record<string, unknown> = {}, responseMs = 0): Promise<void> => {
  origin = await startOrigin(async ({ method, target }, wire) => {
    if (method === 'PUT') {
      shown[target] = `${shown[target]}+`
      await pause(responseMs)
    }
    const content = shown[target] === 'random' ? `{"is":${Math.random()}}` : `{"is":"${shown[target]}"}`
    wire.respond({ headers: json, content })
  })
  gateway = await startTestGateway({
    cache: { verify: { rate: '100/s' }, shared: { lease: '100ms' } },
    services: {
      pages: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin], timeouts: { headers: '1s', total: '1s' } },
        cache: {
          rules: [
            { match: 'GET /mine/**', ttl: '1h', scope: 'credential' },
            { match: 'GET /**', ttl: '1h' },
          ],
        },
        ...more,
      },
    },
  })
}
closeAfterEach(() => [gateway, origin])

const read = async (path: string, headers: Record<string, string> = {}): Promise<string> =>
  (await fetch(`${gateway.publicAddress}${path}`, { headers })).text()
const verified = (outcome: string): Promise<number> =>
  gateway.metric('trellis_verified_total', 'service="pages"', `outcome="${outcome}"`)
const fetchedAgain = (path: string): number =>
  origin.received.filter(
    ({ target, headers }) => target === path && headers['user-agent'] === 'trellis-verify',
  ).length

describe('cache.verify', () => {
  test('finds a response that is no longer what the upstream says, and drops it', async () => {
    const shown: Shown = { '/a': '1', '/b': '1' }
    await start(shown)
    expect(await read('/a')).toBe('{"is":"1"}')
    await read('/b')
    await expect.poll(() => verified('same')).toBeGreaterThan(3)
    // Nothing that the gateway knows of.
    shown['/a'] = '2'
    expect(await read('/a')).toBe('{"is":"1"}')
    await expect.poll(() => read('/a')).toBe('{"is":"2"}')
    await expect.poll(() => verified('differed')).toBeGreaterThan(0)
    const recent = await (await fetch(`${gateway.adminAddress}/recent`)).json()
    expect(await (await fetch(`${gateway.adminAddress}/status`)).json()).toMatchObject({
      verified: { differed: 1 },
    })
    expect(recent).toMatchObject({ invalidations: [{ by: 'purge', cause: 'verify', reach: ['/a'] }] })
  })

  test('the order of the members of an object is no difference', async () => {
    const shown: Shown = { '/a': '1","more":"x' }
    await start(shown)
    await read('/a')
    origin.script = (_, wire) => wire.respond({ headers: json, content: '{ "more": "x", "is": "1" }' })
    const before = await verified('same')
    await expect.poll(() => verified('same')).toBeGreaterThan(before + 5)
    expect(await verified('differed')).toBe(0)
  })

  test('a write that the upstream has carried out but not answered is no difference', async () => {
    const shown: Shown = { '/a': '1', '/b': '1', '/c': '1' }
    await start(shown, {}, 400)
    for (const path of Object.keys(shown)) {
      await read(path)
      const write = fetch(`${gateway.publicAddress}${path}`, { method: 'PUT', body: '{}' })
      // The upstream shows it already, and readers do not.
      await origin.until(() => {
        const of = origin.received.filter(({ target }) => target === path).map(({ method }) => method)
        return of.includes('PUT') && of.at(-1) === 'GET'
      })
      expect(await read(path)).toBe('{"is":"1"}')
      await (await write).text()
      expect(await read(path)).toBe('{"is":"1+"}')
    }
    await expect.poll(() => verified('overtaken')).toBeGreaterThan(0)
    expect(await verified('differed')).toBe(0)
  })

  test('a response of which no two are the same is fetched again no more', async () => {
    await start({ '/a': 'random' })
    await read('/a')
    await expect.poll(() => verified('varies')).toBeGreaterThan(0)
    await expect
      .poll(async () => {
        const before = fetchedAgain('/a')
        await pause(300)
        return fetchedAgain('/a') - before
      })
      .toBe(0)
    expect(await verified('differed')).toBe(0)
  })

  test('what was made for a credential is not fetched, nor what a service gives to known clients', async () => {
    await start({ '/mine/a': '1', '/b': '1' })
    await read('/mine/a', { Authorization: 'Bearer mine' })
    await read('/b')
    await expect.poll(() => verified('same')).toBeGreaterThan(5)
    expect(fetchedAgain('/mine/a')).toBe(0)
    expect(await gateway.metric('trellis_requests_total', 'cache="bypass"')).toBe(0)
  })

  test('in the profile rfc-shared-cache a credential may have made what all share', async () => {
    await start(
      { '/a': '1' },
      { cache: { profile: 'rfc-shared-cache', rules: [{ match: 'GET /**', ttl: '1h' }] } },
    )
    await read('/a')
    await expect.poll(() => verified('failed')).toBeGreaterThan(3)
    expect(fetchedAgain('/a')).toBe(0)
  })
})

test('without cache.verify nothing is fetched again', async () => {
  origin = await startOrigin((_, wire) => wire.respond({ headers: json, content: '{}' }))
  gateway = await startTestGateway({
    services: {
      pages: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    },
  })
  await read('/a')
  await pause(300)
  expect(origin.received).toHaveLength(1)
})

/** `VERIFY_DEFAULTS=1`: one check a second, and the default time limits. */
const isDefault = process.env['VERIFY_DEFAULTS'] === '1'
test('a fault in the table of effects of WordPress is reported under 20 reads a second', {
  timeout: 220_000,
}, async () => {
  const plant = plants.find(({ name }) => name === 'posts.delete.categories')
  if (plant === undefined) throw new Error('the table has no such effect')
  const remove = plantFault(plant)
  let isThere = true
  origin = await startOrigin(({ method, target }, wire) => {
    if (method === 'DELETE') isThere = false
    const [path = ''] = target.split('?')
    const list = [{ id: 3, count: isThere ? 1 : 0 }]
    const gone = { deleted: true, previous: { id: 7, type: 'post', status: 'publish', categories: [4] } }
    const item = { id: Number(path.split('/').at(-1)) }
    const content = method === 'DELETE' ? gone : path.endsWith('/categories') ? list : item
    wire.respond({ headers: json, content: JSON.stringify(content) })
  })
  const limits = isDefault ? {} : { timeouts: { headers: '1s', total: '1s' } }
  const { upstream, ...site } = siteService(origin.origin, {
    cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
  })
  gateway = await startTestGateway({
    cache: { verify: { rate: isDefault ? '1/s' : '20/s' } },
    services: { pages: { ...site, upstream: { ...(upstream as object), ...limits } } },
  })
  const base = '/index.php/site-json/site/v2'
  const routes = Array.from({ length: 20 }, (_, at) => `${base}/media/${at + 10}`)
  const category = `${base}/categories`
  let readAt = 0
  const reader = setInterval(() => {
    readAt += 1
    void read([...routes, category][readAt % 21] ?? category).catch(() => undefined)
  }, 50)
  try {
    for (const path of [...routes, category]) await read(path)
    expect(await read(category)).toContain('"count":1')
    const { status } = await fetch(`${gateway.publicAddress}${base}/posts/7?force=true`, {
      method: 'DELETE',
    })
    expect(status).toBe(200)
    const written = performance.now()
    // The fault: the category is read from the cache as it was.
    expect(await read(category)).toContain('"count":1')
    await expect.poll(() => verified('differed'), { timeout: 210_000 }).toBeGreaterThan(0)
    expect(await read(category)).toContain('"count":0')
    const response = await fetch(`${gateway.adminAddress}/recent`)
    const recent = (await response.json()) as { readonly invalidations: readonly unknown[] }
    expect(recent.invalidations[0]).toMatchObject({ cause: 'verify', reach: ['/site/v2/categories'] })
    if (isDefault) process.stdout.write(`reported after ${(performance.now() - written) / 1000} s\n`)
  } finally {
    clearInterval(reader)
    remove()
  }
})
