import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import type { RunningProcess } from '../support/processes.ts'
import { NextSite, newestNext, secret } from './next/next-site.ts'
import { siteFiles } from './next/site-files.ts'
import { shownAfterWriteAmid, shownAt, VersionedPosts } from './next/versioned-posts.ts'

const root = '/index.php/site-json'

/** The short form of next.nightly and next-instances.nightly: installed and built without types, some 20 s of processor time. */
describe(`a Next.js ${newestNext} that is restarted`, () => {
  let posts: VersionedPosts
  let gateway: TestGateway
  let site: NextSite
  let next: RunningProcess
  let port: number

  beforeAll(async () => {
    port = await freePort()
    posts = await VersionedPosts.start()
    const url = `http://127.0.0.1:${port}/api/purge`
    gateway = await startTestGateway({
      services: {
        blog: siteService(posts.origin.origin, {
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
          downstream: {
            tags: 'Surrogate-Key',
            settle: '20ms',
            receivers: [{ type: 'next', url, secret, onFailure: 'refuse', timeout: '10s' }],
          },
        }),
      },
    })
    const files = siteFiles(gateway.publicAddress + root)
    site = await NextSite.install({ version: newestNext, files, checksTypes: false })
    await site.build()
    // What the build has made is older than what the process will show.
    posts.edit(4)
  }, 600_000)
  afterAll(async () => {
    await site?.remove()
    await gateway?.close()
    await posts?.origin.close()
  })

  const write = async (): Promise<number> => {
    const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts/4`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })
    await response.arrayBuffer()
    return response.status
  }
  const writesAreTaken = (): Promise<void> => expect.poll(write).toBe(200)
  const shown = async (): Promise<readonly number[]> => {
    const versions: number[] = []
    for (const path of ['/front', '/fetched', '/posts/4'])
      versions.push(await shownAt(`http://127.0.0.1:${port}${path}`))
    return versions
  }
  const current = (): readonly number[] => [posts.version(4), posts.version(4), posts.version(4)]

  test('shows no page of its build, and fails none before Trellis knows the process', async () => {
    next = await site.start(port)
    const { reads } = posts
    expect((await shown()).every((version) => version >= 0)).toBe(true)
    await writesAreTaken()
    expect(await shown()).toEqual(current())
    expect(posts.reads).toBeGreaterThan(reads)
    const before = posts.reads
    expect(await shown()).toEqual(current())
    expect(posts.reads).toBe(before)
  })

  test.each([['/front'], ['/fetched'], ['/posts/4']])(
    'a write in the middle of making %s: who asks after it is shown it',
    async (path) => {
      expect(await write()).toBe(200)
      const url = `http://127.0.0.1:${port}${path}`
      const { shown: versions, version } = await shownAfterWriteAmid({ url, posts, write })
      expect(versions).toEqual([version, version])
    },
  )

  test.each([
    ['a crash while a purge is on its way', 0],
    ['a deploy', 10_000],
  ])('shows each acknowledged write after %s', async (_, graceMs) => {
    const [status] = await Promise.all([write(), next.stop(graceMs)])
    const acknowledged = status === 200 ? posts.version(4) : 0
    next = await site.start(port)
    // Pages are answered while Trellis still waits for a confirmation, too.
    for (const version of await shown()) expect(version).toBeGreaterThanOrEqual(acknowledged)
    await writesAreTaken()
    expect(await shown()).toEqual(current())
    expect(await write()).toBe(200)
    expect(await shown()).toEqual(current())
  })
})
