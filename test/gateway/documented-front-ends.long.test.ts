import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { blocksOf } from '../support/shown-commands.ts'

const pageOf = (name: string): Promise<string> =>
  readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
const [cacheModule = '', server = ''] = blocksOf(await pageOf('front-ends.md'), 'js')
const [builder = ''] = blocksOf(await pageOf('builds.md'), 'js')
const root = '/index.php/site-json'
const secret = 'secret-of-the-webhook'

describe('the front ends that the documents show', { timeout: 120_000 }, () => {
  const versions = new Map<string, number>()
  let folder: string
  let origin: Origin
  let gateway: TestGateway
  let port: number

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-front-ends-'))
    port = await freePort()
    origin = await startOrigin(({ method, target }, wire) => {
      const id = /posts\/(\d+)/.exec(target)?.[1] ?? ''
      if (method === 'POST') versions.set(id, (versions.get(id) ?? 0) + 1)
      const post = { id: Number(id), type: 'post', status: 'publish', title: versions.get(id) ?? 0 }
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
    })
    gateway = await startTestGateway({
      services: {
        blog: siteService(origin.origin, {
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
          downstream: {
            tags: 'Surrogate-Key',
            settle: '1ms',
            receivers: [
              { type: 'webhook', url: `http://127.0.0.1:${port}/api/purge`, secret, onFailure: 'refuse' },
            ],
          },
        }),
      },
    })
    const files = {
      'package.json': '{"type":"module"}',
      'trellis-cache.js': cacheModule,
      'server.js': server.replace('/wp-json/wp/v2', `${root}/site/v2`),
      'builder.js': builder,
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  })
  afterAll(async () => {
    await gateway?.close()
    await origin?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const write = (id: number): Promise<Response> =>
    fetch(`${gateway.publicAddress}${root}/site/v2/posts/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })
  const shown = async (id: number): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}/posts/${id}`)
    return ((await response.json()) as { readonly title: number }).title
  }
  const startServer = async (): Promise<RunningProcess> => {
    const program = startProcess(process.execPath, [join(folder, 'server.js')], {
      env: { TRELLIS: gateway.publicAddress, TRELLIS_SECRET: secret, PORT: String(port) },
    })
    await untilReady(program, async () => {
      const { status } = await fetch(`http://127.0.0.1:${port}/api/purge`, { method: 'POST', body: '{}' })
      if (status !== 403) throw new Error(`status ${status}`)
    })
    return program
  }
  const writesAreTaken = (): Promise<void> => expect.poll(async () => (await write(9)).status).toBe(200)

  test('a Node server keeps what it reads, and shows each acknowledged write, over restarts too', async () => {
    let program = await startServer()
    try {
      await writesAreTaken()
      await shown(1)
      const before = origin.received.length
      expect([await shown(1), await shown(1)]).toEqual([0, 0])
      expect(origin.received).toHaveLength(before)
      let isOver = false
      let floor = 0
      let reads = 0
      const older: string[] = []
      const reader = async (): Promise<void> => {
        while (!isOver) {
          const min = floor
          const version = await shown(1)
          reads += 1
          if (version < min) older.push(`${version} after ${min}`)
        }
      }
      const readers = [reader(), reader()]
      for (let nth = 0; nth < 20; nth += 1) {
        expect((await write(1)).status).toBe(200)
        floor = versions.get('1') ?? 0
        const before = reads
        await origin.until(() => reads > before + 2)
      }
      isOver = true
      await Promise.all(readers)
      expect(older).toEqual([])
      // While the purge of a write is on its way.
      const [{ status }] = await Promise.all([write(1), program.stop(0)])
      program = await startServer()
      if (status === 200) expect(await shown(1)).toBe(versions.get('1'))
      await writesAreTaken()
      expect((await write(1)).status).toBe(200)
      expect(await shown(1)).toBe(versions.get('1'))
    } finally {
      await program.stop(0)
    }
  })

  test('the script for builds makes the changed pages alone, and all after a restart of Trellis', async () => {
    process.env['TRELLIS'] = gateway.publicAddress
    process.env['TRELLIS_ADMIN'] = gateway.adminAddress
    process.env['OUT'] = join(folder, 'dist')
    type Post = { readonly title: number }
    type Pages = Record<string, (read: (path: string) => Promise<Post>) => Promise<string>>
    type Builder = { readonly build: (pages: Pages) => Promise<number> }
    const { build }: Builder = await import(pathToFileURL(join(folder, 'builder.js')).href)
    const program = await startServer()
    try {
      await writesAreTaken()
      const pages: Pages = Object.fromEntries(
        Array.from({ length: 20 }, (_, at) => [
          `${at + 10}.html`,
          async (read) => String((await read(`${root}/site/v2/posts/${at + 10}`)).title),
        ]),
      )
      expect(await build(pages)).toBe(20)
      expect(await build(pages)).toBe(0)
      expect((await write(12)).status).toBe(200)
      expect(await build(pages)).toBe(1)
      expect(await readFile(join(folder, 'dist/12.html'), 'utf8')).toBe('1')
      expect(await build(pages)).toBe(0)
      const state = join(folder, 'dist/.trellis.json')
      await writeFile(state, (await readFile(state, 'utf8')).replace(/"build":"[^"]+"/, '"build":"unknown"'))
      expect(await build(pages)).toBe(20)
    } finally {
      await program.stop(0)
    }
  })
})
