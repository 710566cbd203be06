import { createHmac } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { closedAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { audience, createKey, issuerName, startIssuer } from '../support/issuer.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

const opened = closedAfterEach()

type Tree = { readonly [key: string]: unknown }
type Stage = { readonly gateway: TestGateway; readonly site: Origin; readonly receiver: Origin }

const confirm: Script = (_, wire) => wire.respond({ content: '{"success":true}' })

/** A post whose title is its version. */
const posts = () => {
  const state = { version: 1, slow: undefined as Promise<void> | undefined }
  const script: Script = async ({ method, target }, wire) => {
    const headers = {
      'Content-Type': 'application/json',
      'Surrogate-Key': 'post-secret',
      'Cache-Tag': 'secret',
      'Netlify-CDN-Cache-Control': 'max-age=60',
      'Vercel-CDN-Cache-Control': 'max-age=60',
      'Akamai-Cache-Control': 'max-age=60',
    }
    if (method !== 'GET') state.version += 1
    if (target.includes('private')) {
      wire.respond({ headers: { ...headers, 'Cache-Control': 'private' }, content: '[]' })
      return
    }
    const content = JSON.stringify({ id: 7, type: 'post', status: 'publish', title: `v${state.version}` })
    await state.slow
    const long = target.includes('large') ? 200_000 : target.includes('coded') ? 5_000 : 0
    wire.respond({ headers, content: long > 0 ? `"${'x'.repeat(long)}"` : content })
  }
  return { state, script }
}

const start = async (receiverOf: (origin: string) => Tree, downstream: Tree = {}, more: Tree = {}) => {
  const { state, script } = posts()
  const site = await startOrigin(script)
  const receiver = await startOrigin(confirm)
  const gateway = await startTestGateway({
    services: {
      blog: siteService(site.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] },
        downstream: {
          settle: '10ms',
          lifetime: '1h',
          receivers: [receiverOf(receiver.origin)],
          ...downstream,
        },
        ...more,
      }),
    },
  })
  opened.push(receiver, site, { close: () => gateway.close() })
  return { gateway, site, receiver, state }
}

const url = ({ gateway }: Pick<Stage, 'gateway'>, path: string): string =>
  `${gateway.publicAddress}/index.php/site-json${path}`

const get = async (
  stage: Pick<Stage, 'gateway'>,
  path = '/site/v2/posts/7',
  headers: Record<string, string> = {},
) => fetch(url(stage, path), { headers })

const write = (stage: Pick<Stage, 'gateway'>, headers: Record<string, string> = {}) =>
  fetch(url(stage, '/site/v2/posts/7'), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi', ...headers },
    body: '{"title":"new"}',
  })

const caughtUp = async ({ gateway }: Pick<Stage, 'gateway'>): Promise<void> => {
  await expect.poll(() => gateway.metric('trellis_downstream_purges_total', 'confirmed')).toBeGreaterThan(0)
  await expect.poll(() => gateway.metric('trellis_downstream_behind')).toBe(0)
}

const tagsOf = (response: Response, name = 'surrogate-key'): readonly string[] =>
  (response.headers.get(name) ?? '').split(' ').filter((tag) => tag !== '')

const purgedIn = (receiver: Origin): readonly string[] =>
  receiver.received.flatMap(({ headers }) => (headers['xkey-purge'] ?? '').split(' '))

const varnish = (origin: string): Tree => ({ type: 'varnish', url: origin })

