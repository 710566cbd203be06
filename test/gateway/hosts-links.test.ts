import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll, closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

type Tree = { readonly [key: string]: unknown }

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  origin = await startOrigin()
})
closeAfterAll(() => [origin])
beforeEach(() => {
  origin.received.length = 0
  // As WordPress writes links: with its own address.
  origin.script = ({ target, headers, method }, wire) => {
    const root = `http://${headers['host']}/index.php/wp-json`
    const self = `${root}/wp/v2/posts/1`
    wire.respond({
      status: method === 'POST' ? 201 : 200,
      headers: {
        'Content-Type': 'application/json; charset=UTF-8',
        Link: `<${root}/>; rel="https://api.w.org/"`,
        'X-Powered-By': 'PHP/8',
        ...(method === 'POST' ? { Location: self } : {}),
      },
      content: target.includes('/posts/1')
        ? JSON.stringify({ id: 1, _links: { self: [{ href: self }] } })
        : JSON.stringify([{ id: 1, _links: { self: [{ href: self }] } }]),
    })
  }
})

const mount = '/index.php/site-json'
const start = async (services: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({ services, publicUrl: 'https://gateway.example', ...more })
}

type Options = { readonly method?: string; readonly lines?: readonly string[]; readonly content?: string }
type Row = [title: string, path: string, options?: Options]
type Reply = { readonly status: number; readonly head: string; readonly body: string }
const ask = async (
  host: string,
  path: string,
  { method = 'GET', lines = [], content = '' }: Options = {},
): Promise<Reply> => {
  const bytes = await exchangeBytes(
    gateway.publicAddress,
    [
      `${method} ${path} HTTP/1.1`,
      `Host: ${host}`,
      ...lines,
      ...(content === ''
        ? []
        : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(content)}`]),
      'Connection: close',
      '',
      content,
    ].join('\r\n'),
  )
  const end = bytes.indexOf('\r\n\r\n')
  return { status: Number(bytes.slice(9, 12)), head: bytes.slice(0, end), body: bytes.slice(end + 4) }
}
const header = ({ head }: Reply, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim()
/** Every http(s) URL in head and body, without what is behind its host. */
const hostsIn = ({ head, body }: Reply): string[] =>
  [...new Set(`${head}${body.replaceAll('\\/', '/')}`.match(/https?:\/\/[^/"<>\s]+/g) ?? [])]
    .filter((url) => url !== 'https://api.w.org')
    .sort()

const everywhere: readonly [title: string, path: string, options?: Parameters<typeof ask>[2]][] = [
  ['a read', `${mount}/site/v2/posts`],
  ['the same read again', `${mount}/site/v2/posts`],
  ['the index', `${mount}/`],
  ['a namespace', `${mount}/site/v2`],
  ['OPTIONS', `${mount}/site/v2/posts`, { method: 'OPTIONS' }],
  ['an error of the gateway', `${mount}/nothing/here`, { method: 'DELETE' }],
  ['an invalid argument', `${mount}/site/v2/posts?per_page=x`],
  ['a creation', `${mount}/site/v2/posts`, { method: 'POST', content: '{"title":"x"}' }],
  [
    'a batch',
    `${mount}/batch/v1`,
    {
      method: 'POST',
      content: '{"requests":[{"path":"/site/v2/posts","method":"POST","body":{"title":"x"}}]}',
    },
  ],
]

describe('links of a service with several hosts use the host that was asked', () => {
  beforeAll(() => start({ blog: siteService(origin.origin, { hosts: ['blog.example', '*.shop.example'] }) }))
  closeAfterAll(() => [gateway])

  test.each(everywhere)('%s', async (_, path, options) => {
    for (const host of ['blog.example', 'a.shop.example', 'b.shop.example']) {
      for (const spelling of [host, `${host.toUpperCase()}.:99`]) {
        const response = await ask(spelling, path, options)
        expect(response.status).toBeLessThan(500)
        expect(hostsIn(response)).toEqual([`https://${host}`])
      }
    }
  })
})

