import { keyPair } from '../support/certificates.ts'
import { freePort } from '../support/ports.ts'
import type { Tree } from './attack-row.ts'

export const site = '/index.php/site-json'

/** An open service at /open that stores only /hit and /read. */
export const openService = (upstream: string, more: Tree = {}): Tree => ({
  contract: 'open',
  mount: '/open',
  upstream: { targets: [upstream], ...(more['upstream'] as object | undefined) },
  cache: {
    rules: [
      { match: 'GET /hit/**', ttl: '10m' },
      { match: 'GET /read/**', ttl: '10m' },
    ],
    ...(more['cache'] as object | undefined),
  },
})

export const siteService = (upstream: string, more: Tree = {}): Tree => ({
  contract: 'site',
  mount: site,
  // The upstream of the attacks has no site index.
  discovery: { source: 'static', identity: { name: 'Attacked site' } },
  ...more,
  upstream: {
    targets: [upstream],
    basePath: '/index.php/wp-json',
    ...(more['upstream'] as object | undefined),
  },
})

export const plantsService = (upstream: string): Tree => ({
  contract: 'plants',
  mount: '/',
  upstream: { targets: [upstream] },
})

export const openReads = { miss: '/open/read/{n}', hit: '/open/hit/a' }
export const siteReads = { miss: `${site}/site/v2/posts?search={n}`, hit: `${site}/site/v2/posts` }

/** `listen` with TLS and HTTP/2. */
export const withTls = async (): Promise<Tree> => ({
  host: '127.0.0.1',
  port: await freePort(),
  http2: true,
  tls: keyPair('good'),
})
