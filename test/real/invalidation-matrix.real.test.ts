import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAll, rowsOf } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { forAll } from './for-all.ts'
import { inWordPressNames } from './in-wordpress-names.ts'
import { adminProbes, type MatrixWrite, publicProbes, writesOf } from './invalidation/matrix.ts'
import { type Ids, idsOfSite } from './invalidation/site-ids.ts'
import { readMany } from './read-many.ts'
import { basic, type SiteUnderTest } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

/** Two for each worker of the site: one waits while the other is served. */
const atOnce = 8

const image = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

type Probe = { readonly path: string; readonly caller: 'nobody' | 'admin' }

const allProbes: readonly Probe[] = [
  ...publicProbes.map((path) => ({ path, caller: 'nobody' as const })),
  ...adminProbes.map((path) => ({ path, caller: 'admin' as const })),
]

const probes = rowsOf(allProbes, 3)

type Reply = { readonly status: number; readonly cacheStatus: string; readonly shown: unknown }

describeWith('php', 'the writes of the invalidation matrix, on a real WordPress', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let site: SiteUnderTest
  let ids: Ids

  const filled = (text: string): string =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => String(ids.get(name)))
  const filledBody = (body: Readonly<Record<string, unknown>>): string =>
    filled(JSON.stringify(body)).replace(/"(\d+)"/g, '$1')

  const headersOf = ({ caller }: Probe): Record<string, string> =>
    caller === 'admin' ? { authorization: basic(wordpress.credentials.admin) } : {}

  const shownAs = (status: number, counts: readonly (string | null)[], body: unknown): unknown => ({
    ...{ status, counts },
    body: inWordPressNames(body, site, wordpress.restRoot),
  })

  const read = async (root: string, probe: Probe): Promise<Reply> => {
    const response = await fetch(`${root}/wp/v2/${filled(probe.path)}`, { headers: headersOf(probe) })
    const counts = ['x-wp-total', 'x-wp-totalpages'].map((name) => response.headers.get(name))
    return {
      status: response.status,
      cacheStatus: response.headers.get('cache-status') ?? '',
      shown: shownAs(response.status, counts, await response.json()),
    }
  }

  const write = async ({ method, path, body, keep, by }: MatrixWrite): Promise<number> => {
    const upload = { 'content-type': 'image/png', 'content-disposition': 'attachment; filename="new.png"' }
    const response = await fetch(`${site.restRoot}/wp/v2/${filled(path)}`, {
      method,
      headers: {
        authorization: basic(wordpress.credentials[by ?? 'admin']),
        ...(body === 'image' ? upload : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: body === 'image' ? image : filledBody(body) }),
    })
    const reply = (await response.json()) as { id?: number | string }
    if (keep !== undefined) ids.set(keep, reply.id ?? 'missing')
    return response.status
  }

  beforeAll(async () => {
    wordpress = await startWordPress({ plugins: ['promise-fuzz'] })
    gateway = await startTestGateway({
      services: {
        site: {
          contract: 'site',
          mount: '/index.php/wp-json',
          names: 'same',
          upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
          cache: {
            rules: [
              {
                match: 'GET /wp/v2/**',
                // WordPress sends no-store to every user with a login.
                override: true,
                ttl: '1h',
                staleWhileRevalidate: '1h',
                staleIfError: '1h',
                scope: 'credential',
              },
            ],
          },
        },
      },
    })
    site = {
      title: 'gateway',
      restRoot: `${gateway.publicAddress}/index.php/wp-json`,
      names: 'wordpress',
      namespace: 'wp/v2',
      throughGateway: true,
      admin: wordpress.credentials.admin,
    }
    ids = await idsOfSite(wordpress)
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const readAll = (): Promise<Reply[]> => forAll(probes, (probe) => read(site.restRoot, probe), atOnce)

  /** Compares the hits with WordPress: a miss is WordPress's own response. */
  const compare = async (before: readonly Reply[], after: readonly Reply[]): Promise<Outcome> => {
    const kept = [...probes.entries()].filter(([i]) => after[i]?.cacheStatus.startsWith('trellis; hit'))
    const asked = kept.map(([, { path, caller }]) => ({
      route: `/wp/v2/${filled(path)}`,
      user: caller === 'admin' ? 1 : 0,
    }))
    const many = await readMany(wordpress.origin, asked)
    // A response that differs is read again by its own request.
    const isOther = await forAll(
      kept,
      async ([i, probe], k) => {
        const { status = 0, total = null, pages = null, body = '' } = many[k] ?? {}
        if (isDeepStrictEqual(shownAs(status, [total, pages], JSON.parse(body)), after[i]?.shown))
          return false
        return !isDeepStrictEqual((await read(wordpress.restRoot, probe)).shown, after[i]?.shown)
      },
      atOnce,
    )
    const stale = kept.filter((_, k) => isOther[k])
    const isKept = new Set(kept.map(([i]) => i))
    const needless = [...probes.entries()].filter(
      ([i]) => !isKept.has(i) && isDeepStrictEqual(before[i]?.shown, after[i]?.shown),
    )
    return {
      kept: kept.length,
      needless: needless.map(([, { path }]) => path),
      stale: stale.map(([, { path, caller }]) => `${path} (${caller})`),
    }
  }

  test('after each write every response says what the site itself says', async () => {
    const table: string[] = []
    const stale: string[] = []
    const unexpected: string[] = []
    const droppedFor = new Map<string, number>()
    const verbose: string[] = []
    let kept = 0
    let needless = 0
    await readAll()
    let before = await readAll()
    const uncached = probes.filter((_, i) => !before[i]?.cacheStatus.startsWith('trellis; hit'))
    expect(uncached).toEqual([])
    for (const one of writesOf(6)) {
      const title = `${one.method} ${one.title}`
      const status = await write(one)
      if (status !== one.status) unexpected.push(`${title}: ${status}`)
      const after = await readAll()
      const outcome = await compare(before, after)
      kept += outcome.kept
      needless += outcome.needless.length
      for (const path of outcome.needless) droppedFor.set(path, (droppedFor.get(path) ?? 0) + 1)
      verbose.push(`${title}: ${outcome.needless.join(' ')}`)
      stale.push(...outcome.stale.map((probe) => `${title}: ${probe}`))
      const share = Math.round((100 * outcome.kept) / probes.length)
      table.push(
        `${title.padEnd(34)} ${String(share).padStart(3)} % left, ${outcome.needless.length} dropped without need`,
      )
      before = after
    }
    const precision = kept / (kept + needless)
    table.push(`of what did not change, ${Math.round(100 * precision)} % was left`)
    const max = [...droppedFor].sort(([, a], [, b]) => b - a).slice(0, 10)
    table.push(`most often without need: ${max.map(([path, times]) => `${path} ${times}`).join(', ')}`)
    if (process.env['TRELLIS_VERBOSE'] !== undefined) table.push(...verbose)
    process.stdout.write(`${table.join('\n')}\n`)
    expect({ stale, unexpected }).toEqual({ stale: [], unexpected: [] })
    // Writes to patterns and pages reach every content, since each may show them.
    expect(precision).toBeGreaterThan(isAll ? 0.85 : 0.74)
  }, 600_000)
})

type Outcome = {
  readonly kept: number
  /** Asked anew although nothing had changed. */
  readonly needless: readonly string[]
  readonly stale: readonly string[]
}
