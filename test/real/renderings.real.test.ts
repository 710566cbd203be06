import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAll, rowsOf } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { type Ids, idsOfSite } from './invalidation/site-ids.ts'
import { type Rendering, renderings, type Step } from './renderings/table.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

/** In CI the rows take turns at the ways in which a page is read. */
const formsFor = (forms: readonly string[], row: number): readonly string[] =>
  isAll ? forms : forms.filter((_, at) => at === row % forms.length)

const image = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

type Reply = { readonly status: number; readonly cacheStatus: string; readonly content: unknown }

const hit = /^trellis; ?hit/

/** The first row of each thing. */
const firsts = new Set([...new Map([...renderings].reverse().map((row) => [row.thing, row])).values()])
/** In CI one row for each thing that is rendered, and those that make what others change. */
const some = rowsOf(renderings, renderings.length, (row) => row.write.keep !== undefined || firsts.has(row))

describeWith('php', 'what WordPress renders into a content, after a write through the gateway', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let throughGateway: string
  let ids: Ids

  beforeAll(async () => {
    // Its own address is the gateway's, so that both answer with the same links.
    const port = await freePort()
    wordpress = await startWordPress({ publicUrl: `http://127.0.0.1:${port}`, plugins: ['garden-notes'] })
    gateway = await startTestGateway({
      listen: { host: '127.0.0.1', port },
      services: {
        site: {
          contract: 'site',
          mount: '/index.php/wp-json',
          names: 'same',
          upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
          cache: { rules: [{ match: 'GET /**', override: true, ttl: '1h', scope: 'credential' }] },
        },
      },
    })
    throughGateway = `${gateway.publicAddress}/index.php/wp-json`
    ids = await idsOfSite(wordpress)
    const [template = ''] = String(ids.get('template')).split('//')
    ids.set('theme', template)
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const filled = (text: string): string =>
    text.replace(/\{(\w+)\}/g, (name, id: string) => String(ids.get(id) ?? name))
  const filledBody = (body: Readonly<Record<string, unknown>>): string =>
    filled(JSON.stringify(body)).replace(/"(\d+)"/g, '$1')

  const carryOut = async ({ method, path, body, keep }: Step): Promise<void> => {
    const upload = { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="new.png"' }
    const response = await fetch(`${throughGateway}/${filled(path)}`, {
      method,
      headers: {
        Authorization: basic(wordpress.credentials.admin),
        ...(body === 'image' ? upload : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: body === 'image' ? image : filledBody(body) }),
    })
    const said = (await response.json()) as { id?: number; link?: string; source_url?: string }
    expect([200, 201], `${method} ${path}: ${JSON.stringify(said).slice(0, 300)}`).toContain(response.status)
    if (keep === undefined) return
    ids.set(keep, said.id ?? 0)
    ids.set(`${keep}Url`, said.source_url ?? encodeURIComponent(said.link ?? ''))
  }

  const read = async (root: string, path: string, caller: Rendering['caller']): Promise<Reply> => {
    const headers = caller === 'admin' ? { Authorization: basic(wordpress.credentials.admin) } : {}
    const response = await fetch(`${root}/${path}`, { headers })
    return {
      status: response.status,
      cacheStatus: response.headers.get('cache-status') ?? '',
      content: await response.json(),
    }
  }

  /** A page with the content, and where it is read. */
  const makeContent = async (content: string): Promise<readonly string[]> => {
    const body = { title: 'Renders others', status: 'publish', content }
    await carryOut({ method: 'POST', path: 'wp/v2/pages', body, keep: 'content' })
    return ['wp/v2/pages/{content}', 'wp/v2/pages?include={content}', 'wp/v2/pages/{content}?_fields=content']
  }

  test.each(some.map((one, at) => [one.title, one, at] as const))('%s', async (_, row, nth) => {
    for (const step of row.setUp ?? []) await carryOut(step)
    const paths =
      row.content === undefined ? (row.reads ?? []) : formsFor(await makeContent(row.content), nth)
    const before: unknown[] = []
    for (const path of paths.map(filled)) {
      before.push((await read(throughGateway, path, row.caller)).content)
      const second = await read(throughGateway, path, row.caller)
      expect(second, path).toMatchObject({ status: 200, cacheStatus: expect.stringMatching(hit) })
    }
    // A stored response shows the earlier values, so that as little as possible is invalidated.
    await read(throughGateway, filled(row.write.path.split('?', 1)[0] ?? ''), undefined)
    await carryOut(row.write)
    for (const [at, path] of paths.map(filled).entries()) {
      const after = await read(throughGateway, path, row.caller)
      const direct = await read(wordpress.restRoot, path, row.caller)
      expect(after.content, path).toEqual(direct.content)
      // Otherwise the row would say nothing.
      expect(direct.content, `${path} shows no change`).not.toEqual(before[at])
    }
  })
})
