import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { token } from './companion/intake.ts'
import { createKeeper, type Kept } from './companion/keep.ts'
import { moreReads } from './companion/reads.ts'
import {
  type CompanionSite,
  kindOfSite,
  loadCompanionFirst,
  prepare,
  startCompanionSite,
  startCompanionStack,
  untilReloaded,
} from './companion/site.ts'
import { throughNetwork, type Write, writes } from './companion/writes.ts'
import type { RedisServer } from './shared/redis-server.ts'

/** How it is written: the beginning of a title. */
const doorOf = (title: string): string => title.split(':', 1)[0] ?? title

/** Every write and every response: `SHOW_KEPT=1 COMPANION_MATRIX=all npx vitest run test/real/companion-matrix.real.test.ts`. */
const isWhole = process.env['COMPANION_MATRIX'] === 'all'
const nth = isWhole ? Number(process.env['COMPANION_NTH'] ?? 1) : 24
/** `COMPANION_SITE`: `object-cache`, with a persistent one in Redis, or `network`, of two blogs. */
const isNetwork = kindOfSite === 'network'
/** WordPress deletes no user of a network through its interface. */
const isPossible = ([title]: Write): boolean => !isNetwork || title !== 'REST: a user is deleted'
const allWrites = [...(isNetwork ? throughNetwork : []), ...writes.filter(isPossible)]
const min = isWhole ? 0.85 : 0.8
const program = prepare === undefined ? 'php' : 'mariadb'
const paths = moreReads.filter((_, at) => isWhole || at % 3 === 0)

describeWith(program, 'writes to a WordPress with the companion that bypass the gateway', () => {
  let site: CompanionSite
  let gateway: TestGateway
  let redis: RedisServer | undefined

  beforeAll(async () => {
    const port = await freePort()
    const gateways = [`http://127.0.0.1:${port}`]
    const plugins = ['garden-notes', 'promise-fuzz'] as const
    if (prepare === undefined) site = await startCompanionSite({}, plugins, gateways)
    else {
      site = await startCompanionStack({}, undefined, gateways, plugins)
      await loadCompanionFirst(site)
      redis = await prepare(site)
    }
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
    await untilReloaded(site)
    await site.browser.login()
  }, 300_000)
  afterAll(async () => {
    await gateway?.close()
    await redis?.stop()
    await site?.stop()
  })

  test('no stored response is older than a reported write, and most that it does not change are kept', async () => {
    await expect.poll(() => gateway.metric('trellis_changes_state', 'state="heard"')).toBe(1)
    // WordPress notes once a day that the password of the tests was used, which is a change of that user.
    await (await site.rest('PUT', '/wp/v2/posts/30', {})).text()
    const keeper = createKeeper(site, gateway, paths)
    const results: Kept[] = []
    for (const write of allWrites.filter((_, at) => at % nth === 0)) {
      const one = await keeper.after(write)
      results.push(one)
      if (process.env['SHOW_KEPT'] !== undefined) {
        process.stdout.write(
          `${one.title}: ${one.kept} of ${one.unchanged} kept; ${one.needless.join(' ')}\n`,
        )
      }
      if (one.stale.length > 0) process.stdout.write(`STALE ${one.title}: ${one.stale.join(' ')}\n`)
    }
    const doors = new Map<string, Kept[]>()
    for (const one of results) doors.set(doorOf(one.title), [...(doors.get(doorOf(one.title)) ?? []), one])
    const share = (some: readonly Kept[]): number =>
      some.reduce((sum, { kept }) => sum + kept, 0) / some.reduce((sum, { unchanged }) => sum + unchanged, 0)
    for (const [door, some] of doors) {
      process.stdout.write(`${door}: ${some.length} writes, ${(100 * share(some)).toFixed(1)} % kept\n`)
    }
    process.stdout.write(`all: ${results.length} writes, ${(100 * share(results)).toFixed(1)} % kept\n`)
    expect(results.flatMap(({ title, stale }) => stale.map((path) => `${title}: ${path}`))).toEqual([])
    expect(share(results)).toBeGreaterThan(min)
  }, 3_600_000)
})
