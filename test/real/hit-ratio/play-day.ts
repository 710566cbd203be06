import type { Push } from '../companion/intake.ts'
import { confirmPushes } from '../companion/keep.ts'
import { forAll } from '../for-all.ts'
import { createRandom, type Random } from '../promise-fuzz/random.ts'
import { type DayName, daySets, pluginSets } from '../sites/archives.ts'
import { textOfTags } from '../sites/measure-tags.ts'
import { graphqlEndpoint, interfaceRoot, openWorld, type World } from '../sites/open-world.ts'
import { type DayEvent, eventsOfDay, type RoundOfEvents } from './day-events.ts'
import { headlessPages, type Page, restPages, type Target } from './day-targets.ts'
import { type CauseCount, MissCauses, type Reply } from './miss-causes.ts'
import { byZipf } from './mix.ts'
import { whyDropped } from './why-dropped.ts'

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
  /** The same by what was the cause. */
  readonly causes: ReadonlyMap<string, CauseCount>
  /** By event: how often it was sent, stored responses before it, and after it. */
  readonly left: Map<string, { times: number; before: number; after: number }>
}

const readsOfRound = 100
/** Of a round, by a crawler that reads all pages in turn. */
const readsOfCrawler = 5

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
  readonly outcome: DayOutcome
  readonly #world: World
  readonly #causes: MissCauses

  constructor(world: World, causes: MissCauses) {
    this.#world = world
    this.#causes = causes
    this.outcome = {
      all: { reads: 0, hits: 0 },
      REST: { reads: 0, hits: 0 },
      GraphQL: { reads: 0, hits: 0 },
      older: [],
      compared: 0,
      misses: new Map(),
      causes: causes.counts,
      left: new Map(),
    }
  }

  /** Sends it, and waits until the gateway has been told of what went past it. */
  async send({ name, send }: DayEvent): Promise<void> {
    const { site, gateway, withCompanion } = this.#world
    const count = site.intake.pushes.length
    const before = await gateway.metric('trellis_cache_entries')
    const stored = await this.#storedPaths()
    await send()
    const pushes = site.intake.pushes.slice(count)
    if (withCompanion) await confirmPushes(gateway, pushes)
    const after = await gateway.metric('trellis_cache_entries')
    const now = await this.#storedPaths()
    const dropped = [...stored].filter((path) => !now.has(path))
    this.#causes.dropped(dropped, name)
    if (process.env['SHOW_DROPPED'] !== undefined && dropped.length > 0)
      await this.#tellDropped(`${name} dropped ${dropped.length} of ${stored.size}`, dropped, pushes)
    const left = this.outcome.left.get(name) ?? { times: 0, before: 0, after: 0 }
    this.outcome.left.set(name, {
      times: left.times + 1,
      before: left.before + before,
      after: left.after + Math.min(before, after),
    })
  }

  /** Of the interface; queries have one address together, and are missing. */
  async #storedPaths(): Promise<ReadonlySet<string>> {
    const response = await fetch(`${this.#world.gateway.adminAddress}/cache/entries?limit=1000`)
    const { entries } = (await response.json()) as { readonly entries: readonly { readonly url: string }[] }
    const urls = entries.map(({ url }) => url).filter((url) => url.includes(interfaceRoot))
    return new Set(urls.map((url) => url.slice(url.indexOf(interfaceRoot) + interfaceRoot.length)))
  }

  /** By the tags that they have in common with what was reported; they are read once more for that. */
  async #tellDropped(title: string, dropped: readonly string[], pushes: readonly Push[]): Promise<void> {
    const byTags = new Map<string, string[]>()
    await forAll(dropped, async (path) => {
      const response = await fetch(`${this.#world.site.origin}${interfaceRoot}${path}`)
      await response.arrayBuffer()
      const tags = whyDropped(textOfTags(response.headers.get('trellis-tags') ?? ''), pushes).join(', ')
      byTags.set(tags, [...(byTags.get(tags) ?? []), path])
    })
    process.stdout.write(`${title}\n`)
    for (const [tags, paths] of [...byTags].sort(([, one], [, other]) => other.length - one.length))
      process.stdout.write(`  ${paths.length} by ${tags}: ${paths.join(' ')}\n`)
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
      this.#causes.read(target, reply)
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
  // As it is shipped: with shorter intervals a busy machine answers polls too late, and the gateway trusts no report meanwhile.
  const poll = '5s'
  const world = await openWorld({ plugins: pluginSets[daySets[name]], withCompanion, testPlugins, poll })
  try {
    const random = createRandom(seed)
    const products = name === 'shop' ? await productsOn(world) : []
    const all = name === 'headless' ? headlessPages(world.ids) : restPages(world.ids, products)
    const pages = all.slice(0, options.pages ?? all.length)
    const nextEvents = await eventsOfDay(world, products, random)
    const targets = pages.flatMap(({ rest, query }) => (query === undefined ? [rest] : [rest, query]))
    const causes = new MissCauses()
    const warmUp = new Day(world, causes)
    // What is done for the first time is noted in the database, which drops more than later times: passwords, the editor's screen.
    for (const { changes, others } of [nextEvents(), nextEvents()])
      for (const event of [...changes, ...others]) await warmUp.send(event)
    // What a first reading stores for later ones keeps some of them from being stored.
    for (let pass = 0; pass < 3; pass += 1) await warmUp.read(targets)
    causes.emptied()
    const day = new Day(world, causes)
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
