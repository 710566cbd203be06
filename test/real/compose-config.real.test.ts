import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const token = 'token-of-the-test'

let folder: string
let redis: RedisServer
let wordpress: WordPress
let trellis: RunningProcess
let origin: string
let admin: string

describeWith('redis', 'what compose.yaml runs, without containers', () => {
  describeWith('php', 'with a real WordPress', () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'trellis-compose-'))
      const [port, adminPort] = [await freePort(), await freePort()]
      origin = `http://127.0.0.1:${port}`
      admin = `http://127.0.0.1:${adminPort}`
      redis = await startRedisServer()
      wordpress = await startWordPress({ publicUrl: origin })
      const file = join(folder, 'trellis.yaml')
      const text = await readFile('deploy/compose/trellis.yaml', 'utf8')
      await writeFile(
        file,
        text.replace('port: 8080', `port: ${port}`).replace('port: 9090', `port: ${adminPort}`),
      )
      const env = {
        TRELLIS_ADMIN_TOKEN: token,
        TRELLIS_PUBLIC_URL: origin,
        TRELLIS_SHARED_URL: `redis://127.0.0.1:${redis.port}`,
        WORDPRESS_ORIGIN: wordpress.origin,
      }
      trellis = startProcess(process.execPath, [await builtGateway(), 'start', '-c', file], { env })
      await untilReady(trellis, async () => {
        const response = await fetch(`${admin}/readyz`)
        const state = await response.text()
        if (!response.ok || state.includes('degraded":[{')) throw new Error(state)
      })
      // It may be the first to need the built program.
    }, 300_000)
    afterAll(() => Promise.all([trellis?.stop(0), wordpress?.stop(), redis?.stop()]))

    test('the interface is answered from the cache', async () => {
      const outcomes: (string | null)[] = []
      for (let round = 0; round < 2; round += 1) {
        const response = await fetch(`${origin}/wp-json/wp/v2/posts?per_page=2&_fields=id`)
        expect(await response.json()).toHaveLength(2)
        outcomes.push(response.headers.get('cache-status'))
      }
      expect(outcomes).toEqual([expect.stringContaining('; stored'), expect.stringContaining('trellis; hit')])
    })

    test.each(['/', '/wp-login.php'])(
      'the rest of WordPress passes through, under the address that it knows as its own: %s',
      async (path) => {
        const response = await fetch(`${origin}${path}`, { redirect: 'manual' })
        await response.arrayBuffer()
        expect(response.status).toBe(200)
      },
    )

    test('the configuration is shown to clients with the token', async () => {
      const asked = async (headers: Record<string, string>): Promise<number> => {
        const response = await fetch(`${admin}/config`, { headers })
        await response.arrayBuffer()
        return response.status
      }
      expect([await asked({}), await asked({ Authorization: `Bearer ${token}` })]).toEqual([401, 200])
    })
  })
})