describe('what receivers may store', () => {
  test('has opaque tags and a lifetime of its own, in hits as in misses', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const responses = [await get(stage), await get(stage), await get(stage)]
    for (const response of responses) {
      expect(response.headers.get('cdn-cache-control')).toBe('max-age=3600')
      expect(response.headers.get('surrogate-control')).toBe('max-age=3600')
      expect(tagsOf(response).length).toBeGreaterThan(2)
      for (const tag of tagsOf(response)) expect(tag).toMatch(/^[0-9a-f]{12}$/)
      for (const name of [
        'cache-tag',
        'netlify-cdn-cache-control',
        'vercel-cdn-cache-control',
        'akamai-cache-control',
      ])
        expect(response.headers.get(name)).toBeNull()
      expect(tagsOf(response)).toEqual(tagsOf(responses[0] as Response))
    }
    expect(responses.map((response) => response.headers.get('cache-status')?.includes('; hit'))).toEqual([
      false,
      true,
      true,
    ])
  })

  test('keeps its tags in a 304, in a HEAD and when it is compressed', async () => {
    const stage = await start(varnish, {}, {})
    await caughtUp(stage)
    const first = await get(stage)
    const tag = first.headers.get('etag') ?? ''
    const others = [
      await get(stage, undefined, { 'If-None-Match': tag }),
      await fetch(url(stage, '/site/v2/posts/7'), { method: 'HEAD' }),
      await get(stage, undefined, { 'Accept-Encoding': 'br' }),
    ]
    for (const response of others) expect(tagsOf(response)).toEqual(tagsOf(first))
  })

  test.each(['gzip', 'br'])('keeps them in the first hit that is compressed: %s', async (coding) => {
    const stage = await start(varnish, {}, {})
    await caughtUp(stage)
    const first = await get(stage, '/site/v2/posts/7?coded=1')
    const coded = await get(stage, '/site/v2/posts/7?coded=1', { 'Accept-Encoding': coding })
    expect(coded.headers.get('content-encoding')).toBe(coding)
    expect(coded.headers.get('cache-status')).toContain('hit')
    expect(tagsOf(coded)).toEqual(tagsOf(first))
    expect(coded.headers.get('cdn-cache-control')).toBe('max-age=3600')
  })

  test.each([
    ['private', '/site/v2/posts/7?private=1', {}],
    ['to a credential', '/site/v2/posts/7', { Authorization: 'Basic YTpi' }],
    ['with a header in its key', '/site/v2/posts/7', { 'X-Segment': 'a' }],
    ['long, on its first way through', '/site/v2/posts/7?large=1', {}],
    ['an error of the gateway', '/site/v2/posts?per_page=0', {}],
    ['a document of the gateway', '/', {}],
  ])('is not a response that is %s', async (_, path, headers) => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const response = await get(stage, path, headers)
    await response.text()
    expect(response.headers.get('cdn-cache-control')).toBe('no-store')
    expect(response.headers.get('surrogate-control')).toBe('no-store')
    expect(response.headers.get('surrogate-key')).toBeNull()
  })

  test('is not a stale response, which a purge may have marked so', async () => {
    const stage = await start(
      varnish,
      {},
      { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m', staleWhileRevalidate: '1m' }] } },
    )
    await caughtUp(stage)
    await get(stage)
    await fetch(`${stage.gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true,"mode":"soft"}',
    })
    const response = await get(stage)
    expect(response.headers.get('cache-status')).toContain('revalidating')
    expect(response.headers.get('cdn-cache-control')).toBe('no-store')
  })

  test('is not what an invalidation has overtaken while it was fetched', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    let release = (): void => {}
    stage.state.slow = new Promise((resolve) => {
      release = resolve
    })
    const asked = stage.site.received.length
    const old = get(stage)
    await stage.site.until(() => stage.site.received.length > asked)
    stage.state.slow = undefined
    expect((await write(stage)).status).toBe(200)
    release()
    const response = await old
    expect(await response.json()).toMatchObject({ title: 'v1' })
    expect(response.headers.get('cdn-cache-control')).toBe('no-store')
  })

  test('has at most 128 tags: a coarser one in place of more, which every purge of the service names', async () => {
    const many = Array.from({ length: 300 }, (_, at) => `key-${at}`).join(' ')
    const stage = await start(varnish)
    stage.site.script = (_, wire) =>
      wire.respond({
        headers: { 'Content-Type': 'application/json', 'Surrogate-Key': many },
        content: '{"id":7}',
      })
    await caughtUp(stage)
    const response = await get(stage)
    const [everything, coarse, ...others] = tagsOf(response)
    expect(others).toEqual([])
    await write(stage)
    expect(purgedIn(stage.receiver)).toContain(coarse)
    expect(stage.receiver.received[0]?.headers['xkey-purge']).toBe(everything)
  })

  test.each([
    ['Cache-Tag', /^[0-9a-f]{12}(,[0-9a-f]{12})+$/],
    ['xkey', /^[0-9a-f]{12}( [0-9a-f]{12})+$/],
    ['Cache-Groups', /^"[0-9a-f]{12}"(, "[0-9a-f]{12}")+$/],
  ])('is tagged as the receiver reads it: %s', async (tags, form) => {
    const stage = await start(varnish, { tags })
    await caughtUp(stage)
    const response = await get(stage)
    expect(response.headers.get(tags)).toMatch(form)
    expect(response.headers.get('surrogate-key')).toBeNull()
  })

  test('is never longer than the upstream states', async () => {
    const stage = await start(varnish)
    stage.site.script = (_, wire) =>
      wire.respond({
        headers: {
          'Content-Type': 'application/json',
          'Cache-Control': 'max-age=20',
          'CDN-Cache-Control': 'max-age=10',
        },
        content: '{"id":7}',
      })
    await caughtUp(stage)
    const responses = [await get(stage), await get(stage)]
    for (const response of responses) {
      expect(response.headers.get('cdn-cache-control')).toBe('max-age=10')
      expect(response.headers.get('cache-control')).toBe('max-age=20')
    }
  })

  test('is no item of a batch', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    await get(stage)
    const response = await fetch(url(stage, '/batch/v1'), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"requests":[{"method":"GET","path":"/site/v2/posts/7"}]}',
    })
    const text = await response.text()
    expect(text).toContain('"status":200')
    expect(text.toLowerCase()).not.toMatch(/surrogate|cdn-cache/)
  })

  test('has the same tags in two gateways with one key, and others with another', async () => {
    const [one, two, other] = [
      await start(varnish, { key: 'a'.repeat(32) }),
      await start(varnish, { key: 'a'.repeat(32) }),
      await start(varnish, { key: 'b'.repeat(32) }),
    ]
    for (const stage of [one, two, other]) await caughtUp(stage)
    const tags = tagsOf(await get(one))
    expect(tagsOf(await get(two))).toEqual(tags)
    expect(tagsOf(await get(other)).filter((tag) => tags.includes(tag))).toHaveLength(1)
  })
})

describe('a purge', () => {
  test('is confirmed before the write is acknowledged, and names tags of what the write changed', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const tags = tagsOf(await get(stage))
    const before = stage.receiver.received.length
    let isConfirmed = false
    stage.receiver.script = async (_, wire) => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      isConfirmed = true
      wire.respond({})
    }
    expect((await write(stage)).status).toBe(200)
    expect(isConfirmed).toBe(true)
    const [sent] = stage.receiver.received.slice(before)
    expect(sent?.method).toBe('PURGE')
    expect(sent?.headers['xkey-purge']?.split(' ').some((tag) => tags.includes(tag))).toBe(true)
    // Not everything of the service.
    expect(sent?.headers['xkey-purge']).not.toContain(tags[0])
  })

  test('of several writes at the same time are fewer requests than writes', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const { receiver, state } = stage
    const before = receiver.received.length
    const { version } = state
    // The first confirmation comes when the upstream has made all changes.
    receiver.script = async (_, wire) => {
      await receiver.until(() => state.version === version + 20)
      wire.respond({})
    }
    await Promise.all(Array.from({ length: 20 }, () => write(stage)))
    // On a busy machine their responses come one after the other.
    expect(receiver.received.length - before).toBeLessThan(20)
  })

  test('comes with a purge of the admin side', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const [everything] = tagsOf(await get(stage))
    const before = stage.receiver.received.length
    await fetch(`${stage.gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true}',
    })
    expect(stage.receiver.received.slice(before).map(({ headers }) => headers['xkey-purge'])).toEqual([
      everything,
    ])
  })

  test('is sent once more some seconds later', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const stage = await start(varnish)
    await caughtUp(stage)
    // The start purges everything twice.
    vi.advanceTimersByTime(10_000)
    const { receiver } = stage
    await receiver.until(() => receiver.received.length === 2)
    await write(stage)
    vi.advanceTimersByTime(10_000)
    await receiver.until(() => receiver.received.length === 4)
    const [first, second] = receiver.received.slice(2)
    expect(second?.headers['xkey-purge']).toBe(first?.headers['xkey-purge'])
  })

  test('does not come of what a client sends', async () => {
    const stage = await start(varnish)
    await caughtUp(stage)
    const before = stage.receiver.received.length
    const [tag = ''] = tagsOf(await get(stage))
    await get(stage, '/site/v2/posts/7', { 'xkey-purge': tag, 'Surrogate-Key': tag, 'Cache-Tag': tag })
    const response = await exchangeBytes(
      stage.gateway.publicAddress,
      `PURGE /index.php/site-json/site/v2/posts/7 HTTP/1.1\r\nHost: a\r\nxkey-purge: ${tag}\r\nConnection: close\r\n\r\n`,
    )
    expect(response).toMatch(/^HTTP\/1\.1 4/)
    await write(stage, { 'xkey-purge': tag, 'Surrogate-Key': tag, 'Cache-Group-Invalidation': `"${tag}"` })
    expect(purgedIn(stage.receiver).slice(before)).not.toContain(tag)
  })
})

