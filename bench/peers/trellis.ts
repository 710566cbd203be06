import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keyPair } from '../../test/support/certificates.ts'
import { freePort } from '../../test/support/ports.ts'
import type { Peer } from '../peer.ts'
import { factsOf } from '../scenarios.ts'
import { profiling } from '../serve-command.ts'
import { fileTargets, plainTargets } from './targets.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const posts = '/index.php/site-json/site/v2/posts'

const targets = {
  ...fileTargets,
  ...plainTargets,
  hit: `${posts}?per_page=8`,
  'hit-cors': `${posts}?per_page=8`,
  'hit-cors-none': `${posts}?per_page=8`,
  'hit-headers': `${posts}?per_page=8`,
  'hit-limits': `${posts}?per_page=8`,
  'hit-all': `${posts}?per_page=8`,
  'hit-tls': `${posts}?per_page=8`,
  'hit-h2': `${posts}?per_page=8`,
  'not-modified-h2': `${posts}?per_page=8`,
  'not-modified': `${posts}?per_page=8`,
  'miss-site': `${posts}?per_page=8&offset=`,
  refusal: `${posts}?per_page=1000`,
  'purge-storm': `${posts}?per_page=8`,
} satisfies Peer['targets']

type Kind = {
  readonly name: string
  readonly title: string
  readonly targets: Peer['targets']
  readonly main: string
}

const builtGateway = ({ name, title, targets, main }: Kind): Peer => {
  let adminPort = 0
  return {
    name,
    title,
    targets,
    missing: () => (existsSync(main) ? undefined : 'dist/main.js: run npm run build'),
    async command({ port, originPort, folder, settings = [], over }) {
      const added = (to: 'gateway' | 'site') =>
        Object.assign({}, ...settings.filter(({ of }) => of === to).map(({ tree }) => tree)) as object
      const file = join(folder, 'gateway.yaml')
      const upstreams = [`http://127.0.0.1:${originPort}`]
      const upstream = (basePath: string) => ({ targets: upstreams, basePath })
      adminPort = await freePort()
      const config = {
        listen: {
          ...{ host: '127.0.0.1', port },
          ...(over === undefined ? {} : { tls: keyPair('good'), http2: over === 'h2' }),
        },
        admin: { host: '127.0.0.1', port: adminPort },
        publicUrl: `${over === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
        // The level of production: a line for what fails, none for what is answered.
        log: { level: 'info', format: 'json' },
        drain: { delay: '0s', timeout: '1s' },
        cache: { maxBytes: '1GiB' },
        services: {
          site: {
            contract: 'site',
            mount: '/index.php/site-json',
            names: 'wordpress',
            // The origin has no index: arguments are checked by the contract.
            discovery: { source: 'static', identity: { name: 'Benchmark' } },
            upstream: upstream('/index.php/wp-json'),
            cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
            ...added('site'),
          },
          files: {
            contract: 'open',
            mount: '/files',
            upstream: upstream('/files'),
            cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
          },
          plain: { contract: 'open', mount: '/plain', upstream: upstream('/plain') },
        },
        ...added('gateway'),
      }
      await writeFile(file, JSON.stringify(config))
      return [process.execPath, '--no-allocation-site-pretenuring', ...profiling(), main, 'start', '-c', file]
    },
    check(scenario, response) {
      const { expects } = factsOf(scenario)
      if (expects === 'refused') return response.status === 400 ? undefined : `status ${response.status}`
      const status = response.headers['cache-status'] ?? ''
      const isHit = /^trellis; ?hit/.test(status)
      return isHit === (expects === 'hit') ? undefined : `Cache-Status: ${status}`
    },
    async purge(scenario) {
      await fetch(`http://127.0.0.1:${adminPort}/cache/purge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ url: targets[scenario] }),
      })
    },
  }
}

/** The built gateway with everything on: checks, Cache-Status, request ids, metrics, log. */
export const trellis: Peer = builtGateway({ name: 'trellis', title: 'Trellis', targets, main })

/** This build without the settings of a scenario. */
export const plain: Peer = builtGateway({ name: 'plain', title: 'without them', targets, main })

/** Another build of the gateway, with everything on. */
export const otherBuild = (file: string): Peer =>
  builtGateway({ name: 'other', title: 'there', targets, main: file })
