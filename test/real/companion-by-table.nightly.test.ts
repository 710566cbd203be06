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
import { type Write, writesByIndex } from './companion/writes.ts'
import type { RedisServer } from './shared/redis-server.ts'

/** Those whose effect a persistent object cache does not hide, and that meet the content that the seed made. */
const possible = writesByIndex.filter(
  // WordPress deletes no user of a network through its interface.
  ([title]) => /^(?:REST|PHP|importer): /.test(title) && title !== 'REST: a user is deleted',
)
const writes = rowsOf(possible, 8)
/** May be sent twice. */
const repeatable = possible.filter(([title]) => /^REST: .* (?:renamed|changed)$/.test(title)).slice(0, 4)

describeWith('mariadb', 'responses of a site with a persistent object cache or in a network', () => {
  describe.each([
    ['with a persistent object cache in Redis', addObjectCache],
    ['in a network of blogs', makeNetwork],
  ] as const)('%s', (_title, prepare) => {
    let site: CompanionSite
    let gateway: TestGateway
    let redis: RedisServer | undefined

    beforeAll(async () => {
      const port = await freePort()
      site = await startCompanionStack({}, undefined, [`http://127.0.0.1:${port}`], ['promise-fuzz'])
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

    /** Sends writes once the site answers with complete tags, or without; says what they left of the stored responses. */
    const leftBy = async (sent: readonly Write[], isDescribed: boolean) => {
      await expect.poll(() => gateway.metric('trellis_changes_state', 'state="heard"')).toBe(1)
      // WordPress notes once a day that the password of the tests was used, which is a change of that user.
      await (await site.rest('PUT', '/wp/v2/posts/30', {})).text()
      // A PHP server may use a changed file two seconds later (opcache.revalidate_freq).
      const tags = async (): Promise<string | null> => {
        const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10`)
        await response.arrayBuffer()
        return response.headers.get('trellis-tags')
      }
      const asExpected = async () => (await tags())?.includes(';complete;')
      await expect.poll(asExpected).toBe(isDescribed)
      const keeper = createKeeper(site, gateway, reads)
      const results: Kept[] = []
      for (const write of sent) results.push(await keeper.after(write))
      const sum = (of: 'unchanged' | 'kept') => results.reduce((all, one) => all + one[of], 0)
      process.stdout.write(`${sent.length} writes, ${sum('kept')} of ${sum('unchanged')} kept\n`)
      if (process.env['SHOW_KEPT'] !== undefined) {
        for (const { title, needless } of results) process.stdout.write(`${title}: ${needless.join(' ')}\n`)
      }
      // Else it would have proved nothing.
      expect(sum('unchanged')).toBeGreaterThan((sent.length * reads.length) / 2)
      const stale = results.flatMap(({ title, stale: paths }) => paths.map((path) => `${title}: ${path}`))
      return { stale, unchanged: sum('unchanged'), kept: sum('kept') }
    }

    // It may have read something that the companion cannot see. Without tags every write drops all: a few are enough.
    test('behind another plugin: each reported write leaves no stored response', async () => {
      expect(repeatable.length).toBeGreaterThan(2)
      const { stale, kept } = await leftBy(repeatable, false)
      expect({ stale, kept }).toEqual({ stale: [], kept: 0 })
    }, 600_000)

    test('before other plugins: no stored response is older than a reported write, and most stay', async () => {
      await loadCompanionFirst(site)
      const { stale, kept, unchanged } = await leftBy(writes, true)
      expect(stale).toEqual([])
      expect(kept).toBeGreaterThan(unchanged / 2)
    }, 1_200_000)
  })
})