describe('links of a service with a public URL use it for every host', () => {
  const hosts = ['blog.example', '*.shop.example']
  beforeAll(() =>
    start({ blog: siteService(origin.origin, { hosts, publicUrl: 'https://www.blog.example/p' }) }),
  )
  closeAfterAll(() => [gateway])

  test.each(everywhere)('%s', async (_, path, options) => {
    for (const host of ['blog.example', 'a.shop.example']) {
      const response = await ask(host, path, options)
      expect(hostsIn(response)).toEqual(['https://www.blog.example'])
      expect(response.head).toContain('<https://www.blog.example/p/index.php/site-json/>')
    }
  })
})

describe('links of a service with one host use that host', () => {
  beforeAll(() =>
    start({
      blog: siteService(origin.origin, { hosts: ['blog.example'] }),
      other: siteService(origin.origin),
    }),
  )
  closeAfterAll(() => [gateway])

  test.each(everywhere)('%s', async (_, path, options) => {
    expect(hostsIn(await ask('blog.example:99', path, options))).toEqual(['https://blog.example'])
    expect(hostsIn(await ask('evil.test', path, options))).toEqual(['https://gateway.example'])
  })
})

describe('links of a service', () => {
  closeAfterEach(() => [gateway])

  test('a link in the body of a write reaches the upstream as its own, whichever host it names', async () => {
    await start({ blog: siteService(origin.origin, { hosts: ['a.example', 'b.example'] }) })
    const content = JSON.stringify({ title: `https://b.example${mount}/site/v2/posts/1` })
    await ask('b.example', `${mount}/site/v2/posts`, { method: 'POST', content })
    expect(origin.received.at(-1)?.content.toString()).toContain(
      JSON.stringify(`${origin.origin}/index.php/wp-json/wp/v2/posts/1`),
    )
  })

  test('an upstream that sees the host may write its links with it', async () => {
    await start({
      blog: siteService(origin.origin, {
        hosts: ['a.example', 'b.example'],
        discovery: { source: 'upstream' },
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', host: 'preserve' },
      }),
    })
    origin.script = ({ headers }, wire) => {
      const root = `http://${headers['host']}/index.php/wp-json`
      wire.respond({
        headers: { 'Content-Type': 'application/json' },
        content: JSON.stringify({
          ...{ name: 'x', home: `http://${headers['host']}`, namespaces: ['wp/v2'] },
          routes: {
            '/': { namespace: '', methods: ['GET'], endpoints: [], _links: { self: [{ href: `${root}/` }] } },
          },
          _links: { self: [{ href: `${root}/wp/v2/posts/1` }] },
        }),
      })
    }
    await ask('a.example', `${mount}/`)
    for (const host of ['a.example', 'b.example']) {
      const response = await ask(host, `${mount}/site/v2/posts/1`)
      expect(response.body.replaceAll('\\/', '/')).toContain(`"https://${host}${mount}/site/v2/posts/1"`)
      expect(origin.received.at(-1)?.headers['host']).toBe(host)
    }
  })

  test('the response to OPTIONS has them when the upstream fails', async () => {
    await start({ blog: siteService(origin.origin, { hosts: ['blog.example', '*.shop.example'] }) })
    origin.script = (_, wire) => wire.respond({ status: 500 })
    for (const host of ['blog.example', 'a.shop.example']) {
      const response = await ask(host, `${mount}/site/v2/posts`, { method: 'OPTIONS' })
      expect(response.status).toBe(200)
      expect(hostsIn(response)).toEqual([`https://${host}`])
      expect(response.body.replaceAll('\\/', '/')).toContain(`"https://${host}${mount}/site/v2/posts"`)
      expect(header(response, 'content-length')).toBe(String(response.body.length))
    }
  })

  test('the OpenAPI document names the URL of each service', async () => {
    await start({
      blog: siteService(origin.origin, { hosts: ['blog.example'] }),
      plants: { contract: 'plants', upstream: { targets: [origin.origin] } },
    })
    const document = (await (await fetch(`${gateway.adminAddress}/openapi.json`)).json()) as {
      paths: Record<string, { servers?: unknown }>
    }
    expect(document.paths['/plants']?.servers).toBeUndefined()
    expect(document.paths[`${mount}/site/v2/posts`]?.servers).toEqual([{ url: 'https://blog.example' }])
  })
})

