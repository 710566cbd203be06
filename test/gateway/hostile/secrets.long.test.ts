import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkConfig } from '../../../src/gateway/load-config.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// Secrets go every way there is; then everything that the gateway says of itself is searched for them.

const planted = {
  basic: 'cGxhbnRlZDpiYXNpYw',
  bearer: 'planted-bearer',
  cookie: 'planted-cookie',
  nonceHeader: 'planted-nonce-field',
  nonceParameter: 'planted-nonce-parameter',
  password: 'planted-password',
  token: 'planted-token',
  userinfo: 'planted-userinfo',
  path: 'planted-path',
  content: 'planted-content',
  idempotencyKey: 'planted-idempotency-key',
  headerName: 'x-planted-field-name',
  headerValue: 'planted-field-value',
  method: 'PLANTED-METHOD',
  upstreamResponse: 'planted-upstream-answer',
  admin: 'planted-admin-token',
  tier: 'planted-tier-password',
} as const

const headers = {
  Authorization: `Bearer ${planted.bearer}`,
  Cookie: `wordpress_logged_in_x=${planted.cookie}; session=${planted.cookie}`,
  'X-WP-Nonce': planted.nonceHeader,
  'Idempotency-Key': planted.idempotencyKey,
  'X-Api-Key': planted.token,
  [planted.headerName]: planted.headerValue,
}
const query = `password=${planted.password}&_wpnonce=${planted.nonceParameter}&access_token=${planted.token}&search=${planted.content}`
const site = '/index.php/site-json/site/v2'

/** For the two requests that are never answered; the others are to be, on a busy machine too. */
const noLonger = { headers: '2s', total: '2s' }

let origin: Origin
let gateway: GatewayProcess
let said = ''

