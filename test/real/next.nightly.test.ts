import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import type { RunningProcess } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { NextSite, newestNext, secret } from './next/next-site.ts'
import { siteFiles } from './next/site-files.ts'
import { shownAfterWriteAmid, shownAt as shownAtUrl, VersionedPosts } from './next/versioned-posts.ts'

type Release = { readonly version: string; readonly hasUseCache: boolean }
/** The newest, and the last of the one before, which has no `'use cache'`. */
const releases: readonly Release[] = [
  { version: newestNext, hasUseCache: true },
  { version: '15.5.29', hasUseCache: false },
]
const root = '/index.php/site-json'
/** `NEXT_WRITES=1000 TRELLIS_TESTS=all npx vitest run test/real/next.nightly.test.ts` for a long run. */
const writes = Number(process.env['NEXT_WRITES'] ?? 40)

const theFrontEnd = ({ version: release, hasUseCache }: Release): void => {
  /** What the first process showed of what the build had made. */
  const builtPages: number[] = []
  let posts: VersionedPosts
  let site: NextSite
  let gateway: TestGateway
  let next: RunningProcess
  const instances: RunningProcess[] = []
  let address: string

  const write = (id: number): Promise<Response> =>
    fetch(`${gateway.publicAddress}${root}/site/v2/posts/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })

  const receiverAt = (url: string) => ({
    type: 'next',
    url: `${url}/api/purge`,
    secret,
    onFailure: 'refuse',
    timeout: '10s',
  })
  /** The gateway with these instances of the front end. */
  const configured = (urls: readonly string[]) => ({
    services: {
      blog: siteService(posts.origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
        downstream: { tags: 'Surrogate-Key', receivers: urls.map(receiverAt) },
      }),
    },
  })
  beforeAll(async () => {
    const port = await freePort()
    address = `http://127.0.0.1:${port}`
    posts = await VersionedPosts.start()
    gateway = await startTestGateway(configured([address]))
    const files = siteFiles(gateway.publicAddress + root, hasUseCache)
    site = await NextSite.install({ version: release, files, checksTypes: true })
    await site.build()
    // The pages of the build are older than what the process will serve.
    posts.edit(4)
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true}',
    })
    next = await site.start(port)
    builtPages.push(await shownAt('/front'), await shownAt('/fetched'))
    // Until then the purge of everything with which the gateway began is not confirmed.
    await vi.waitFor(async () => expect((await write(9)).status).toBe(200), {
      timeout: 60_000,
      interval: 500,
    })
  }, 600_000)
  afterAll(async () => {
    await site?.remove()
    await gateway?.close()
    await posts?.origin.close()
  })

  const shownAt = (path: string, at = address): Promise<number> => shownAtUrl(at + path)
  const shown = (id: number): Promise<number> => shownAt(`/posts/${id}`)

  test('keeps what it has read', async () => {
    expect([await shown(1), await shown(1)]).toEqual([0, 0])
    const before = [posts.reads, await gateway.metric('trellis_requests_total')]
    for (let count = 0; count < 10; count += 1) await shown(1)
    expect([posts.reads, await gateway.metric('trellis_requests_total')]).toEqual(before)
  })

  test(`after each of ${writes} acknowledged writes a reader sees it`, async () => {
    const older: string[] = []
    let isOver = false
    let count = 0
    const floor = [0, 0, 0, 0]
    const reader = async (): Promise<void> => {
      while (!isOver) {
        const id = 1 + (count % 3)
        const min = floor[id] ?? 0
        const version = await shown(id)
        count += 1
        if (!(version >= min)) older.push(`post ${id}: ${version} after ${min}`)
      }
    }
    const readers = [reader(), reader(), reader()]
    try {
      for (let nth = 0; nth < writes; nth += 1) {
        const id = 1 + (nth % 3)
        expect((await write(id)).status).toBe(200)
        floor[id] = posts.version(id)
      }
    } finally {
      isOver = true
    }
    await Promise.all(readers)
    process.stdout.write(
      `Next.js ${release}: ${count} pages, ${posts.reads} reads of the upstream, ${writes} writes, ${older.length} older\n`,
    )
    expect(older).toEqual([])
    expect(count).toBeGreaterThan(writes)
  }, 600_000)

  test.each(['/front', '/fetched', '/posts/4'])(
    'a write in the middle of making %s: who asks after it is shown it',
    async (path) => {
      expect((await write(4)).status).toBe(200)
      const { shown: versions, version } = await shownAfterWriteAmid({
        url: address + path,
        posts,
        write: async () => (await write(4)).status,
      })
      expect(versions).toEqual([version, version])
    },
    60_000,
  )

  test('a change that Trellis does not hear of is not shown', async () => {
    const before = await shown(1)
    posts.edit(1)
    expect(await shown(1)).toBe(before)
  })

  test('a browser sees an acknowledged write when it loads the page again', async () => {
    const browser = await startBrowser()
    try {
      const tab = await browser.newPage()
      await tab.goto(`${address}/posts/2`)
      const before = await tab.textContent('h1')
      expect((await write(2)).status).toBe(200)
      await tab.reload()
      expect([before, await tab.textContent('h1')]).toEqual([
        `version ${posts.version(2) - 1}`,
        `version ${posts.version(2)}`,
      ])
    } finally {
      await browser.close()
    }
  })

  test('a write is refused while Next.js is down, and shown when it is back', async () => {
    await next.stop(0)
    expect([504, 503]).toContain((await write(3)).status)
    expect((await write(3)).status).toBe(503)
    next = await site.start(Number(new URL(address).port))
    await expect.poll(async () => (await write(3)).status).toBe(200)
    expect(await shown(3)).toBe(posts.version(3))
  })

  test('no page of the build is shown as current, before the first purge either', () => {
    expect(builtPages).toEqual([1, 1])
  })

  test.each(['/front', '/fetched', '/posts/4'])(
    '%s is kept, and is not older after restarts',
    async (path) => {
      const port = Number(new URL(address).port)
      // Ended as by a deploy, and as by a crash.
      for (const graceMs of [10_000, 0]) {
        expect((await write(4)).status).toBe(200)
        const version = await shownAt(path)
        expect(version).toBe(posts.version(4))
        const before = posts.reads
        expect(await shownAt(path)).toBe(version)
        expect(posts.reads).toBe(before)
        // While the purge of a write is on its way.
        const [{ status }] = await Promise.all([write(4), next.stop(graceMs)])
        next = await site.start(port)
        const shownAfter = await shownAt(path)
        if (status === 200) expect(shownAfter).toBe(posts.version(4))
        expect(shownAfter).toBeGreaterThanOrEqual(version)
        await expect.poll(async () => (await write(4)).status).toBe(200)
        expect(await shownAt(path)).toBe(posts.version(4))
      }
    },
    300_000,
  )

  test('a deploy while writes go on: no page of the new build is older than a write', async () => {
    const port = Number(new URL(address).port)
    let isBuilt = false
    const writing = async (): Promise<void> => {
      while (!isBuilt) expect((await write(4)).status).toBe(200)
    }
    const built = site.build().finally(() => {
      isBuilt = true
    })
    await Promise.all([built, writing()])
    const version = posts.version(4)
    await next.stop()
    next = await site.start(port)
    for (const path of ['/front', '/fetched', '/posts/4']) expect(await shownAt(path)).toBe(version)
    await expect.poll(async () => (await write(4)).status).toBe(200)
    for (const path of ['/front', '/fetched', '/posts/4']) expect(await shownAt(path)).toBe(posts.version(4))
  }, 900_000)

  test('from one instance to three and back: each shows every acknowledged write', async () => {
    const older: string[] = []
    const compareAt = async (url: string, min: number): Promise<void> => {
      for (const path of ['/front', '/fetched', '/posts/4']) {
        const version = await shownAt(path, url)
        if (!(version >= min)) older.push(`${url}${path}: ${version} after ${min}`)
      }
    }
    const compare = async (urls: readonly string[]): Promise<void> => {
      await expect.poll(async () => (await write(4)).status).toBe(200)
      for (let nth = 0; nth < 5; nth += 1) {
        expect((await write(4)).status).toBe(200)
        for (const url of urls) await compareAt(url, posts.version(4))
      }
    }
    const urls = [address]
    for (let nth = 0; nth < 2; nth += 1) {
      const port = await freePort()
      instances.push(await site.start(port))
      urls.push(`http://127.0.0.1:${port}`)
    }
    expect(await gateway.put(configured(urls))).toMatchObject({ kind: 'applied' })
    await compare(urls)
    expect(await gateway.put(configured([address]))).toMatchObject({ kind: 'applied' })
    for (const one of instances.splice(0)) await one.stop(0)
    await compare([address])
    expect(older).toEqual([])
  }, 300_000)
}

for (const release of releases)
  describeWith(
    'chromium',
    `a Next.js ${release.version} that reads through the gateway, as docs/next.md shows`,
    () => theFrontEnd(release),
  )
