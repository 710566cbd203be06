import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { token } from './companion/intake.ts'
import { createKeeper, type Kept } from './companion/keep.ts'
import { reads } from './companion/reads.ts'
import {
  addObjectCache,
  type CompanionSite,
  loadCompanionFirst,
  makeNetwork,
  startCompanionStack,
} from './companion/site.ts'
import { writesByIndex } from './companion/writes.ts'
import type { RedisServer } from './shared/redis-server.ts'

/** Those whose effect a persistent object cache does not hide, and that meet the content that the seed made. */
const writes = rowsOf(
  writesByIndex.filter(([title]) => /^(?:REST|PHP|importer): /.test(title)),
  5,
)

describeWith('mariadb', 'responses of a site with a persistent object cache or in a network', () => {
  describe.each([
    ['with a persistent object cache in Redis', addObjectCache, false],
    ['in a network of blogs', makeNetwork, false],
    ['with a persistent object cache that no other plugin reads before', addObjectCache, true],
    ['in a network that no other plugin reads before', makeNetwork, true],
  ] as const)('%s', (_title, prepare, isDescribed) => {
    // Without tags every write drops all: a few are enough.
    const sent = isDescribed ? writes : writes.slice(0, 4)
    let site: CompanionSite
    let gateway: TestGateway
    let redis: RedisServer | undefined

    beforeAll(async () => {
      const port = await freePort()
      site = await startCompanionStack({}, undefined, [`http://127.0.0.1:${port}`], ['promise-fuzz'])
      // A plugin that is loaded before the companion may have read something that it cannot see.
      if (isDescribed) await loadCompanionFirst(site)
      redis = await prepare(site)
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
      await redis?.stop()
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
      for (const write of sent) results.push(await keeper.after(write))
      const sum = (of: 'unchanged' | 'kept') => results.reduce((all, one) => all + one[of], 0)
      process.stdout.write(`${sent.length} writes, ${sum('kept')} of ${sum('unchanged')} kept\n`)
      if (process.env['SHOW_KEPT'] !== undefined) {
        for (const { title, needless } of results) process.stdout.write(`${title}: ${needless.join(' ')}\n`)
      }
      expect(results.flatMap(({ title, stale }) => stale.map((path) => `${title}: ${path}`))).toEqual([])
      // Else it would have proved nothing.
      expect(sum('unchanged')).toBeGreaterThan((sent.length * reads.length) / 2)
      if (isDescribed) expect(sum('kept')).toBeGreaterThan(sum('unchanged') / 2)
      else expect(sum('kept')).toBe(0)
    }, 1_200_000)
  })
})