beforeAll(async () => {
  origin = await startOrigin()
  const target = { targets: [origin.origin] }
  gateway = await startGatewayProcess({
    log: { level: 'trace' },
    admin: { token: planted.admin },
    services: {
      plants: {
        contract: 'plants',
        mount: '/',
        upstream: {
          ...target,
          timeouts: noLonger,
        },
      },
      site: {
        contract: 'site',
        mount: '/index.php/site-json',
        discovery: { source: 'static', identity: { name: 'x' } },
        upstream: {
          ...target,
          basePath: '/index.php/wp-json',
          timeouts: noLonger,
        },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] },
      },
      open: { contract: 'open', mount: '/open', upstream: target, cache: { profile: 'rfc-shared-cache' } },
      gone: {
        contract: 'open',
        mount: '/gone',
        upstream: { targets: [`http://127.0.0.1:${await freePort()}`] },
      },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

const ask = async (path: string, init: RequestInit = {}): Promise<number> => {
  const response = await fetch(`${gateway.origin}${path}`, {
    ...init,
    headers: { ...headers, ...init.headers },
  })
  const text = await response.text()
  // What an upstream says is the caller's, also in a batch; what the gateway says itself is searched.
  if (!response.headers.has('x-scripted') && response.status !== 207)
    said += `${JSON.stringify([...response.headers])}${text}\n`
  return response.status
}
const json = (content: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: typeof content === 'string' ? content : JSON.stringify(content),
})
const raw = async (bytes: string): Promise<void> => {
  said += await exchangeBytes(gateway.origin, bytes)
}

const admin = async (path: string, init?: RequestInit): Promise<void> => {
  said += await (await fetch(`${gateway.adminOrigin}${path}`, init)).text()
}
const own = { headers: { Authorization: `Bearer ${planted.admin}` } }

const sendAll = async (): Promise<void> => {
  const plain = {
    headers: { 'X-Scripted': '1', 'Cache-Control': 'max-age=60', ETag: `"${planted.upstreamResponse}"` },
  }
  origin.script = (_, wire) => wire.respond({ ...plain, content: `{"slug":"${planted.upstreamResponse}"}` })
  for (let i = 0; i < 2; i += 1) {
    await ask(`/open/kept?access_token=${planted.token}`)
    await ask(`${site}/posts?${query}`)
    await ask(`${site}/posts/5`)
  }
  // Public, and so listed among the stored responses.
  for (const target of [`/open/kept?access_token=${planted.token}&a=1`, `${site}/posts/8`])
    await (await fetch(`${gateway.origin}${target}`)).text()
  await admin('/cache/entries?limit=1000', own)
  await ask('/plants')
  // Refusals.
  await ask(`${site}/posts?per_page=0&${query}`)
  await ask(`${site}/posts?_method=${planted.content}`)
  await ask(`${site}/${planted.path}/..%2f?${query}`)
  await ask(`/${planted.path}?${query}`)
  await ask(`${site}/posts/1?id=${planted.content}`)
  await ask(`${site}/posts`, json(`{"title":"${planted.content}`))
  await ask(`${site}/posts`, json({ status: planted.content, password: planted.password }))
  await ask(`/plants`, json({ id: planted.content }))
  await ask(`${site}/posts`, {
    method: 'POST',
    headers: { 'Content-Type': `text/${planted.content}` },
    body: planted.content,
  })
  await ask(
    '/index.php/site-json/batch/v1',
    json({ requests: [{ path: `${planted.path}`, body: planted.content }] }),
  )
  // Batches.
  const item = {
    path: `/site/v2/posts/5?${query}`,
    method: 'PUT',
    body: { title: planted.content, password: planted.password },
  }
  await ask(
    '/index.php/site-json/batch/v1',
    json({ requests: [item, { ...item, path: `/site/v2/posts?${query}` }] }),
  )
  // Routes that no row lists, and writes of every kind.
  await ask(`/index.php/site-json/reset/v1/${planted.path}?${query}`)
  await ask(`/open/${planted.path}?${query}`, { method: 'POST', body: planted.content })
  await ask(`${site}/posts/5`, {
    ...json({ title: planted.content, password: planted.password }),
    method: 'PUT',
  })
  // Faults.
  await ask(`/gone/${planted.path}?${query}`)
  await ask(`/gone/${planted.path}?${query}`, { method: 'POST', body: planted.content })
  origin.script = (_, wire) => wire.reset()
  await ask(`${site}/posts/6?${query}`)
  await ask(`/open/${planted.path}/reset?${query}`)
  await ask(`${site}/posts/6`, json({ title: planted.content }))
  origin.script = (_, wire) => wire.write(`HTTP/1.1 200 OK\r\nX ${planted.upstreamResponse}: 1\r\n\r\n`)
  await ask(`/open/${planted.path}/garbage?${query}`)
  origin.script = () => {}
  await ask(`${site}/posts/7?${query}`)
  await ask('/plants')
  origin.script = (_, wire) => wire.respond(plain)
  // A request that comes back.
  let via = ''
  origin.script = (request, wire) => {
    via = request.headers['via'] ?? ''
    wire.respond(plain)
  }
  await ask('/open/via')
  await ask(`/open/${planted.path}/loop?${query}`, { headers: { Via: via } })
  // Bytes that are no request.
  await raw(`GET http://u:${planted.userinfo}@a/open/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await raw(`GET /open/${planted.path}?${query} HTTP/1.1\r\nHost : ${planted.headerValue}\r\n\r\n`)
  await raw(
    `GET /open/${planted.path} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${planted.basic}\r\nX: \0${planted.headerValue}\r\n\r\n`,
  )
  await raw(`${planted.method} /open/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await raw(
    `GET /${'x'.repeat(9_000)}${planted.path} HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${planted.basic}\r\n\r\n`,
  )
  // The admin side.
  await admin('/cache/entries', { headers: { Authorization: `Bearer ${planted.admin}-wrong` } })
  await admin(`/cache/purge`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${planted.admin}`, 'Content-Type': 'application/json' },
    body: `{"${planted.content}":1}`,
  })
  for (const path of [
    '/metrics',
    '/livez',
    '/readyz',
    '/',
    '/config',
    '/drift',
    '/openapi.json',
    '/docs',
    '/cache/entries?limit=1000',
    '/cache/entries?sort=hits',
    '/cache/entries?sort=age',
    '/explain?url=/open/x',
    `/explain?url=${site}/posts/5`,
    '/status',
  ])
    await admin(path, own)
}

test('no secret is in a log line, a metric, an error, or a page of the admin side', async () => {
  await sendAll()
  const shown = ['trellis_requests_total', '/open/kept?', '/site/v2/posts/8"'].filter((text) =>
    said.includes(text),
  )
  expect(shown).toHaveLength(3)
  // Log lines come through their own pipe.
  await expect.poll(() => gateway.program.output()).toContain('request-refused')
  const leaks = Object.entries(planted).flatMap(([name, value]) => [
    ...(gateway.program.output().toLowerCase().includes(value.toLowerCase()) ? [`${name} in the log`] : []),
    ...(said.toLowerCase().includes(value.toLowerCase()) ? [`${name} in what the gateway says`] : []),
  ])
  expect(leaks).toEqual([])
})

test('nor in what the admin side shows of a write, in any spelling', async () => {
  const secret = 'userPin=planted-pin&Password=planted%26second&%61ccess_token=planted%2Dthird'
  for (const target of [`/open/Login/?${secret}`, `/open/login?${secret}`])
    await ask(target, { method: 'POST', body: '1' })
  const response = await fetch(`${gateway.adminOrigin}/recent`, own)
  const { invalidations } = (await response.json()) as { invalidations: { reach: string[] }[] }
  const reached = invalidations
    .slice(0, 2)
    .map(({ reach }) => reach.filter((tag) => !tag.endsWith('/all')).map((tag) => tag.replace(/^.*:/, '')))
  const hidden = 'userPin=[redacted]&Password=[redacted]&%61ccess_token=[redacted]'
  expect(reached).toEqual([[`/login?${hidden}`], [`/Login/?${hidden}`]])
})

test('the upstream got those that are meant for it, and no other', () => {
  const heads = origin.received.map(({ head }) => head).join('\n')
  expect(heads).toContain(`authorization: Bearer ${planted.bearer}`)
  expect(heads).not.toContain(planted.admin)
})

test.each([
  ['an upstream with credentials', { upstream: { targets: [`http://user:${planted.admin}@127.0.0.1`] } }, {}],
  ['a public URL with credentials', {}, { publicUrl: `http://user:${planted.admin}@a` }],
  ['a tier that cannot be', {}, { cache: { shared: { url: `http://:${planted.tier}@127.0.0.1` } } }],
  ['a token of the wrong kind', {}, { admin: { token: [planted.admin] } }],
])('%s: the fault does not repeat it', async (_, service, top) => {
  const text = JSON.stringify({
    ...top,
    services: {
      open: { contract: 'open', mount: '/open', upstream: { targets: ['http://127.0.0.1'] }, ...service },
    },
  })
  const checked = await checkConfig(text, {})
  expect(checked.kind).toBe('faults')
  expect(JSON.stringify(checked)).not.toMatch(/planted/)
})