describe('each kind of receiver', () => {
  const bodyOf = ({ receiver }: Stage, at: number): unknown =>
    JSON.parse(receiver.received.at(at)?.content.toString() ?? '')

  test.each(['webhook', 'next'])('%s gets signed JSON', async (type) => {
    const secret = 'the key of the hook'
    const stage = await start((origin) => ({ type, url: `${origin}/api/purge?a=1`, secret }))
    await caughtUp(stage)
    const [everything] = tagsOf(await get(stage))
    const [first] = stage.receiver.received
    expect(bodyOf(stage, 0)).toEqual({ tags: [everything], all: true, sequence: expect.any(Number) })
    await write(stage)
    const sent = stage.receiver.received.at(-1)
    const body = bodyOf(stage, -1) as { readonly sequence: number }
    expect(body).toMatchObject({ all: false })
    expect(body.sequence).toBeGreaterThan((bodyOf(stage, 0) as typeof body).sequence)
    expect(sent?.target).toBe('/api/purge?a=1')
    const hex = createHmac('sha256', secret)
      .update(sent?.content ?? '')
      .digest('hex')
    expect(sent?.headers['trellis-signature']).toBe(`sha256=${hex}`)
    expect(first?.method).toBe('POST')
  })

  test('fastly gets at most 256 keys in a request, byte by byte as its interface says', async () => {
    const stage = await start((url) => ({
      type: 'fastly',
      url,
      service: 'SU1Z0isxPaozGVKXdv0eY',
      secret: 'token',
    }))
    await caughtUp(stage)
    const [everything] = tagsOf(await get(stage))
    const [first] = stage.receiver.received
    expect(first?.head.split('\r\n')[0]).toBe('POST /service/SU1Z0isxPaozGVKXdv0eY/purge HTTP/1.1')
    expect(first?.headers).toMatchObject({
      'fastly-key': 'token',
      'content-type': 'application/json',
      accept: 'application/json',
    })
    expect(first?.content.toString()).toBe(`{"surrogate_keys":["${everything}"]}`)
    const before = stage.receiver.received.length
    await purgeMany(stage, 600)
    const sizes = stage.receiver.received
      .slice(before)
      .map(({ content }) => JSON.parse(content.toString()).surrogate_keys.length)
    expect(Math.max(...sizes)).toBe(256)
    expect(sizes.length).toBe(Math.ceil(1_202 / 256))
  })

  test('cloudflare gets at most 100 tags in a request, and must say success', async () => {
    const stage = await start((url) => ({
      type: 'cloudflare',
      url,
      zone: '023e105f4ecef8ad9ca31a8372d0c353',
      secret: 'token',
    }))
    await caughtUp(stage)
    const [everything] = tagsOf(await get(stage))
    const [first] = stage.receiver.received
    expect(first?.head.split('\r\n')[0]).toBe(
      'POST /client/v4/zones/023e105f4ecef8ad9ca31a8372d0c353/purge_cache HTTP/1.1',
    )
    expect(first?.headers).toMatchObject({
      authorization: 'Bearer token',
      'content-type': 'application/json',
    })
    expect(first?.content.toString()).toBe(`{"tags":["${everything}"]}`)
    const before = stage.receiver.received.length
    await purgeMany(stage, 250)
    const sizes = stage.receiver.received
      .slice(before)
      .map(({ content }) => JSON.parse(content.toString()).tags.length)
    expect(Math.max(...sizes)).toBe(100)
    expect(sizes.length).toBe(Math.ceil(502 / 100))
    stage.receiver.script = (_, wire) => wire.respond({ content: '{"success":false,"errors":[{"code":1}]}' })
    await purgeMany(stage, 1)
    expect(await stage.gateway.metric('trellis_downstream_behind')).toBe(1)
  })
})

