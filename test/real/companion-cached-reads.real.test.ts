import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import {
  cachedReads,
  type HiddenRead,
  hiddenReads,
  hiddenReadsPlugin,
  networkReads,
} from './companion/hidden-reads.ts'
import { reaches } from './companion/reach.ts'
import {
  addObjectCache,
  type CompanionSite,
  loadCompanionFirst,
  makeNetwork,
  startCompanionStack,
} from './companion/site.ts'
import type { RedisServer } from './shared/redis-server.ts'

/** Reads whose response is not described completely, because a change of what they show is not reported. */
const undescribed = {
  cache: ['a value that the plugin keeps in the object cache', 'all options at once', 'a temporary value'],
  network: ['all options at once'],
  blogs: [
    ...['the number of users', 'names of blogs', 'when a blog was last updated'],
    'a temporary value of the network',
  ],
}

const makeCachedNetwork = async (site: CompanionSite): Promise<RedisServer> => {
  await makeNetwork(site)
  return addObjectCache(site)
}

/** Every twelfth of them and those whose responses are not described: companion-tags.test.ts has all, on a site without a cache. */
const some = (all: readonly HiddenRead[]): readonly HiddenRead[] =>
  rowsOf(all, 12, ([title]) => [...undescribed.cache, ...undescribed.network].includes(title))
const base = hiddenReads.filter(([, shortcode]) => shortcode !== 'early')

describeWith('mariadb', 'reads that a persistent object cache or a network hides', () => {
  describe.each(
    rowsOf(
      [
        [
          'with a persistent object cache',
          addObjectCache,
          [...some(base), ...cachedReads],
          undescribed.cache,
        ],
        [
          'in a network',
          makeNetwork,
          [...some([...base, ...cachedReads]), ...networkReads],
          [...undescribed.network, ...undescribed.blogs],
        ],
        ['in a network with a persistent object cache', makeCachedNetwork, networkReads, undescribed.blogs],
      ] as const,
      2,
    ),
  )('%s', (_title, prepare, hidden, incomplete) => {
    let site: CompanionSite
    let redis: RedisServer | undefined

    const read = async (path: string) => {
      const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
      return { body: await response.text(), tags: response.headers.get('trellis-tags') ?? '' }
    }

    beforeAll(async () => {
      site = await startCompanionStack()
      await loadCompanionFirst(site)
      await writeFile(join(site.site, 'wp-content/mu-plugins/hidden.php'), hiddenReadsPlugin)
      redis = await prepare(site)
      // Until then the PHP server may use the files as they were before (opcache.revalidate_freq).
      await wait(2500)
      await vi.waitFor(
        async () => expect((await read('/wp/v2/posts/10')).tags).toContain(';complete;'),
        20_000,
      )
    }, 300_000)
    afterAll(async () => {
      await redis?.stop()
      await site?.stop()
    })

    /** A response that shows something, before a change of that, and what was reported of the change. */
    const sent = async ([title, shortcode, change]: HiddenRead) => {
      await (await site.rest('PUT', '/wp/v2/posts/90', { content: `[${shortcode}]` })).text()
      await read('/wp/v2/posts/90')
      const before = await read('/wp/v2/posts/90')
      const count = site.intake.pushes.length
      await site.request(change)
      const pushes = site.intake.pushes.slice(count)
      const after = await read('/wp/v2/posts/90')
      return { title, tags: before.tags, pushes, isChanged: before.body !== after.body }
    }

    test('each is listed, or the list is incomplete', { timeout: 300_000 }, async () => {
      const all: Awaited<ReturnType<typeof sent>>[] = []
      for (const one of hidden) all.push(await sent(one))
      const [complete, others] = [true, false].map((is) =>
        all.filter(({ tags }) => tags.includes(';complete;') === is),
      )
      const missed = complete?.filter(
        ({ tags, pushes }) => !pushes.some((one) => reaches(one.changes, tags, one.site)),
      )
      // A temporary value hides the change.
      const same = all.filter(({ title, isChanged }) => !isChanged && !title.includes('temporary'))
      expect(missed).toEqual([])
      expect(same.map(({ title }) => title)).toEqual([])
      expect(others?.map(({ title }) => title).toSorted()).toEqual(incomplete.toSorted())
    })

    test('comments of a post are not reached by those of another one', async () => {
      const path = '/wp/v2/comments?post=4'
      await read(path)
      const { tags } = await read(path)
      const count = site.intake.pushes.length
      await site.request(
        `wp_insert_comment( array( 'comment_post_ID' => 58, 'comment_content' => 'b', 'comment_approved' => 1 ) );`,
      )
      const [push] = site.intake.pushes.slice(count)
      expect(push?.changes).toContainEqual(expect.objectContaining({ kind: 'comment', post: 58 }))
      expect(reaches(push?.changes ?? [], tags, push?.site)).toBe(false)
    })

    test('a post proves that its author has published one, unless it may be of another blog', async () => {
      const path = '/wp/v2/posts/90?_embed=1'
      const write = async (content: string): Promise<string> => {
        await (await site.rest('PUT', '/wp/v2/posts/90', { content })).text()
        await read(path)
        return (await read(path)).tags
      }
      expect(await write('plain')).not.toContain(':publish:author:')
      if (hidden.some(([, name]) => name === 'net-post'))
        expect(await write('[net-post]')).toContain(':publish:author:')
    })
  })
})
