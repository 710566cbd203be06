import { confirmPushes, forAll } from '../companion/keep.ts'
import { createRandom, type Random } from '../promise-fuzz/random.ts'
import { type DayName, daySets, pluginSets } from '../sites/archives.ts'
import { graphqlEndpoint, interfaceRoot, openWorld, type World } from '../sites/open-world.ts'
import { type DayEvent, eventsOfDay, type RoundOfEvents } from './day-events.ts'
import { headlessPages, type Page, restPages, type Target } from './day-targets.ts'
import { byZipf } from './mix.ts'

type DayOptions = {
  readonly day: DayName
  readonly withCompanion: boolean
  readonly reads: number
  readonly seed: number
  /** The most wanted pages only; all of them if there is no number. */
  readonly pages?: number
}

type Count = { reads: number; hits: number }

export type DayOutcome = {
  readonly all: Count
  readonly REST: Count
  readonly GraphQL: Count
  /** Hits that were older than what WordPress said. */
  readonly older: string[]
  compared: number
  /** By kind of read and Cache-Status: reads that were no hits. */
  readonly misses: Map<string, number>
  /** By event: how often it was sent, stored responses before it, and after it. */
  readonly left: Map<string, { times: number; before: number; after: number }>
}

const readsOfRound = 100
/** Of a round, by a crawler that reads all pages in turn. */
const readsOfCrawler = 5

type Reply = { readonly isHit: boolean; readonly status: string; readonly text: string }

/** Addresses differ by their ports alone, and their spelling of slashes; how long a query took is in its extensions. */
const comparable = (text: string): string =>
  text.replaceAll(/http:(?:\\?\/){2}127\.0\.0\.1:\d+/g, '@').replace(/,"extensions":.*$/s, '')

const send = (origin: string, { kind, text }: Target, headers: Record<string, string>): Promise<Response> =>
  kind === 'REST'
    ? fetch(`${origin}${interfaceRoot}${text}`, { headers })
    : fetch(origin + graphqlEndpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ query: text }),
      })

const read = async (origin: string, target: Target, headers: Record<string, string> = {}): Promise<Reply> => {
  const response = await send(origin, target, headers)
  const text = comparable(await response.text())
  if (response.status !== 200) throw new Error(`${target.text}: ${response.status} ${text.slice(0, 200)}`)
  const status = response.headers.get('cache-status') ?? ''
  return { status, text, isHit: /^trellis; ?(?:hit|.*; ?collapsed)/.test(status) }
}

/** No cookie that WordPress knows: the gateway fetches the response, and leaves what is stored alone. */
const unstored = { Cookie: 'day=1' }

class Day {
  readonly outcome: DayOutcome = {
    all: { reads: 0, hits: 0 },
    REST: { reads: 0, hits: 0 },
    GraphQL: { reads: 0, hits: 0 },
    older: [],
    compared: 0,
    misses: new Map(),
    left: new Map(),
  }
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** Sends it, and waits until the gateway has been told of what went past it. */
  async send({ name, send }: DayEvent): Promise<void> {
    const { site, gateway, withCompanion } = this.#world
    const count = site.intake.pushes.length
    const shows = process.env['SHOW_DROPPED'] !== undefined
    const urls = shows ? await this.#storedUrls() : new Set<string>()
    const before = await gateway.metric('trellis_cache_entries')
    await send()
    if (withCompanion) await confirmPushes(gateway, site.intake.pushes.slice(count))
    const after = await gateway.metric('trellis_cache_entries')
    if (shows) {
      const now = await this.#storedUrls()
      const dropped = [...urls].filter((url) => !now.has(url))
      const reported = site.intake.pushes.slice(count).flatMap(({ changes }) => changes)
      if (dropped.length > 0 || before !== after)
        process.stdout.write(
          `${name} dropped ${dropped.length} of ${urls.size}: ${dropped.join(' ')}; reported: ${JSON.stringify(reported)}\n`,
        )
    }
    const left = this.outcome.left.get(name) ?? { times: 0, before: 0, after: 0 }
    this.outcome.left.set(name, {
      times: left.times + 1,
      before: left.before + before,
      after: left.after + Math.min(before, after),
    })
  }