const purgeMany = ({ gateway }: Stage, count: number) =>
  fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ tags: Array.from({ length: count }, (_, at) => `blog/item/posts/${at}`) }),
  })

describe('a receiver that does not confirm', () => {
  const failing: Script = (_, wire) => wire.respond({ status: 500 })
  const withPolicy = (onFailure: string) => (url: string) => ({
    type: 'varnish',
    url,
    onFailure,
    timeout: '300ms',
  })

  test.each(['refuse', 'wait', 'lag'])(
    'is behind, and nothing may be stored until it is back: %s',
    async (onFailure) => {
      const stage = await start(withPolicy(onFailure))
      await caughtUp(stage)
      await get(stage)
      stage.receiver.script = failing
      const response = await write(stage)
      expect(response.status).toBe(onFailure === 'refuse' ? 504 : 200)
      expect((await get(stage)).headers.get('cdn-cache-control')).toBe('no-store')
      expect((await get(stage)).headers.get('surrogate-key')).toBeNull()
      expect(await stage.gateway.metric('trellis_downstream_behind', 'receiver="varnish"')).toBe(1)
      expect(await stage.gateway.metric('trellis_downstream_lag_seconds')).toBeGreaterThan(0)
      const ready = await (await fetch(`${stage.gateway.adminAddress}/readyz`)).json()
      expect(ready).toMatchObject({ status: 'ready', degraded: [{ reason: 'downstream', service: 'blog' }] })
      const lost = stage.receiver.received.at(-1)?.headers['xkey-purge']
      const sent = stage.receiver.received.length
      stage.receiver.script = confirm
      await caughtUp(stage)
      expect(stage.receiver.received[sent]?.headers['xkey-purge']).toBe(lost)
      expect((await get(stage)).headers.get('cdn-cache-control')).toBe('max-age=3600')
    },
  )

  test('refuse: a write is not sent to the upstream while it is behind', async () => {
    const stage = await start(withPolicy('refuse'))
    await caughtUp(stage)
    stage.receiver.script = failing
    await write(stage)
    const { version } = stage.state
    const response = await write(stage)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ code: 'trellis_receiver_behind' })
    expect(stage.state.version).toBe(version)
  })

  test('wait: each write waits for as long as timeout says', async () => {
    const stage = await start(withPolicy('wait'))
    await caughtUp(stage)
    stage.receiver.script = failing
    for (const _ of [1, 2]) {
      const began = performance.now()
      expect((await write(stage)).status).toBe(200)
      expect(performance.now() - began).toBeGreaterThan(300)
    }
    expect(await stage.gateway.metric('trellis_downstream_wait_seconds_count', 'outcome="late"')).toBe(2)
  })

  test('lag: a write does not wait while it is behind', async () => {
    const stage = await start(withPolicy('lag'))
    await caughtUp(stage)
    stage.receiver.script = failing
    await write(stage)
    await write(stage)
    await expect
      .poll(() => stage.gateway.metric('trellis_downstream_wait_seconds_count', 'outcome="behind"'))
      .toBeGreaterThan(0)
  })

  test('gets a purge of everything in place of more than 2,000 tags', async () => {
    const stage = await start(withPolicy('lag'))
    await caughtUp(stage)
    const [everything] = tagsOf(await get(stage))
    stage.receiver.script = failing
    for (const at of [0, 1, 2, 3]) await purgeFrom(stage, at * 900, 900)
    const last = () => stage.receiver.received.at(-1)?.headers['xkey-purge']
    await expect.poll(last).toBe(everything)
    stage.receiver.script = confirm
    const failed = stage.receiver.received.length
    await caughtUp(stage)
    expect(stage.receiver.received[failed]?.headers['xkey-purge']).toBe(everything)
  })

  test('waits as long as Retry-After says', async () => {
    const stage = await start(withPolicy('lag'))
    await caughtUp(stage)
    stage.receiver.script = (_, wire) => wire.respond({ status: 429, headers: { 'Retry-After': '2' } })
    await write(stage)
    const began = performance.now()
    stage.receiver.script = confirm
    await caughtUp(stage)
    expect(performance.now() - began).toBeGreaterThan(1_000)
  })
})

