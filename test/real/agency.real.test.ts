import { execFile } from 'node:child_process'
import dns from 'node:dns'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { startBrowser } from '../support/browser.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { certificatePath, pem } from '../support/certificates.ts'
import { startHttpServer } from '../support/http-server.ts'
import { createKey, type Issuer, startIssuer } from '../support/issuer.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { createWpapiClient } from './clients/wpapi-client.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const example = fileURLToPath(new URL('../../config/agency.example.yaml', import.meta.url))
const run = promisify(execFile)
const hosts = { blog: 'blog.example', shop: 'www.shop.example', api: 'api.shop.example' } as const

/** An API with a WebSocket: both say which user the gateway has verified. */
const startApi = async () => {
  const { origin, server, close } = await startHttpServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ user: request.headers['x-user-id'], path: request.url }))
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, request) => {
    socket.on('message', (message) => socket.send(`${request.headers['x-user-id']}: ${message}`))
  })
  return {
    origin,
    close: async () => {
      sockets.close()
      await close()
    },
  }
}

describeWith('php', 'config/agency.example.yaml: two WordPress sites and an API behind one port', () => {
  let [port, adminPort] = [0, 0]
  let blog: WordPress
  let shop: WordPress
  let issuer: Issuer
  let api: Awaited<ReturnType<typeof startApi>>
  let trellis: RunningProcess
  let folder: string
  const systemLookup = dns.lookup

  const url = (host: keyof typeof hosts, path: string): string => `https://${hosts[host]}:${port}${path}`

  beforeAll(async () => {
    ;[port, adminPort] = [await freePort(), await freePort()]
    folder = await mkdtemp(join(tmpdir(), 'trellis-test-'))
    // The certificates of the tests sign themselves.
    await writeFile(join(folder, 'trusted.pem'), pem('blog.pem') + pem('shop.pem'))
    // wpapi takes no certificates to trust; curl and ws check those of the hosts.
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    // All names of .example are this machine for the clients in this process.
    Object.assign(dns, {
      lookup: (name: string, ...rest: [never, never]) =>
        systemLookup(name.endsWith('.example') ? '127.0.0.1' : name, ...rest),
    })
    blog = await startWordPress({ publicUrl: `https://${hosts.blog}:${port}` })
    shop = await startWordPress({ publicUrl: `https://${hosts.shop}:${port}` })
    issuer = await startIssuer([await createKey('one')])
    api = await startApi()
    trellis = startProcess(process.execPath, [await builtGateway(), 'start', '-c', example], {
      env: {
        TRELLIS_PORT: String(port),
        TRELLIS_ADMIN_PORT: String(adminPort),
        PUBLIC_PORT: `:${port}`,
        WORDPRESS_REST: '/index.php/wp-json',
        BLOG_ORIGIN: blog.origin,
        SHOP_ORIGIN: shop.origin,
        API_ORIGIN: api.origin,
        API_JWKS: issuer.url,
        BLOG_CERT: certificatePath('blog.pem'),
        BLOG_KEY: certificatePath('blog.key'),
        SHOP_CERT: certificatePath('shop.pem'),
        SHOP_KEY: certificatePath('shop.key'),
      },
    })
    await untilReady(trellis, async () => {
      const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      if (!response.ok) throw new Error(await response.text())
    })
  })
  afterAll(async () => {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    Object.assign(dns, { lookup: systemLookup })
    await trellis?.stop()
    await Promise.all([blog?.stop(), shop?.stop(), issuer?.close(), api?.close()])
  })

  /** `curl`, which checks the certificate of the host. */
  const curl = async (
    host: keyof typeof hosts,
    path: string,
    ...more: readonly string[]
  ): Promise<string> => {
    const where = ['--resolve', `${hosts[host]}:${port}:127.0.0.1`, '--cacert', join(folder, 'trusted.pem')]
    return (await run('curl', ['-s', '-i', ...where, ...more, url(host, path)])).stdout
  }

  const client = (host: 'blog' | 'shop', as: 'admin' | 'anonymous') =>
    createWpapiClient(
      {
        title: host,
        restRoot: url(host, '/index.php/wp-json'),
        names: 'wordpress',
        namespace: 'wp/v2',
        throughGateway: true,
        admin: (host === 'blog' ? blog : shop).credentials.admin,
      },
      as,
    )

  test('a write to one site shows at once on that site, and the other site keeps its own response', async () => {
    const title = async (host: 'blog' | 'shop'): Promise<unknown> => {
      const reader = await client(host, 'anonymous')
      const post = (await reader.collection('posts').id(1)) as { title: { rendered: string } }
      return post.title.rendered
    }
    const before = [await title('blog'), await title('shop')]
    expect(before[0]).toBe(before[1])
    const writer = await client('blog', 'admin')
    await writer.collection('posts').id(1).update({ title: 'Only of the blog' })
    expect([await title('blog'), await title('shop')]).toEqual(['Only of the blog', before[1]])
  })

  test('each host has its own certificate, discovery, links and headers', async () => {
    for (const host of ['blog', 'shop'] as const) {
      const response = await curl(host, '/index.php/wp-json/wp/v2/posts/1')
      expect(response).toMatch(/^HTTP\/2 200/)
      expect(response).toContain('strict-transport-security: max-age=31536000')
      expect(response).not.toContain('x-powered-by')
      expect(response).toContain(`link: <${url(host, '/index.php/')}`)
      const other = host === 'blog' ? 'shop' : 'blog'
      expect(response).not.toContain(hosts[other])
    }
    expect(await curl('shop', '/index.php/wp-json/wp/v2/posts/1')).toMatch(/cache-status: .*hit/)
  })

  test('a host that no service has gets 421', async () => {
    const unknown = [
      '--resolve',
      `other.shop.example:${port}:127.0.0.1`,
      '--cacert',
      join(folder, 'trusted.pem'),
    ]
    const { stdout } = await run('curl', ['-s', '-i', ...unknown, `https://other.shop.example:${port}/`])
    expect(stdout).toMatch(/^HTTP\/2 421/)
  })

  test('the API requires a token, and its upstream gets the verified user', async () => {
    expect(await curl('api', '/orders')).toMatch(/^HTTP\/2 401[\s\S]*www-authenticate: Bearer/)
    const forged = await curl('api', '/orders', '-H', 'X-User-Id: root')
    expect(forged).toMatch(/^HTTP\/2 401/)
    const token = await issuer.token()
    const authorized = ['-H', `Authorization: Bearer ${token}`]
    const response = await curl('api', '/orders', ...authorized, '-H', 'X-User-Id: root')
    expect(response).toMatch(/^HTTP\/2 200/)
    expect(response).toContain('{"user":"ann","path":"/orders"}')
  })

  test('a WebSocket of the API opens with a token only, and carries messages', async () => {
    const connect = (headers: Record<string, string>) =>
      new WebSocket(url('api', '/feed').replace('https', 'wss'), { ca: pem('shop.pem'), headers })
    const refused = connect({})
    const status = await new Promise((resolve) => {
      refused.on('unexpected-response', (_, response) => resolve(response.statusCode))
      refused.on('error', () => undefined)
    })
    expect(status).toBe(401)
    const socket = connect({ authorization: `Bearer ${await issuer.token()}` })
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    socket.send('hello')
    const message = await new Promise((resolve) => socket.once('message', resolve))
    expect(String(message)).toBe('ann: hello')
    socket.close()
  })

  test('a browser shows the pages of both sites under their own names', async () => {
    let browser: Browser | undefined
    try {
      browser = await startBrowser(['--host-resolver-rules=MAP *.example 127.0.0.1'])
      const context = await browser.newContext({ ignoreHTTPSErrors: true })
      for (const host of ['blog', 'shop'] as const) {
        const page = await context.newPage()
        const response = await page.goto(url(host, '/'))
        expect(response?.status(), await response?.text()).toBe(200)
        const links = await page.$$eval('a[href^="http"]', (all) =>
          all.map((one) => new URL(one.getAttribute('href') ?? '').host),
        )
        expect(links).toContain(`${hosts[host]}:${port}`)
      }
    } finally {
      await browser?.close()
    }
  })

  test('each service has its own metrics', async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    for (const service of ['blog', 'blog-pages', 'shop', 'shop-pages', 'api']) {
      expect(metrics).toMatch(new RegExp(`trellis_requests_total\\{service="${service}".*\\} [1-9]`))
    }
  })
})
