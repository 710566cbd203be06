import { expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { token } from './companion/intake.ts'
import { forAll } from './companion/keep.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'
import { mixOn } from './hit-ratio/mix.ts'
import { readMany } from './read-many.ts'
import { largePlugins, type TestPlugin } from './wordpress/start-wordpress.ts'

/**
 * `LARGE=sets`: every set of plugins; `LARGE=all`: with all 200 responses, and a longer run of reads as well; SEED=n for another
 * one.
 */
const isWhole = process.env['LARGE'] === 'all'
const seed = Number(process.env['SEED'] ?? 3)
const rounds = isWhole ? 15 : 2
const readsOfWrite = 100
const root = '/index.php/wp-json'

type PluginSet = readonly [name: string, plugins: readonly TestPlugin[], least: number]
const sets: readonly PluginSet[] = [
  ['no plugin', [], 0.75],
  ['fields', ['large-fields'], 0.75],
  ['tables', ['large-index'], 0.75],
  ['all', largePlugins, 0.6],
]
const chosen = sets.filter(([name]) => process.env['LARGE'] !== undefined || name === 'all')

type Write = readonly [name: string, method: string, path: string, body: (nth: number) => object]
const writes: readonly Write[] = [
  ['content', 'PUT', '/wp/v2/posts/90', (nth) => ({ content: `<p>Rewritten ${nth}</p>` })],
  ['title', 'PUT', '/wp/v2/posts/91', (nth) => ({ title: `Retitled ${nth}` })],
  [
    'new post',
    'POST',
    '/wp/v2/posts',
    (nth) => ({ title: `New ${nth}`, status: 'publish', categories: [3] }),
  ],
  ['category', 'PUT', '/wp/v2/categories/3', (nth) => ({ description: `Described ${nth}` })],
  ['alt text', 'PUT', '/wp/v2/media/121', (nth) => ({ alt_text: `Shown ${nth}` })],
  ['comment', 'POST', '/wp/v2/comments', (nth) => ({ post: 80, content: `Said ${nth}` })],
]

type Stored = ReadonlyMap<string, string>
type Seen = { readonly status: string; readonly text: string }

/** Addresses differ by their ports alone. */
const withoutPorts = (text: string): string => text.replaceAll(/http:(?:\\?\/){2}127\.0\.0\.1:\d+/g, '@')

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(0)} %`

describeWith('php', 'a WordPress with large plugins, with the companion and without it', () => {
  const open = async (plugins: readonly TestPlugin[]) => {
    const port = await freePort()
    const site = await startCompanionSite({}, [...plugins, 'promise-fuzz'], [`http://127.0.0.1:${port}`])
    const gatewayWith = (more: object, settings: object) =>
      startTestGateway({
        ...settings,
        services: {
          blog: siteService(site.origin, {
            names: 'same',
            mount: root,
            discovery: { source: 'upstream' },
            cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
            ...more,
          }),
        },
      })
    const plain = await gatewayWith({}, {})
    const companion = await gatewayWith({ changes: { token, poll: '1s' } }, { admin: { port } })
    await expect
      .poll(() => companion.metric('trellis_changes_state', 'state="heard"'), { timeout: 60_000 })
      .toBe(1)
    for (const { publicAddress } of [plain, companion])
      await expect.poll(async () => (await fetch(`${publicAddress}${root}/`)).status).toBe(200)
    const stop = async () => {
      await plain.close()
      await companion.close()
      await site.stop()
    }
    return { site, plain, companion, stop }
  }

  const read = async (origin: string, path: string): Promise<Seen> => {
    const response = await fetch(`${origin}${root}/wp/v2/${path}`)
    const text = withoutPorts(await response.text())
    return { status: response.headers.get('cache-status') ?? '', text }
  }
  const isHit = ({ status }: Seen): boolean => /^trellis; ?(?:hit|.*; ?collapsed)/.test(status)

  /** Reads until all that can be stored is. */
  const store = async (
    { publicAddress }: TestGateway,
    paths: readonly string[],
  ): Promise<readonly string[]> => {
    const stored: string[] = []
    let missing = paths
    for (let tries = 0; tries < 30 && missing.length > 0; tries += 1) {
      if (tries > 2) await new Promise((resolve) => setTimeout(resolve, 200))
      const seen = await forAll(missing, (path) => read(publicAddress, path))
      stored.push(...missing.filter((_, at) => seen[at] !== undefined && isHit(seen[at])))
      missing = missing.filter((_, at) => seen[at] !== undefined && !isHit(seen[at]))
    }
    return stored
  }

  const send = async (
    site: CompanionSite,
    gateway: TestGateway,
    method: string,
    path: string,
    body: unknown,
  ) => {
    const response = await site.rest(method, path, body, gateway.publicAddress)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`)
  }

  const direct = async (site: CompanionSite, paths: readonly string[], served: Stored): Promise<Stored> => {
    const asked = paths.map((path) => ({ route: `/wp/v2/${path}`, user: 0 }))
    const answers = await readMany(site.origin, asked)
    const texts = await forAll([...paths.entries()], async ([at, path]) => {
      const text = withoutPorts(answers[at]?.body ?? '')
      // By its own request where the answer of many differs from what the gateway has.
      return text === served.get(path) ? text : (await read(site.origin, path)).text
    })
    return new Map(paths.map((path, at) => [path, texts[at] ?? '']))
  }

  const purgeAll = async ({ adminAddress }: TestGateway): Promise<void> => {
    const response = await fetch(`${adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true}',
    })
    expect(response.status).toBe(200)
  }

  /** Stored responses that a write leaves, and those of them that are outdated. */
  const leftBy = async (
    site: CompanionSite,
    gateway: TestGateway,
    paths: readonly string[],
    write: Write,
    nth: number,
  ) => {
    const stored = await store(gateway, paths)
    const [, method, path, body] = write
    await send(site, gateway, method, path, body(nth))
    const seen = await forAll(stored, (one) => read(gateway.publicAddress, one))
    const kept = stored.filter((_, at) => seen[at] !== undefined && isHit(seen[at]))
    const served = new Map(stored.map((one, at) => [one, seen[at]?.text ?? '']))
    const own = await direct(site, kept, served)
    const stale = kept.filter((one) => served.get(one) !== own.get(one))
    const dropped = stored.filter((one) => !kept.includes(one))
    return { stored: stored.length, kept: kept.length, stale, dropped }
  }

  test.each(chosen)(
    '%s: a write leaves at least as much with the companion, and nothing outdated',
    async (name, plugins, least) => {
      const { site, plain, companion, stop } = await open(plugins)
      try {
        const mix = await mixOn({ restRoot: site.origin + root }, seed)
        const paths = mix.targets.filter((_, at) => isWhole || at % 6 === 0)
        // The first use of an application password is noted as a change of its user.
        await send(site, companion, 'PUT', '/wp/v2/posts/30', {})
        const cells: { title: string; without: number; withIt: number; stale: readonly string[] }[] = []
        for (const [nth, write] of writes.entries()) {
          // It has not heard of what was written through the other one.
          await purgeAll(plain)
          const without = await leftBy(site, plain, paths, write, 2 * nth)
          const withIt = await leftBy(site, companion, paths, write, 2 * nth + 1)
          process.stdout.write(
            `${name}, ${write[0]}: without ${without.kept}/${without.stored}, with ${withIt.kept}/${withIt.stored} (${percent(withIt.kept, withIt.stored)})\n`,
          )
          if (process.env['SHOW_DROPPED'] === '1') process.stdout.write(`${withIt.dropped.join('\n')}\n`)
          const shareOf = ({ kept, stored }: typeof without) => kept / stored
          const stale = [...without.stale, ...withIt.stale]
          cells.push({ title: write[0], without: shareOf(without), withIt: shareOf(withIt), stale })
        }
        expect(cells.flatMap(({ title, stale }) => stale.map((path) => `${title}: ${path}`))).toEqual([])
        expect(cells.filter((cell) => cell.withIt < cell.without)).toEqual([])
        expect(cells.filter((cell) => cell.withIt < least)).toEqual([])
      } finally {
        await stop()
      }
    },
    3_600_000,
  )

  test(`${rounds * readsOfWrite} reads by Zipf's law, a write after each ${readsOfWrite}, with all plugins`, async () => {
    const { site, plain, companion, stop } = await open(largePlugins)
    try {
      const ratios = new Map<string, number>()
      await send(site, companion, 'PUT', '/wp/v2/posts/30', {})
      for (const [name, gateway] of [
        ['without', plain],
        ['with', companion],
      ] as const) {
        const mix = await mixOn({ restRoot: site.origin + root }, seed)
        const played = Array.from({ length: rounds }, () => ({
          write: mix.nextWrite(),
          targets: Array.from({ length: readsOfWrite }, () => mix.nextTarget()),
        }))
        await store(gateway, [...new Set(played.flatMap(({ targets }) => targets))])
        let [hits, stale] = [0, 0]
        for (const { write, targets } of played) {
          const { method, path, body } = write
          await send(site, gateway, method, `/wp/v2/${path}`, body)
          const seen = await forAll(targets, (one) => read(gateway.publicAddress, one))
          const served = new Map(targets.map((one, at) => [one, seen[at]?.text ?? '']))
          const own = await direct(site, [...served.keys()], served)
          hits += seen.filter(isHit).length
          stale += seen.filter((one, at) => isHit(one) && one.text !== own.get(targets[at] ?? '')).length
        }
        ratios.set(name, hits / (rounds * readsOfWrite))
        process.stdout.write(
          `${name} the companion: hit ratio ${hits / (rounds * readsOfWrite)}, ${stale} stale\n`,
        )
        expect(stale).toBe(0)
      }
      expect(ratios.get('with')).toBeGreaterThanOrEqual(ratios.get('without') ?? 1)
      if (isWhole) expect(ratios.get('with')).toBeGreaterThanOrEqual(0.85)
    } finally {
      await stop()
    }
  }, 3_600_000)
})