const purgeFrom = ({ gateway }: Stage, from: number, count: number) =>
  fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ tags: Array.from({ length: count }, (_, at) => `blog/item/posts/${from + at}`) }),
  })

test('explain shows the tags that follow from the request', async () => {
  const stage = await start(varnish)
  await caughtUp(stage)
  const tags = tagsOf(await get(stage))
  const target = encodeURIComponent('/index.php/site-json/site/v2/posts/7')
  const response = await fetch(`${stage.gateway.adminAddress}/explain?url=${target}`)
  const explained = (await response.json()) as { readonly downstream: { readonly tags: readonly string[] } }
  expect(explained.downstream).toMatchObject({
    field: 'Surrogate-Key',
    coarseTags: [tags[0], expect.any(String)],
  })
  // Everything, the target and the item.
  expect(explained.downstream.tags.filter((tag) => tags.includes(tag)).length).toBeGreaterThan(2)
})

test('until a start has purged everything, nothing may be stored', async () => {
  const { script } = posts()
  const site = await startOrigin(script)
  const receiver = await startOrigin((_, wire) => wire.respond({ status: 500 }))
  const service = (more: Tree) => ({
    services: {
      blog: siteService(site.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] },
        ...more,
      }),
    },
  })
  const downstream = { settle: '10ms', receivers: [varnish(receiver.origin)] }
  const gateway = await startTestGateway(service({}))
  opened.push(receiver, site, { close: () => gateway.close() })
  expect((await get({ gateway })).headers.get('cdn-cache-control')).toBeNull()
  expect(await gateway.put(service({ downstream }))).toMatchObject({ kind: 'applied' })
  expect((await get({ gateway })).headers.get('cdn-cache-control')).toBe('no-store')
  receiver.script = confirm
  await caughtUp({ gateway })
  expect((await get({ gateway })).headers.get('cdn-cache-control')).toBe('max-age=86400')
  await gateway.put(service({}))
  expect((await get({ gateway })).headers.get('cdn-cache-control')).toBeNull()
})

