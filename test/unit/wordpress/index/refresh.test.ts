import { beforeEach, describe, expect, test } from 'vitest'
import type { DiscoveryOptions } from '../../../../src/wordpress/index/discovery.ts'
import { closeAfterEach } from '../../../support/close.ts'
import { type Origin, type Script, startOrigin } from '../../../support/origin.ts'
import { parsed, publicDocument, realIndex, upstreamRoot, type Watched, watched } from './upstream-index.ts'

let origin: Origin
let site: Watched

const responses =
  (content: Buffer | string, status = 200): Script =>
  (_request, wire) =>
    wire.respond({ status, headers: { 'Content-Type': 'application/json' }, content })

const renamed = (name: string): Buffer =>
  Buffer.from(JSON.stringify({ ...JSON.parse(realIndex.toString()), name }))

const fetchIndex: DiscoveryOptions['fetchIndex'] = async (signal) => {
  const response = await fetch(`${origin.origin}/index.php/wp-json/`, { signal })
  return { status: response.status, content: Buffer.from(await response.arrayBuffer()) }
}

/** Answers as soon as the test releases it. */
const held = (script: Script): { readonly script: Script; readonly release: () => void } => {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return {
    script: async (request, wire, count) => {
      await released
      await script(request, wire, count)
    },
    release,
  }
}

const source = (changed: object = {}) => ({
  source: { kind: 'upstream', refreshMs: 60_000, timeoutMs: 30_000, retryAfterMs: 0, ...changed } as const,
})

const begin = (changed: Partial<DiscoveryOptions> = {}): Watched => {
  site = watched({ fetchIndex, ...changed })
  return site
}

const nameOf = async (): Promise<unknown> => parsed(await site.discovery.index('_fields=name'))['name']

beforeEach(async () => {
  origin = await startOrigin(responses(realIndex))
})

closeAfterEach(() => [site.discovery, origin])

describe('the index of the upstream', () => {
  test('is fetched once for any number of requests', async () => {
    const { discovery } = begin()
    const all = await Promise.all(Array.from({ length: 20 }, () => discovery.index('')))
    expect(new Set(all).size).toBe(1)
    expect(origin.received).toHaveLength(1)
    expect(discovery.upstream.root).toBe(upstreamRoot)
  })

  test('is fetched at start, and no request waits for it later', async () => {
    const { discovery, events } = begin()
    discovery.start()
    await origin.until(() => events.length > 0)
    expect(discovery.index('')).toHaveProperty('kind', 'document')
    expect(origin.received).toHaveLength(1)
  })

  test('is fetched again on the timer', async () => {
    begin(source({ refreshMs: 20 }))
    await site.discovery.index('')
    origin.script = responses(renamed('Other'))
    await expect.poll(nameOf).toBe('Other')
  })

  test('that has not changed is not parsed again', async () => {
    const { discovery, events } = begin()
    const first = await discovery.index('')
    await discovery.refresh()
    expect(discovery.index('')).toBe(first)
    expect(events.map(({ kind }) => kind)).toEqual(['index-refreshed', 'drift-compared', 'index-refreshed'])
  })

  test('stays when the upstream goes away', async () => {
    const { discovery, events } = begin()
    await discovery.index('')
    origin.script = (_request, wire) => wire.reset()
    await discovery.refresh()
    expect(await nameOf()).toBe('Test site')
    expect(events.at(-1)).toMatchObject({
      kind: 'index-failed',
      reason: 'unreachable',
      keptLast: true,
      service: 'site',
    })
  })

  test('is requested again by the next request when the first attempt failed', async () => {
    begin()
    origin.script = responses('', 503)
    expect(await site.discovery.index('')).toEqual({ kind: 'identity-unknown' })
    origin.script = responses(realIndex)
    expect(await nameOf()).toBe('Test site')
  })

  test('is not fetched for every request while the upstream is down', async () => {
    const { discovery } = begin(source({ retryAfterMs: 60_000 }))
    origin.script = responses('', 503)
    for (let i = 0; i < 5; i++) expect(await discovery.index('')).toEqual({ kind: 'identity-unknown' })
    expect(origin.received).toHaveLength(1)
  })

  test('is waited for a bounded time', async () => {
    const { discovery, events } = begin(source({ timeoutMs: 30 }))
    origin.script = () => {}
    expect(await discovery.index('')).toEqual({ kind: 'identity-unknown' })
    expect(events).toMatchObject([{ kind: 'index-failed', reason: 'timeout', keptLast: false }])
  })

  test('is a new one after an invalidation, also when an attempt was in flight', async () => {
    const { discovery } = begin()
    await discovery.index('')
    const before = held(responses(renamed('Before')))
    origin.script = before.script
    const underWay = discovery.refresh()
    await origin.until(() => origin.received.length === 2)
    discovery.invalidate()
    origin.script = responses(renamed('After'))
    const asked = nameOf()
    before.release()
    expect(await asked).toBe('After')
    await underWay
    expect(origin.received).toHaveLength(3)
  })

  test('that was in flight at an invalidation does not count for later requests', async () => {
    const { discovery } = begin()
    await discovery.index('')
    const before = held(responses(renamed('Before')))
    origin.script = before.script
    const underWay = discovery.refresh()
    await origin.until(() => origin.received.length === 2)
    discovery.invalidate()
    before.release()
    await underWay
    origin.script = responses(renamed('After'))
    expect(await nameOf()).toBe('After')
  })

  test('is kept after an invalidation that nothing new can follow', async () => {
    begin()
    await site.discovery.index('')
    site.discovery.invalidate()
    origin.script = responses('', 500)
    expect(await nameOf()).toBe('Test site')
  })

  test('is given up when discovery closes', async () => {
    const { discovery, events } = begin()
    origin.script = () => {}
    const waiting = discovery.index('')
    await origin.until(() => origin.received.length === 1)
    await discovery.close()
    expect(await waiting).toEqual({ kind: 'identity-unknown' })
    expect(events).toEqual([])
  })
})

