import { cp, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { token } from './companion/intake.ts'
import { createKeeper, type Kept } from './companion/keep.ts'
import { reads } from './companion/reads.ts'
import { type CompanionSite, makeNetwork, startCompanionStack } from './companion/site.ts'
import { writesByIndex } from './companion/writes.ts'
import { startRedisServer } from './shared/redis-server.ts'

const fileAt = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Those whose effect a persistent object cache does not hide, and that meet the content that the seed made. */
const writes = rowsOf(
  writesByIndex.filter(([title]) => /^(?:REST|PHP|importer): /.test(title)),
  5,
)

/** Makes the site of the tests one whose responses are never described completely. Returns what ends it. */
type Preparation = (site: CompanionSite) => Promise<() => Promise<void>>

const withObjectCache: Preparation = async (site) => {
  const redis = await startRedisServer()
  await writeFile(join(site.site, 'wp-content/redis-port'), String(redis.port))
  await cp(fileAt('companion/object-cache.php'), join(site.site, 'wp-content/object-cache.php'))
  return redis.stop
}

const asNetwork: Preparation = async (site) => {
  await makeNetwork(site)
  return () => Promise.resolve()
}

describeWith('mariadb', 'responses of a site with a persistent object cache or in a network', () => {
  describe.each([
    ['with a persistent object cache in Redis', withObjectCache, 'trellis.php'],
    ['in a network of blogs', asNetwork, 'trellis.php'],
    ['with a persistent object cache that no other plugin reads before', withObjectCache, '0-trellis.php'],
    ['in a network that no other plugin reads before', asNetwork, '0-trellis.php'],
  ] as const)('%s', (_title, prepare, file) => {
    /** A plugin that is loaded before the companion may have read something that it cannot see. */
    const isDescribed = file === '0-trellis.php'
    let site: CompanionSite
    let gateway: TestGateway
    let end = (): Promise<void> => Promise.resolve()

    beforeAll(async () => {
      const port = await freePort()
      site = await startCompanionStack({}, undefined, [`http://127.0.0.1:${port}`])
      const plugins = join(site.site, 'wp-content/mu-plugins')
      await mkdir(plugins, { recursive: true })
      await cp(fileAt('wordpress/plugins/promise-fuzz.php'), join(plugins, 'promise-fuzz.php'))
      await rename(join(plugins, 'trellis.php'), join(plugins, file))
      end = await prepare(site)
      gateway = await startTestGateway({
        admin: { port },
        services: {
          blog: siteService(site.origin, {
            names: 'same',
            mount: '/index.php/wp-json',
            discovery: { source: 'upstream' },
            cache: { rules: [{ match: 'GET /**', ttl: '1h', override: true }] },
            changes: { token, poll: '2s' },
          }),
        },
      })
    }, 300_000)
    afterAll(async () => {
      await gateway?.close()
      await end()
      await site?.stop()
    })

    test('no stored response is older than a reported write', async () => {
      await expect
        .poll(() => gateway.metric('trellis_changes_state', 'state="heard"'), { timeout: 20_000 })
        .toBe(1)
      // WordPress notes once a day that the password of the tests was used, which is a change of that user.
      await (await site.rest('PUT', '/wp/v2/posts/30', {})).text()
      // A PHP server may use a changed file two seconds later (opcache.revalidate_freq).
      const tags = async (): Promise<string | null> => {
        const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10`)
        await response.arrayBuffer()
        return response.headers.get('trellis-tags')
      }
      const asExpected = async () => (await tags())?.includes(';complete;')
      await expect.poll(asExpected, { timeout: 20_000 }).toBe(isDescribed)
      const keeper = createKeeper(site, gateway, reads)
      const results: Kept[] = []
      for (const write of writes) results.push(await keeper.after(write))
      const sum = (of: 'unchanged' | 'kept') => results.reduce((all, one) => all + one[of], 0)
      process.stdout.write(`${writes.length} writes, ${sum('kept')} of ${sum('unchanged')} kept\n`)
      if (process.env['SHOW_KEPT'] !== undefined) {
        for (const { title, needless } of results) process.stdout.write(`${title}: ${needless.join(' ')}\n`)
      }
      expect(results.flatMap(({ title, stale }) => stale.map((path) => `${title}: ${path}`))).toEqual([])
      // Else it would have proved nothing.
      expect(sum('unchanged')).toBeGreaterThan((writes.length * reads.length) / 2)
      if (isDescribed) expect(sum('kept')).toBeGreaterThan(sum('unchanged') / 2)
      else expect(sum('kept')).toBe(0)
    }, 1_200_000)
  })
})
