import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { prefersHtml } from '../../src/http/content-coding.ts'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

/** As browsers send it for a page. */
const ofBrowser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'

let folder: string
let own: string
let origin: Origin
let gateway: TestGateway
let dead: number

const config = () => {
  const upstream = { targets: [`http://127.0.0.1:${dead}`], breaker: { failureRatio: 0 } }
  const slow = { targets: [origin.origin], timeouts: { headers: '50ms' }, retry: { attempts: 1 } }
  return {
    rateLimits: [{ name: 'few', service: 'pages', match: 'GET /limited', max: 1, window: '1h' }],
    services: {
      pages: { contract: 'open', mount: '/pages', upstream },
      slow: { contract: 'open', mount: '/slow', upstream: slow },
      shop: { contract: 'open', mount: '/shop', upstream, errorPage: own },
      site: {
        contract: 'site',
        mount: '/wp-json',
        upstream,
        discovery: { source: 'static', identity: { name: 'x' } },
      },
    },
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-error-pages-'))
  own = join(folder, 'error.html')
  await writeFile(own, '<h1>Shop {{status}}: {{ message }}</h1><p>{{requestId}}|{{retryAfter}}|{{title}}')
  dead = await freePort()
  origin = await startOrigin(() => new Promise(() => {}))
  gateway = await startTestGateway(config())
})
closeAfterAll(() => [gateway, origin])

const get = async (path: string, accept: string | undefined = ofBrowser, method = 'GET') => {
  const response = await fetch(gateway.publicAddress + path, {
    method,
    headers: { ...(accept === undefined ? {} : { accept }) },
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

describe('a browser gets an error of the gateway as a page', () => {
  test.each([
    [
      'that says nothing of the upstream, when it is down',
      '/pages/a',
      502,
      'The site does not answer correctly',
    ],
    ['when the upstream is too slow', '/slow/a', 504, 'The site took too long to answer.'],
    ['where no service is', '/nowhere', 404, 'There is no page at this address.'],
  ])('%s', async (_what, path, status, text) => {
    const page = await get(path)
    expect(page.status).toBe(status)
    expect(page.text).toContain(`<h1>${text}`)
    expect(page.text).toContain(`request ${page.headers.get('x-request-id')}</small>`)
    expect(page.text).not.toMatch(/upstream|127\.0\.0\.1|ECONN|<script/i)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('vary')).toBe('Accept')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('with Retry-After in words', async () => {
    await get('/pages/limited')
    const page = await get('/pages/limited')
    expect(page.status).toBe(429)
    expect(Number(page.headers.get('retry-after'))).toBeGreaterThan(3_000)
    expect(page.text).toContain('<p>Please try again in 60 minutes.</p>')
  })

  test('and with HEAD its head alone', async () => {
    const [head, page] = [await get('/pages/a', ofBrowser, 'HEAD'), await get('/pages/a')]
    expect(head.text).toBe('')
    expect(head.status).toBe(502)
    expect(head.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(Math.abs(Number(head.headers.get('content-length')) - page.text.length)).toBeLessThan(3)
  })

  test('from an own file, with its placeholders filled in', async () => {
    const { text, headers } = await get('/shop/a')
    const id = headers.get('x-request-id')
    expect(text).toBe(
      `<h1>Shop 502: The site does not answer correctly at the moment.</h1><p>${id}|Please try again in a moment.|Bad Gateway`,
    )
  })

  test('from an own file that was changed, after a reload', async () => {
    await writeFile(own, 'changed {{status}}')
    expect(await gateway.put(config())).toMatchObject({ kind: 'applied' })
    expect((await get('/shop/a')).text).toBe('changed 502')
  })
})

describe('JSON as before', () => {
  test.each([
    ['a client that takes anything', '*/*'],
    ['a client that prefers JSON', 'text/html;q=0.5, application/json'],
    ['a client that takes both alike', 'text/html, application/problem+json'],
  ])('for %s', async (_who, accept) => {
    const { text, headers } = await get('/pages/a', accept)
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(headers.get('vary')).toBeNull()
    expect(JSON.parse(text)).toEqual({
      type: 'about:blank',
      title: 'The upstream could not be reached.',
      status: 502,
      code: 'upstream_unreachable',
    })
  })

  test('for a browser that opens a route of a site', async () => {
    expect((await get('/wp-json/site/v2/posts')).headers.get('content-type')).toContain('application/json')
  })
})

test.each([
  [ofBrowser, true],
  ['text/html', true],
  ['text/*;q=0.3', true],
  ['TEXT/HTML ; Q=0.9, application/*;q=0.8', true],
  ['*/*', false],
  ['', false],
  ['text/html;q=0', false],
  ['text/html;q=0.8, */*', false],
  ['text/html;q=0.2, application/*;q=0.1, application/problem+json;q=0.3', false],
  [`${'a/b,'.repeat(10_000)}text/html`, false],
])('%s prefers HTML: %s', (accept, expected) => {
  expect(prefersHtml(accept)).toBe(expected)
})

test.each([
  [
    'a file that does not exist',
    undefined,
    /^the file .*none\.html cannot be read, it does not exist \(ENOENT\)$/,
  ],
  ['a file that is too large', 'x'.repeat(70_000), /^the file is larger than 64 KiB$/],
  ['an unknown placeholder', 'a {{detail}}', /^the file has \{\{detail\}\}; write one of \{\{status\}\}, /],
  ['too many placeholders', '{{status}}'.repeat(101), /^the file has more than 100 placeholders$/],
])('errorPage with %s is a fault', async (_what, content, message) => {
  const file = join(folder, content === undefined ? 'none.html' : 'wrong.html')
  if (content !== undefined) await writeFile(file, content)
  const result = await checkConfig(
    `services: { a: { contract: open, mount: /, upstream: { targets: ['http://127.0.0.1:1'] }, errorPage: ${file} } }`,
    {},
  )
  expect(result).toMatchObject({
    kind: 'faults',
    faults: [{ path: 'services.a.errorPage', message: expect.stringMatching(message) }],
  })
})

test('what a page shows is escaped', async () => {
  const { createErrorPage } = await import('../../src/service/error-page.ts')
  const { GatewayError } = await import('../../src/errors.ts')
  const page = createErrorPage('{{requestId}}{{status}}')
  expect(page(new GatewayError('internal'), `<b>'"&`)).toBe('&lt;b&gt;&#39;&quot;&amp;500')
})
