import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { blocksOf } from '../support/shown-commands.ts'

const run = promisify(execFile)
/** The last that Node 20 runs. */
const release = 'astro@5.18.2'
const document = await readFile(new URL('../../docs/front-ends.md', import.meta.url), 'utf8')
const [, readModule = ''] = blocksOf(document, 'ts')
const root = '/index.php/site-json/site/v2'
const pages = 500

const page = `---
import { read } from '../../read'
export const getStaticPaths = () =>
  Array.from({ length: ${pages} }, (_, at) => ({ params: { id: String(at + 1) } }))
const post = await read('/posts/' + Astro.params.id)
const menu = await read('/pages/1000')
---
<html lang="en"><body><nav>{menu.title}</nav><h1>{post.title}</h1></body></html>
`

describe('an Astro site that is built through the gateway, as docs/front-ends.md shows', () => {
  const versions = new Map<string, number>()
  let folder: string
  let origin: Origin
  let gateway: TestGateway

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-astro-'))
    origin = await startOrigin(({ method, target }, wire) => {
      const id = /\/(\d+)$/.exec(target)?.[1] ?? ''
      if (method === 'POST') versions.set(id, (versions.get(id) ?? 0) + 1)
      const post = {
        id: Number(id),
        type: 'post',
        status: 'publish',
        title: `version ${versions.get(id) ?? 0}`,
      }
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
    })
    gateway = await startTestGateway({
      services: {
        blog: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
      },
    })
    const files = {
      'package.json': '{"private":true,"type":"module"}',
      'src/read.ts': readModule.replace('http://127.0.0.1:8080/wp-json/wp/v2', gateway.publicAddress + root),
      'src/pages/posts/[id].astro': page,
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
    await run('npm', ['install', '--silent', '--no-audit', '--no-fund', release], { cwd: folder })
  }, 300_000)
  afterAll(async () => {
    await gateway?.close()
    await origin?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const build = (id: string): Promise<unknown> =>
    run(process.execPath, [join(folder, 'node_modules/astro/astro.js'), 'build'], {
      cwd: folder,
      env: { ...process.env, TRELLIS_BUILD: id, ASTRO_TELEMETRY_DISABLED: '1' },
    })
  const builds = async (path: string, init?: RequestInit) =>
    (await (await fetch(`${gateway.adminAddress}/builds${path}`, init)).json()) as {
      readonly build: string
      readonly changed: readonly string[]
      readonly torn: boolean
    }

  test('each URL is fetched once, and after an edit one', async () => {
    const begin = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' }
    const first = await builds('', begin)
    await build(first.build)
    expect(origin.received).toHaveLength(pages + 1)
    expect(new Set(origin.received.map(({ target }) => target)).size).toBe(pages + 1)
    const written = await fetch(`${gateway.publicAddress}${root}/posts/7`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })
    expect(written.status).toBe(200)
    expect(await builds(`/${first.build}`)).toMatchObject({ changed: [`${root}/posts/7`], torn: false })
    const before = origin.received.length
    await build((await builds('', begin)).build)
    expect(origin.received.length - before).toBeLessThanOrEqual(1)
    expect(await readFile(join(folder, 'dist/posts/7/index.html'), 'utf8')).toContain('version 1')
  }, 300_000)
})
