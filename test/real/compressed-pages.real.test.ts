import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Nginx, startNginx } from '../support/nginx.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

type Got = {
  readonly status: number
  readonly coding: string
  readonly cacheStatus: string
  readonly bytes: number
}

/** The octets of a content as they are sent, without decoding. */
const get = (url: string, headers: Record<string, string>): Promise<Got> =>
  new Promise((resolve, reject) => {
    request(url, { headers }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          coding: response.headers['content-encoding'] ?? 'none',
          cacheStatus: String(response.headers['cache-status'] ?? ''),
          bytes,
        }),
      )
    })
      .on('error', reject)
      .end()
  })

const rest = '/index.php/wp-json/wp/v2'
const responses = ['posts?per_page=10', 'pages?per_page=10', 'categories?per_page=50'].map(
  (path) => `${rest}/${path}`,
)
const kinds = ['miss', 'hit', 'bypass'] as const

describeWith('php', 'a WordPress', () => {
  describeWith('nginx', 'behind an nginx that compresses', () => {
    let wordpress: WordPress
    let nginx: Nginx
    let gateway: TestGateway
    const sizes: string[] = []

    beforeAll(async () => {
      const port = await freePort()
      const publicUrl = `http://127.0.0.1:${port}`
      wordpress = await startWordPress({ publicUrl })
      nginx = await startNginx(wordpress.origin, { gzipLevel: 6 })
      gateway = await startTestGateway({
        listen: { port },
        publicUrl,
        services: {
          site: {
            contract: 'site',
            names: 'same',
            mount: '/index.php/wp-json',
            upstream: { targets: [nginx.address], basePath: '/index.php/wp-json', host: 'preserve' },
          },
          pages: {
            contract: 'open',
            mount: '/',
            upstream: { targets: [nginx.address], host: 'preserve' },
            cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
          },
        },
      })
    })
    afterAll(async () => {
      await gateway.close()
      await nginx.stop()
      await wordpress.stop()
      if (process.env['SHOW_SIZES'] !== undefined) process.stdout.write(`${sizes.join('\n')}\n`)
    })

    test.each(
      ['gzip', 'gzip, deflate, br', 'br;q=0.5, gzip'].flatMap((accepted) =>
        ['/', ...responses].map((path) => [path, accepted] as const),
      ),
    )('%s is no longer through the gateway than from nginx, with %s', async (path, accepted) => {
      const headers = { 'Accept-Encoding': accepted }
      // Different for each case, so that the first request is a miss.
      const target = `${path}${path.includes('?') ? '&' : '?'}_=${encodeURIComponent(accepted)}`
      const { host } = new URL(gateway.publicAddress)
      const direct = await get(`${nginx.address}${target}`, { ...headers, Host: host })
      expect(direct.coding).toBe('gzip')
      const credential = { Authorization: basic(wordpress.credentials.editor) }
      for (const kind of kinds) {
        const through = await get(`${gateway.publicAddress}${target}`, {
          ...headers,
          ...(kind === 'bypass' ? credential : {}),
        })
        sizes.push(`${kind} ${target}: ${through.coding} ${through.bytes}, direct ${direct.bytes}`)
        expect(through.status).toBe(direct.status)
        expect(through.cacheStatus).toContain({ miss: 'stored', hit: 'hit', bypass: 'bypass' }[kind])
        expect(through.bytes / direct.bytes).toBeLessThanOrEqual(1.02)
      }
    })
  })
})