/** An open service that can be read again with other settings. */
const startOpen = async (receiverSettings: Tree = {}) => {
  const site = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'text/plain' }, content: 'x' }),
  )
  const receiver = await startOrigin(confirm)
  const receivers = [{ ...varnish(receiver.origin), timeout: '300ms', ...receiverSettings }]
  const file = (name: string, more: Tree = {}): Tree => ({
    services: {
      [name]: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [site.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1m', negativeTtl: '5s' }] },
        downstream: { settle: '10ms', receivers },
        ...more,
      },
    },
  })
  const gateway = await startTestGateway(file('blog'))
  opened.push(receiver, site, { close: () => gateway.close() })
  await caughtUp({ gateway })
  const read = async (path = '/a') => (await fetch(gateway.publicAddress + path)).headers
  return { gateway, site, receiver, file, read }
}

describe('a reload', () => {
  test('that lets only some read has everything purged, and nothing is stored from then on', async () => {
    const { gateway, receiver, file, read } = await startOpen()
    const [everything] = ((await read()).get('surrogate-key') ?? '').split(' ')
    const before = receiver.received.length
    await gateway.put(file('blog', { access: { allow: ['127.0.0.1'] } }))
    await caughtUp({ gateway })
    expect(receiver.received.slice(before).map(({ headers }) => headers['xkey-purge'])).toEqual([everything])
    for (const path of ['/a', '/b', '/b']) {
      const headers = await read(path)
      expect(headers.get('cdn-cache-control')).toBe('no-store')
      expect(headers.get('surrogate-key')).toBeNull()
    }
    const explained = await (await fetch(`${gateway.adminAddress}/explain?url=/a`)).json()
    expect(explained).not.toHaveProperty('downstream')
    await gateway.put(file('blog', { access: { deny: ['192.0.2.1'] } }))
    await caughtUp({ gateway })
    expect((await read()).get('cdn-cache-control')).toBe('max-age=86400')
  })

  test.each([
    ['renames the service', 'site', {}],
    ['removes its receivers', 'blog', { downstream: undefined }],
  ])('that %s has everything purged, until it is confirmed', async (_, name, more) => {
    const { gateway, receiver, file, read } = await startOpen()
    const [everything = ''] = ((await read()).get('surrogate-key') ?? '').split(' ')
    receiver.script = (_, wire) => wire.respond({ status: 500 })
    await gateway.put(file(name, more))
    const count = () => purgedIn(receiver).filter((tag) => tag === everything).length
    const before = count()
    await expect.poll(count).toBeGreaterThan(before)
    receiver.script = confirm
    const failed = count()
    await expect.poll(count).toBeGreaterThan(failed)
  })
})