describe('response headers of a service', () => {
  const responseHeaders = {
    set: { 'Strict-Transport-Security': 'max-age=31536000', via: 'own', 'Cache-Control': 'no-store' },
    remove: ['x-powered-by', 'X-Request-Id', 'Link', 'Cache-Status'],
  }
  const expectChanged = (response: Reply): void => {
    expect(response.head.match(/^strict-transport-security: max-age=31536000$/gim)).toHaveLength(1)
    expect(response.head.match(/^via: .*$/gim)).toEqual([expect.stringMatching(/^via: own$/)])
    expect(response.head.match(/^cache-control: .*$/gim)).toEqual(['Cache-Control: no-store'])
    expect(response.head).not.toMatch(/^(?:x-powered-by|x-request-id|link|cache-status):/im)
  }

  describe('are applied', () => {
    beforeAll(() =>
      start(
        { blog: siteService(origin.origin, { responseHeaders }) },
        { limits: { urlBytes: '8KiB', headerBytes: '16KiB' } },
      ),
    )
    closeAfterAll(() => [gateway])

    test.each([
      ...everywhere,
      ['an overlong URL', `${mount}/${'x'.repeat(9_000)}`],
      ['a malformed field', `${mount}/`, { lines: ['a b: c'] }],
      ['a refused method', `${mount}/`, { method: 'CONNECTED' }],
    ] as Row[])('to %s', async (_, path, options) => expectChanged(await ask('any.example', path, options)))
  })

  describe('which are applied', () => {
    closeAfterEach(() => [gateway])

    test('to hits, 304 and HEAD, and not to what is stored', async () => {
      const services = (more: Tree): Tree => ({ blog: siteService(origin.origin, more) })
      await start(services({ responseHeaders }))
      const path = `${mount}/site/v2/posts`
      const first = await ask('x', path)
      const etag = header(first, 'etag')
      expect(etag).toBeDefined()
      for (const [method, status] of [
        ['GET', 304],
        ['HEAD', 304],
      ] as const) {
        const response = await ask('x', path, { method, lines: [`If-None-Match: ${etag}`] })
        expect(response.status).toBe(status)
        expectChanged(response)
      }
      const head = await ask('x', path, { method: 'HEAD' })
      expectChanged(head)
      expect(header(head, 'content-length')).toBe(header(first, 'content-length'))
      expect(origin.received).toHaveLength(1)
      // A reload with other headers keeps what is stored, and shows what the upstream had sent.
      const config = { publicUrl: 'https://gateway.example', services: services({}) }
      expect(await gateway.put(config)).toMatchObject({ kind: 'applied' })
      const after = await ask('x', path)
      expect(header(after, 'x-powered-by')).toBe('PHP/8')
      expect(header(after, 'cache-status')).toContain('hit')
      expect(origin.received).toHaveLength(1)
    })

    test('behind CORS, to preflights as well', async () => {
      await start(
        {
          blog: siteService(origin.origin, {
            hosts: ['blog.example'],
            responseHeaders: {
              ...responseHeaders,
              set: { ...responseHeaders.set, 'Access-Control-Max-Age': '5' },
            },
          }),
          other: siteService(origin.origin),
        },
        { cors: { origins: ['https://app.example'] } },
      )
      const lines = ['Origin: https://app.example']
      const read = await ask('blog.example', `${mount}/site/v2/posts`, { lines })
      expectChanged(read)
      expect(header(read, 'access-control-allow-origin')).toBe('https://app.example')
      const preflight = await ask('blog.example', `${mount}/site/v2/posts`, {
        method: 'OPTIONS',
        lines: [...lines, 'Access-Control-Request-Method: GET'],
      })
      expect(preflight.status).toBe(204)
      expect(header(preflight, 'strict-transport-security')).toBe('max-age=31536000')
      expect(header(preflight, 'access-control-max-age')).toBe('5')
      const other = await ask('other.example', `${mount}/site/v2/posts`, { lines })
      expect(header(other, 'strict-transport-security')).toBeUndefined()
    })

    test('to one service and not to the responses of its batch items', async () => {
      await start({
        blog: siteService(origin.origin, { responseHeaders }),
        open: { contract: 'open', mount: '/o', upstream: { targets: [origin.origin] } },
      })
      expect(header(await ask('x', '/o/x'), 'strict-transport-security')).toBeUndefined()
      const content = '{"requests":[{"path":"/site/v2/posts","method":"POST","body":{"title":"x"}}]}'
      const batch = await ask('x', `${mount}/batch/v1`, { method: 'POST', content })
      expectChanged(batch)
      expect(batch.body).not.toContain('Strict-Transport-Security')
    })
  })
})
