import { cp, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import {
  cachedReads,
  type HiddenRead,
  hiddenReads,
  hiddenReadsPlugin,
  networkReads,
} from './companion/hidden-reads.ts'
import { reaches } from './companion/reach.ts'
import { type CompanionSite, makeNetwork, startCompanionStack } from './companion/site.ts'
import { startRedisServer } from './shared/redis-server.ts'

/** Returns what ends it. */
type Preparation = (site: CompanionSite) => Promise<() => Promise<void>>

const withObjectCache: Preparation = async ({ site }) => {
  const redis = await startRedisServer()
  await writeFile(join(site, 'wp-content/redis-port'), String(redis.port))
  const dropIn = fileURLToPath(new URL('companion/object-cache.php', import.meta.url))
  await cp(dropIn, join(site, 'wp-content/object-cache.php'))
  return redis.stop
}

const asNetwork: Preparation = async (site) => {
  await makeNetwork(site)
  await site.php(
    `wp_insert_site( array( 'domain' => '127.0.0.1', 'path' => '/two/', 'network_id' => 1, 'user_id' => 1 ) );`,
  )
  return () => Promise.resolve()
}

/** Reads whose response is not described completely, because a change of what they show is not reported. */
const undescribed = {
  cache: ['a value that the plugin keeps in the object cache', 'all options at once', 'a temporary value'],
  network: [
    ...['the number of users', 'names of blogs', 'when a blog was last updated'],
    ...['a temporary value of the network', 'all options at once', 'a temporary value'],
  ],
}

const base = hiddenReads.filter(([, shortcode]) => shortcode !== 'early')

describeWith('mariadb', 'reads that a persistent object cache or a network hides', () => {
  describe.each([
    ['with a persistent object cache', withObjectCache, [...base, ...cachedReads], undescribed.cache],
    ['in a network', asNetwork, [...base, ...cachedReads, ...networkReads], undescribed.network],
  ] as const)('%s', (_title, prepare, hidden, incomplete) => {
    let site: CompanionSite
    let end = (): Promise<void> => Promise.resolve()

    const read = async (path: string) => {
      const answer = await fetch(`${site.origin}/index.php/wp-json${path}`)
      return { body: await answer.text(), tags: answer.headers.get('trellis-tags') ?? '' }
    }

    beforeAll(async () => {
      site = await startCompanionStack()
      const plugins = join(site.site, 'wp-content/mu-plugins')
      await rename(join(plugins, 'trellis.php'), join(plugins, '0-trellis.php'))
      await writeFile(join(plugins, 'hidden.php'), hiddenReadsPlugin)
      end = await prepare(site)
      // A PHP server may use a changed file two seconds later (opcache.revalidate_freq).
      await vi.waitFor(
        async () => expect((await read('/wp/v2/posts/10')).tags).toContain(';complete;'),
        20_000,
      )
    }, 300_000)
    afterAll(async () => {
      await end()
      await site?.stop()
    })

    /** A response that shows something, before a change of that, and what was reported of the change. */
    const sent = async ([title, shortcode, change]: HiddenRead) => {
      await (await site.rest('PUT', '/wp/v2/posts/90', { content: `[${shortcode}]` })).text()
      await read('/wp/v2/posts/90')
      const before = await read('/wp/v2/posts/90')
      const count = site.intake.pushes.length
      const { code, output } = await site.php(change)
      expect([code, title], output).toEqual([0, title])
      const changes = site.intake.pushes.slice(count).flatMap((push) => push.changes)
      const after = await read('/wp/v2/posts/90')
      return { title, tags: before.tags, changes, isChanged: before.body !== after.body }
    }

    test('each is listed, or the list is incomplete', { timeout: 300_000 }, async () => {
      const all: Awaited<ReturnType<typeof sent>>[] = []
      for (const one of hidden) all.push(await sent(one))
      const [complete, others] = [true, false].map((is) =>
        all.filter(({ tags }) => tags.includes(';complete;') === is),
      )
      const missed = complete?.filter(({ tags, changes }) => !reaches(changes, tags))
      // A temporary value hides the change.
      const same = all.filter(({ title, isChanged }) => !isChanged && !title.includes('temporary'))
      expect(missed).toEqual([])
      expect(same.map(({ title }) => title)).toEqual([])
      expect(others?.map(({ title }) => title).toSorted()).toEqual(incomplete.toSorted())
    })
  })
})
