import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/ports.ts'
import type { Peer } from '../peer.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** The built gateway with everything on: checks, Cache-Status, metrics. */
export const trellis: Peer = {
  name: 'trellis',
  title: 'Trellis',
  scenarios: ['hit', 'pass'],
  missing: () => (existsSync(main) ? undefined : 'dist/main.js: run npm run build'),
  async command({ port, originPort, folder }) {
    const file = join(folder, 'gateway.yaml')
    const targets = [`http://127.0.0.1:${originPort}`]
    const config = {
      listen: { host: '127.0.0.1', port },
      admin: { host: '127.0.0.1', port: await freePort() },
      publicUrl: `http://127.0.0.1:${port}`,
      log: { level: 'error' },
      drain: { delay: '0s', timeout: '1s' },
      services: {
        site: {
          contract: 'site',
          mount: '/index.php/site-json',
          names: 'wordpress',
          upstream: { targets, basePath: '/index.php/wp-json' },
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        },
        plain: { contract: 'open', mount: '/plain', upstream: { targets, basePath: '/plain' } },
      },
    }
    await writeFile(file, JSON.stringify(config))
    return [process.execPath, main, 'start', '-c', file]
  },
  target: (scenario) =>
    scenario === 'hit' ? '/index.php/site-json/site/v2/posts?per_page=8' : '/plain/list',
  check(scenario, answer) {
    const status = answer.headers.get('cache-status') ?? ''
    const isHit = /^trellis; ?hit/.test(status)
    return isHit === (scenario === 'hit') ? undefined : `Cache-Status: ${status}`
  },
}
