import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { blocksOf } from '../support/shown-commands.ts'

const run = promisify(execFile)
type Release = { readonly version: string; readonly hasUseCache: boolean }
/** The newest, and the last of the one before, which has no `'use cache'`. */
const releases: readonly Release[] = [
  { version: '16.4.6', hasUseCache: true },
  { version: '15.5.29', hasUseCache: false },
]
const packages = ['react@19.3.1', 'react-dom@19.3.1', 'typescript@5.9.3', '@types/react@19', '@types/node@20']
const document = await readFile(new URL('../../docs/next.md', import.meta.url), 'utf8')
const [purgeRoute = '', readModule = '', fetchModule = ''] = blocksOf(document, 'ts')
const [configuration = ''] = blocksOf(document, 'js')

const packageFolder = fileURLToPath(new URL('../../packages/next', import.meta.url))
const root = '/index.php/site-json'
const secret = 'secret-of-next'
/** `NEXT_WRITES=1000 TRELLIS_TESTS=all npx vitest run test/real/next.nightly.test.ts` for a long run. */
const writes = Number(process.env['NEXT_WRITES'] ?? 40)

/** Shows the title of a post, from the module of the page. `connection` makes it for each request; what is read is kept. */
const page = `import { Suspense } from 'react'
import { connection } from 'next/server'
import { read } from '../../read'
async function Title({ params }: { params: Promise<{ id: string }> }) {
  await connection()
  const { id } = await params
  const post = await read('/site/v2/posts/' + id)
  return <h1>{post.title}</h1>
}
export default function Page({ params }: { params: Promise<{ id: string }> }) {
  return <Suspense><Title params={params} /></Suspense>
}
`
/** Made by the build, of what the module of the page reads. */
const builtPage = (readFrom: string): string => `import { read } from '${readFrom}'
export default async function Page() {
  const post = await read('/site/v2/posts/4')
  return <h1>{post.title}</h1>
}
`
const layout = `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html lang="en"><body>{children}</body></html>
}
`

