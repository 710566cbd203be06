import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { LocalName } from '../support/local-names.ts'
import { freePort } from '../support/ports.ts'
import { randomFrom } from '../support/random.ts'
import { FrontEndUnderLoad } from './next/front-end-under-load.ts'
import { NextSite, newestNext, secret } from './next/next-site.ts'
import { siteFiles } from './next/site-files.ts'
import { VersionedPosts } from './next/versioned-posts.ts'

/** `NEXT_READS=20000 NEXT_SEED=1 TRELLIS_TESTS=all npx vitest run test/real/next-instances.nightly.test.ts` for a long run. */
const wanted = Number(process.env['NEXT_READS'] ?? 2_000)
const seed = Number(process.env['NEXT_SEED'] ?? 1)
const root = '/index.php/site-json'
const [first, second, third] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'] as const

describe(`instances of a Next.js ${newestNext} behind one name`, () => {
  let posts: VersionedPosts
  let gateway: TestGateway
  let site: NextSite
  let name: LocalName
  let frontEnd: FrontEndUnderLoad

  beforeAll(async () => {
    const port = await freePort()
    name = new LocalName('front.test')
    posts = await VersionedPosts.start()
    const receiver = {
      type: 'next',
      url: `http://front.test:${port}/api/purge`,
      secret,
      instances: 'dns',
      onFailure: 'refuse',
    }
    gateway = await startTestGateway({
      services: {
        blog: siteService(posts.origin.origin, {
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
          downstream: { tags: 'Surrogate-Key', settle: '20ms', receivers: [receiver] },
        }),
      },
    })
    site = await NextSite.install({
      version: newestNext,
      files: siteFiles(gateway.publicAddress + root),
      checksTypes: false,
    })
    await site.build()
    const write = async (id: number): Promise<number> => {
      const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts/${id}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
        body: '{"title":"x"}',
      })
      await response.arrayBuffer()
      return response.status
    }
    frontEnd = new FrontEndUnderLoad({ site, posts, port, name, write, random: randomFrom(seed) })
  }, 600_000)
  afterAll(async () => {
    await frontEnd?.stopReaders()
    await site?.remove()
    await gateway?.close()
    await posts?.origin.close()
    name?.remove()
  })

  const writeMany = async (writes: number): Promise<void> => {
    for (let nth = 0; nth < writes; nth += 1) await frontEnd.write()
  }
  const writesAreTaken = (): Promise<void> => expect.poll(() => frontEnd.write()).toBe(200)

  test(`one, three and one again, restarted and killed: no page is older than an acknowledged write (${wanted} pages)`, async () => {
    await frontEnd.join(first)
    await writesAreTaken()
    frontEnd.startReaders(4)
    for (let round = 1; frontEnd.counts.reads < wanted; round += 1) {
      await writeMany(20)
      // Written to while it joins.
      await Promise.all([frontEnd.join(second), writeMany(20)])
      await writeMany(10)
      await Promise.all([frontEnd.join(third), writeMany(20)])
      await writeMany(10)
      await frontEnd.killWhileWriting(second)
      await writeMany(5)
      await writesAreTaken()
      await frontEnd.join(second)
      await writesAreTaken()
      if (round % 5 === 1) await Promise.all([site.build(), writeMany(50)])
      for (const address of [first, second, third]) {
        await Promise.all([frontEnd.restart(address, address === second ? 0 : 10_000), writeMany(5)])
        await writesAreTaken()
      }
      await Promise.all([frontEnd.leave(third), writeMany(10)])
      await frontEnd.leave(second)
      await writesAreTaken()
    }
    await frontEnd.stopReaders()
    const { counts, older } = frontEnd
    process.stdout.write(
      `Next.js ${newestNext}, seed ${seed}: ${JSON.stringify({ ...counts, older: older.length })}\n`,
    )
    expect(older).toEqual([])
  }, 7_200_000)
})