  async #storedUrls(): Promise<ReadonlySet<string>> {
    const response = await fetch(`${this.#world.gateway.adminAddress}/cache/entries?limit=1000`)
    const { entries } = (await response.json()) as { readonly entries: readonly { readonly url: string }[] }
    return new Set(entries.map(({ url }) => url))
  }

  /** Reads, counts, and returns the hits. */
  async read(targets: readonly Target[]): Promise<ReadonlyMap<Target, string>> {
    const { all, misses } = this.outcome
    const replies = await forAll(targets, (target) => read(this.#world.gateway.publicAddress, target))
    const hits = new Map<Target, string>()
    for (const [at, target] of targets.entries()) {
      const reply = replies[at]
      if (reply === undefined) continue
      for (const count of [all, this.outcome[target.kind]]) {
        count.reads += 1
        count.hits += Number(reply.isHit)
      }
      if (reply.isHit) hits.set(target, reply.text)
      else {
        const reason = reply.status.replace(/^trellis; ?/, '').replaceAll(/; ?(?:ttl|key)=[^;]*/g, '')
        const shape = `${target.kind} ${target.text.replaceAll(/\d+/g, 'N').slice(0, 60)} ${reason}`
        misses.set(shape, (misses.get(shape) ?? 0) + 1)
      }
    }
    return hits
  }

  /** Compares hits with what WordPress says. Where they differ, what is stored now decides: something may have changed in between. */
  async compare(hits: ReadonlyMap<Target, string>): Promise<void> {
    const { site, gateway } = this.#world
    this.outcome.compared += hits.size
    await forAll([...hits], async ([target, text]) => {
      if ((await read(site.origin, target)).text === text) return
      const stored = await read(gateway.publicAddress, target)
      const now = await read(gateway.publicAddress, target, unstored)
      if (stored.isHit && stored.text !== now.text) this.outcome.older.push(target.text)
    })
  }
}

const productsOn = async ({ site }: World): Promise<readonly number[]> => {
  const response = await fetch(`${site.origin}${interfaceRoot}/wc/store/v1/products?per_page=100`)
  return ((await response.json()) as readonly { readonly id: number }[]).map(({ id }) => id)
}

/** Draws readers' pages by Zipf's law, and for a crawler the next one of all. */
const wantedTargets = (pages: readonly Page[], random: Random): ((nth: number) => Target) => {
  const nextPage = byZipf(pages, random)
  const targetOf = ({ rest, query }: Page): Target =>
    query !== undefined && random.chance(0.5) ? query : rest
  let crawled = 0
  return (nth) => {
    if (nth % (readsOfRound / readsOfCrawler) > 0) return targetOf(nextPage())
    crawled += 1
    return targetOf(pages[crawled % pages.length] ?? nextPage())
  }
}

const playRound = async (
  day: Day,
  { changes, others }: RoundOfEvents,
  wanted: readonly Target[],
): Promise<void> => {
  for (const event of changes) await day.send(event)
  const length = Math.ceil(wanted.length / (others.length + 1))
  const hits = new Map<Target, string>()
  for (const [at, other] of [undefined, ...others].entries()) {
    if (other !== undefined) await day.send(other)
    for (const [target, text] of await day.read(wanted.slice(at * length, (at + 1) * length)))
      hits.set(target, text)
  }
  await day.compare(hits)
}

/** Plays the day of a site: readers by Zipf's law and a crawler, an editor, shoppers, bots, and WordPress's cron. */
export const playDay = async (options: DayOptions): Promise<DayOutcome> => {
  const { day: name, withCompanion, reads, seed } = options
  const testPlugins = name === 'headless' ? (['graphql-for-tests'] as const) : []
  const world = await openWorld({ plugins: pluginSets[daySets[name]], withCompanion, testPlugins })
  try {
    const random = createRandom(seed)
    const products = name === 'shop' ? await productsOn(world) : []
    const all = name === 'headless' ? headlessPages(world.ids) : restPages(world.ids, products)
    const pages = all.slice(0, options.pages ?? all.length)
    const nextEvents = await eventsOfDay(world, products, random)
    const targets = pages.flatMap(({ rest, query }) => (query === undefined ? [rest] : [rest, query]))
    const warmUp = new Day(world)
    // What is done for the first time is noted in the database, which drops more than later times: passwords, the editor's screen.
    for (const { changes, others } of [nextEvents(), nextEvents()])
      for (const event of [...changes, ...others]) await warmUp.send(event)
    // What a first reading stores for later ones keeps some of them from being stored.
    for (let pass = 0; pass < 3; pass += 1) await warmUp.read(targets)
    const day = new Day(world)
    const nextTarget = wantedTargets(pages, random)
    for (let done = 0; done < reads; done += readsOfRound)
      await playRound(
        day,
        nextEvents(),
        Array.from({ length: readsOfRound }, (_, nth) => nextTarget(nth)),
      )
    return day.outcome
  } finally {
    await world.stop()
  }
}