const theFrontEnd = ({ version: release, hasUseCache }: Release): void => {
  const versions = new Map<string, number>()
  /** What the first process showed of what the build had made. */
  const builtPages: number[] = []
  let reads = 0
  let folder: string
  let origin: Origin
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

  const receiverAt = (url: string) => ({ type: 'next', url: `${url}/api/purge`, secret, onFailure: 'refuse' })
  /** The gateway with these instances of the front end. */
  const configured = (urls: readonly string[]) => ({
    services: {
      blog: siteService(origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
        downstream: { tags: 'Surrogate-Key', receivers: urls.map(receiverAt) },
      }),
    },
  })
  const build = (): Promise<unknown> =>
    run(process.execPath, [join(folder, 'node_modules/next/dist/bin/next'), 'build', folder], {
      cwd: folder,
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' },
    })

  const startNext = async (port: number): Promise<RunningProcess> => {
    const program = startProcess(
      process.execPath,
      [join(folder, 'node_modules/next/dist/bin/next'), 'start', folder, '-p', String(port)],
      {
        env: { TRELLIS_SECRET: secret, NEXT_TELEMETRY_DISABLED: '1' },
      },
    )
    await untilReady(program, async () => {
      const response = await fetch(`http://127.0.0.1:${port}/api/purge`, { method: 'POST', body: '{}' })
      if (response.status !== 403) throw new Error(`status ${response.status}`)
    })
    return program
  }

  beforeAll(async () => {
    const port = await freePort()
    address = `http://127.0.0.1:${port}`
    origin = await startOrigin(({ method, target }, wire) => {
      const id = /posts\/(\d+)/.exec(target)?.[1] ?? ''
      if (method === 'GET') reads += 1
      else versions.set(id, (versions.get(id) ?? 0) + 1)
      const post = {
        id: Number(id),
        type: 'post',
        status: 'publish',
        title: `version ${versions.get(id) ?? 0}`,
      }
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
    })
    gateway = await startTestGateway(configured([address]))
    folder = await mkdtemp(join(tmpdir(), 'trellis-next-'))
    const fromGateway = (module: string): string =>
      module.replace('http://127.0.0.1:8080/wp-json', gateway.publicAddress + root)
    const { stdout: tarball } = await run('npm', [
      'pack',
      '--silent',
      '--pack-destination',
      folder,
      packageFolder,
    ])
    const files = {
      'package.json': '{"private":true}',
      'next.config.mjs': hasUseCache ? configuration : configuration.replace(/.*cacheComponents.*\n/, ''),
      'app/layout.tsx': layout,
      'app/posts/[id]/page.tsx': page,
      'app/api/purge/route.ts': purgeRoute,
      'app/front/page.tsx': builtPage(hasUseCache ? '../read' : '../fetched-read'),
      'app/fetched/page.tsx': builtPage('../fetched-read'),
      'app/read.ts': fromGateway(hasUseCache ? readModule : fetchModule),
      'app/fetched-read.ts': fromGateway(fetchModule),
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
    await run(
      'npm',
      [
        ...['install', '--silent', '--no-audit', '--no-fund'],
        ...[`next@${release}`, ...packages, `./${tarball.trim()}`],
      ],
      { cwd: folder },
    )
    await build()
    // The pages of the build are older than what the process will serve.
    versions.set('4', 1)
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true}',
    })
    next = await startNext(port)
    builtPages.push(await shownAt('/front'), await shownAt('/fetched'))
    // Until then the purge of everything with which the gateway began is not confirmed.
    await vi.waitFor(async () => expect((await write(9)).status).toBe(200), {
      timeout: 60_000,
      interval: 500,
    })
  }, 600_000)
  afterAll(async () => {
    for (const one of [next, ...instances]) await one?.stop(0)
    await gateway?.close()
    await origin?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const shownAt = async (path: string, at = address): Promise<number> => {
    const response = await fetch(at + path)
    const [, version] = /<h1>version (\d+)<\/h1>/.exec(await response.text()) ?? []
    return Number(version)
  }
  const shown = (id: number): Promise<number> => shownAt(`/posts/${id}`)

  test('keeps what it has read', async () => {
    expect([await shown(1), await shown(1)]).toEqual([0, 0])
    const before = [reads, await gateway.metric('trellis_requests_total')]
    for (let count = 0; count < 10; count += 1) await shown(1)
    expect([reads, await gateway.metric('trellis_requests_total')]).toEqual(before)
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
        floor[id] = versions.get(String(id)) ?? 0
      }
    } finally {
      isOver = true
    }
    await Promise.all(readers)
    process.stdout.write(
      `Next.js ${release}: ${count} pages, ${reads} reads of the upstream, ${writes} writes, ${older.length} older\n`,
    )
    expect(older).toEqual([])
    expect(count).toBeGreaterThan(writes)
  }, 600_000)

  test('a change that Trellis does not hear of is not shown', async () => {
    const before = await shown(1)
    versions.set('1', (versions.get('1') ?? 0) + 1)
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
        `version ${(versions.get('2') ?? 0) - 1}`,
        `version ${versions.get('2')}`,
      ])
    } finally {
      await browser.close()
    }
  })

  test('a write is refused while Next.js is down, and shown when it is back', async () => {
    await next.stop(0)
    expect([504, 503]).toContain((await write(3)).status)
    expect((await write(3)).status).toBe(503)
    next = await startNext(Number(new URL(address).port))
    await expect.poll(async () => (await write(3)).status).toBe(200)
    expect(await shown(3)).toBe(versions.get('3'))
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
        expect(version).toBe(versions.get('4'))
        const before = reads
        expect(await shownAt(path)).toBe(version)
        expect(reads).toBe(before)
        // While the purge of a write is on its way.
        const [{ status }] = await Promise.all([write(4), next.stop(graceMs)])
        next = await startNext(port)
        const shownAfter = await shownAt(path)
        if (status === 200) expect(shownAfter).toBe(versions.get('4'))
        expect(shownAfter).toBeGreaterThanOrEqual(version)
        await expect.poll(async () => (await write(4)).status).toBe(200)
        expect(await shownAt(path)).toBe(versions.get('4'))
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
    const built = build().finally(() => {
      isBuilt = true
    })
    await Promise.all([built, writing()])
    const version = versions.get('4')
    await next.stop()
    next = await startNext(port)
    for (const path of ['/front', '/fetched', '/posts/4']) expect(await shownAt(path)).toBe(version)
    await expect.poll(async () => (await write(4)).status).toBe(200)
    for (const path of ['/front', '/fetched', '/posts/4']) expect(await shownAt(path)).toBe(versions.get('4'))
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
        for (const url of urls) await compareAt(url, versions.get('4') ?? 0)
      }
    }
    const urls = [address]
    for (let nth = 0; nth < 2; nth += 1) {
      const port = await freePort()
      instances.push(await startNext(port))
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