test('a response that the upstream shares among all holders of a token is theirs alone', async () => {
  const issuer = await startIssuer([await createKey('first')])
  const site = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Cache-Control': 'public, max-age=60' }, content: 'x' }),
  )
  const receiver = await startOrigin(confirm)
  const gateway = await startTestGateway({
    services: {
      blog: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [site.origin] },
        cache: { profile: 'rfc-shared-cache' },
        access: { jwt: { jwks: issuer.url, issuer: issuerName, audience } },
        downstream: { settle: '1ms', receivers: [varnish(receiver.origin)] },
      },
    },
  })
  opened.push(issuer, receiver, site, { close: () => gateway.close() })
  await caughtUp({ gateway })
  const headers = { Authorization: `Bearer ${await issuer.token({})}` }
  const ask = () => fetch(`${gateway.publicAddress}/a`, { headers })
  const responses = [await ask(), await ask()]
  expect(responses[1]?.headers.get('cache-status')).toContain('hit')
  for (const response of responses) expect(response.headers.get('cdn-cache-control')).toBe('no-store')
})

test('refuse: a purge of the admin side is not acknowledged before it is confirmed', async () => {
  const { gateway, receiver, read } = await startOpen({ onFailure: 'refuse' })
  await read()
  receiver.script = (_, wire) => wire.respond({ status: 500 })
  const purge = () =>
    fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ url: '/a' }),
    })
  const refused = await purge()
  expect(refused.status).toBe(503)
  expect(await refused.json()).toMatchObject({ code: 'not-heard' })
  receiver.script = confirm
  await caughtUp({ gateway })
  expect((await purge()).status).toBe(200)
})

test('what is not found is kept for no longer than negativeTtl', async () => {
  const { site, read } = await startOpen()
  site.script = (_, wire) => wire.respond({ status: 404, content: 'no' })
  for (let count = 0; count < 2; count += 1) expect((await read()).get('cdn-cache-control')).toBe('max-age=5')
})