describe('a response that is no index', () => {
  const pad = (octets: number) => `{"routes":{},"x":"${'x'.repeat(octets)}"}`
  test.each([
    ['status', '{"code":"x"}', 404],
    ['not-json', '<html>', 200],
    ['not-json', '', 200],
    ['not-an-index', '[]', 200],
    ['not-an-index', 'null', 200],
    ['not-an-index', '{"routes":[]}', 200],
    ['too-deep', `{"routes":{},"x":${'['.repeat(100)}${']'.repeat(100)}}`, 200],
    ['too-deep', '['.repeat(100_000), 200],
    ['not-an-index', `{"x":"\\\\","y":"\\"${'['.repeat(100)}"}`, 200],
    ['too-large', pad(8 * 1024 * 1024), 200],
  ] as const)('is refused as %s', async (reason, content, status) => {
    const { discovery, events } = begin()
    origin.script = responses(content, status)
    expect(await discovery.index('')).toEqual({ kind: 'identity-unknown' })
    expect(events).toMatchObject([{ kind: 'index-failed', reason }])
  })

  test('is refused as unusable when what is to be made of it fails', async () => {
    let fails = true
    const { discovery, events } = begin({
      rowsLearned: () => {
        if (fails) throw new Error('no router')
      },
    })
    await discovery.refresh()
    expect(events).toMatchObject([{ kind: 'index-failed', reason: 'unusable', keptLast: false }])
    expect(events[0]).toHaveProperty('cause.message', 'no router')
    fails = false
    await discovery.refresh()
    expect(events.at(-1)).toMatchObject({ kind: 'drift-compared', differences: {} })
  })
})

test('the rows are handed over when they are others than before', async () => {
  const { discovery, learned } = begin()
  await discovery.index('')
  const document = JSON.parse(realIndex.toString())
  origin.script = responses(renamed('Other'))
  await discovery.refresh()
  expect(learned).toHaveLength(1)
  expect(learned[0]).toContain('/site/v2/categories/{id}')
  delete document.routes['/wp/v2/categories/(?P<id>[\\d]+)']
  origin.script = responses(JSON.stringify(document))
  await discovery.refresh()
  expect(learned).toHaveLength(2)
  expect(learned[1]).not.toContain('/site/v2/categories/{id}')
})

test.each([
  ['its root route', {}, upstreamRoot],
  ['its home, without that', { routes: {} }, 'http://wordpress.test/index.php/wp-json'],
  ['nothing, when there is neither', { routes: {}, home: 5 }, undefined],
  ['nothing of a home that is no plain URL', { routes: {}, home: 'http://a b/' }, undefined],
  ['nothing of another scheme', { routes: {}, home: 'javascript:x' }, undefined],
  [
    'nothing of an address with a query',
    { routes: { '/': { _links: { self: [{ href: 'http://a.test/?rest_route=/' }] } } }, home: '' },
    undefined,
  ],
])('the root is learned from %s', async (_what, changed, expected) => {
  const { discovery } = begin()
  origin.script = responses(JSON.stringify({ ...JSON.parse(realIndex.toString()), ...changed }))
  await discovery.index('')
  expect(discovery.upstream.root).toBe(expected)
})

test('drift is reported once, and again when it changes', async () => {
  const { discovery, events } = begin()
  const document = publicDocument()
  expect(document.routes).toBeDefined()
  await discovery.index('')
  expect(discovery.drift()).toEqual([])
  const changed = JSON.parse(realIndex.toString())
  changed.routes['/wp/v2/posts'].endpoints[0].args.per_page.default = 20
  origin.script = responses(JSON.stringify(changed))
  await discovery.refresh()
  await discovery.refresh()
  expect(events.filter(({ kind }) => kind === 'drift-compared')).toMatchObject([
    { differences: {} },
    { differences: { 'argument-changed': 1 } },
  ])
  expect(discovery.drift()).toEqual([
    {
      kind: 'argument-changed',
      matters: true,
      route: '/site/v2/posts',
      method: 'GET',
      argument: 'per_page',
      keyword: 'default',
      ours: 10,
      theirs: 20,
    },
  ])
})
