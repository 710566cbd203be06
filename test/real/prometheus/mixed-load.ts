import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

/** A gateway under every kind of traffic and fault, and what clients and origins counted of it. */
export type MixedLoad = {
  readonly gateway: TestGateway
  /** Requests sent to each service by this client. */
  readonly sent: ReadonlyMap<string, number>
  readonly site: Origin
  readonly legacy: Origin
  readonly narrow: Origin
  /** One round of everything. */
  round(number: number): Promise<void>
  close(): Promise<void>
}

const json = { 'Content-Type': 'application/json' }

const index = JSON.stringify({
  name: 'Test site',
  description: '',
  url: 'http://upstream.test',
  home: 'http://upstream.test',
  gmt_offset: '0',
  timezone_string: '',
  namespaces: ['oembed/1.0', 'wp/v2', 'shop/v1'],
  routes: {
    '/shop/v1/items': { namespace: 'shop/v1', methods: ['GET'], endpoints: [{ methods: ['GET'], args: {} }] },
    '/shop/v1/(broken': {
      namespace: 'shop/v1',
      methods: ['GET'],
      endpoints: [{ methods: ['GET'], args: {} }],
    },
  },
})

const batchResponse = (content: Buffer): string => {
  const { requests } = JSON.parse(content.toString()) as { requests: unknown[] }
  return JSON.stringify({ responses: requests.map(() => ({ body: { ok: true }, status: 200, headers: [] })) })
}

const large = JSON.stringify({ text: 'what is said more than once '.repeat(400) })

const siteScript =
  (isFailing: () => boolean): Script =>
  async ({ target, content }, wire) => {
    if (target.endsWith('/wp-json/')) return wire.respond({ headers: json, content: index })
    if (target.includes('/batch/v1'))
      return wire.respond({ status: 207, headers: json, content: batchResponse(content) })
    if (target.includes('large')) return wire.respond({ headers: json, content: large })
    if (target.includes('slow')) await pause(60)
    if (isFailing() && /pages|tags/.test(target)) return wire.reset()
    if (target.includes('/categories')) return wire.respond({ status: 500, headers: json, content: '{}' })
    return wire.respond({ headers: json, content: '{"ok":true}' })
  }

const legacyScript: Script = ({ target }, wire) =>
  wire.respond({
    headers: {
      'Content-Type': 'text/plain',
      ...(target.includes('private') ? { 'Set-Cookie': 'a=b' } : { 'Cache-Control': 'max-age=60' }),
    },
    content: 'x'.repeat(30_000),
  })

const rules = [
  { match: 'GET /site/v2/pages', ttl: '1s', staleIfError: '1h' },
  { match: 'GET /site/v2/tags', ttl: '1s', staleWhileRevalidate: '1h' },
  { match: 'GET /site/v2/**', ttl: '60s' },
]

/** Starts the origins and the gateway. */
export const startMixedLoad = async (more: Readonly<Record<string, unknown>>): Promise<MixedLoad> => {
  let failing = false
  const site = await startOrigin(siteScript(() => failing))
  const legacy = await startOrigin(legacyScript)
  const narrow = await startOrigin(async (_, wire) => {
    await pause(50)
    wire.respond({})
  })
  // Every attempt except those without a server reaches its origin, however long a busy machine takes to connect.
  const timeouts = { connect: '30s' }
  const nobody = `http://127.0.0.1:${await freePort()}`
  const gateway = await startTestGateway({
    cache: { maxBytes: '256KiB', maxEntryBytes: '64KiB' },
    services: {
      site: siteService(site.origin, {
        discovery: { source: 'upstream' },
        batch: { split: 'chunk' },
        upstream: {
          targets: [site.origin],
          basePath: '/index.php/wp-json',
          retry: { budget: 0.01 },
          timeouts,
        },
        cache: { rules },
      }),
      legacy: {
        contract: 'open',
        mount: '/legacy',
        upstream: { targets: [legacy.origin, nobody], eject: { after: 3, for: '1s' }, timeouts },
        cache: { profile: 'rfc-shared-cache' },
      },
      narrow: {
        contract: 'open',
        mount: '/narrow',
        upstream: { targets: [narrow.origin], maxConcurrent: 1, queue: { max: 1, timeout: '1s' }, timeouts },
      },
      down: {
        contract: 'open',
        mount: '/down',
        upstream: {
          targets: [nobody],
          breaker: { minRequests: 2, for: '1m' },
          health: { path: '/up', interval: '250ms' },
        },
      },
    },
    ...more,
  })
  const sent = new Map<string, number>()

  const ask = async (service: string, path: string, init: RequestInit = {}): Promise<void> => {
    sent.set(service, (sent.get(service) ?? 0) + 1)
    const mount = service === 'site' ? '/index.php/site-json' : `/${service}`
    const response = await fetch(`${gateway.publicAddress}${mount}${path}`, init)
    await response.arrayBuffer()
  }
  const post = (content: unknown): RequestInit => ({
    method: 'POST',
    headers: { ...json, Authorization: 'Basic YTpi' },
    body: JSON.stringify(content),
  })
  const all = (times: number, one: (index: number) => Promise<void>): Promise<unknown> =>
    Promise.all(Array.from({ length: times }, (_, at) => one(at)))

  const reads = async (number: number): Promise<void> => {
    await ask('site', '/site/v2/posts?per_page=2')
    await ask('site', `/site/v2/posts?page=1&per_page=2&utm_source=${number}`)
    await ask('site', '/site/v2/posts?per_page=1000')
    await ask('site', '/site/v2/categories')
    await all(4, () => ask('site', `/site/v2/posts?search=slow${number}`))
    await all(3, (at) => ask('legacy', `/large/${number}/${at}`))
    await ask('legacy', `/private/${number}`)
    // Coded when it is asked for again, beside the response.
    for (let times = 0; times < 3; times += 1) {
      await ask('site', '/site/v2/posts?search=large')
      await pause(50)
    }
  }
  const writes = async (number: number): Promise<void> => {
    await ask('site', '/site/v2/posts/1', post({ slug: `a${number}` }))
    const item = (id: number) => ({ path: `/site/v2/posts/${id}`, body: { slug: `b${number}` } })
    await ask('site', '/batch/v1', post({ requests: [item(1), item(2), item(1), item(3), item(4)] }))
    // One is in flight while everything is removed.
    const late = ask('site', `/site/v2/posts?search=slow-late${number}`)
    await pause(20)
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: json,
      body: '{"all":true}',
    })
    await late
  }
  const faults = async (): Promise<void> => {
    failing = false
    await ask('site', '/site/v2/pages')
    await ask('site', '/site/v2/tags')
    await pause(1_100)
    failing = true
    await ask('site', '/site/v2/pages')
    await ask('site', '/site/v2/tags')
    await ask('site', '/site/v2/tags/7')
    await all(5, () => ask('narrow', '/'))
    await ask('down', '/')
    await ask('down', '/')
    await exchangeBytes(
      gateway.publicAddress,
      'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      20,
    )
  }
  return {
    gateway,
    sent,
    site,
    legacy,
    narrow,
    round: async (number) => {
      await writes(number)
      await faults()
      await reads(number)
    },
    close: async () => {
      await gateway.close()
      await Promise.all([site.close(), legacy.close(), narrow.close()])
    },
  }
}
