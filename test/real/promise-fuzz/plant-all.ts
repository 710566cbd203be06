import { basic } from '../site-under-test.ts'
import { chooseWrite } from './choose-write.ts'
import { createFaultyTables, isPlain, type Kept, type PlainWrite, siteContractOf } from './faulty-tables.ts'
import { forAll, remember } from './fuzz-site.ts'
import { type Plant, plantFault, plants } from './plants.ts'
import { choosePools, type Pools, seededIds } from './pools.ts'
import { createRandom, type Random } from './random.ts'
import { chooseRead } from './reads.ts'
import { readText, writeText } from './report.ts'
import { sendWrite } from './send-write.ts'
import type { FuzzedSite, FuzzedSites, Read } from './site-under-fuzz.ts'
import { type Created, resolved } from './write.ts'

/** Why no read can show that an effect is missing, by names of faults. */
const unobservable: readonly (readonly [names: RegExp, reason: string])[] = [
  [/^contact-forms\./, 'the WordPress of the tests has no Contact Form 7'],
  [/^(?:oembed|search|types|statuses|taxonomies|menu-locations)\./, 'read only: no route writes there'],
  [/^settings\.(?:create|delete)\./, 'settings can only be updated'],
]

/** A fault, and what has been seen of it. */
export type Standing = {
  readonly plant: Plant
  readonly unobservable?: string
  /** Writes of the run, and those of them that the fault concerns, until a stale answer was seen. */
  found?: { readonly writes: number; readonly concerned: number; readonly by: string }
  /** Writes so far that the fault concerns. */
  concerned: number
  /** Answers that only this effect dropped, although WordPress says the same as before. */
  needless: number
  /** Stale answers that were computed and not seen on the gateway. */
  unseen: number
}

const wantedReads = ({ name, collection }: Plant): RegExp => {
  const part = name.split('.').at(-1) ?? ''
  switch (part) {
    case 'dynamic':
    case 'contents':
    case 'any':
      return /^\/wp\/v2\/(?:posts|pages|blocks)/
    case 'shownBy':
      return /^\/wp\/v2\/(?:posts|pages|menu-items)/
    case 'embedded':
      return /_embed/
    case 'siblings':
      return new RegExp(`/${collection}\\b`)
    case 'everything':
    case 'rights':
      return /./
    default:
      return name.includes('.filters.')
        ? new RegExp(`/${collection}\\?${part}=`)
        : new RegExp(`[/?]${part.replace('search/term', 'search')}\\b`)
  }
}

const wantedWrites = ({ name, collection }: Plant): string => {
  const [, action = ''] = name.split('.')
  if (collection === 'media' && action === 'create') return 'upload'
  if (['create', 'update', 'delete'].includes(action)) return `${collection}.${action}`
  return ['minor', 'copied', 'searched', 'related', 'argument'].includes(action)
    ? `${collection}.update`
    : `${collection}.`
}

/** Writes to these are the same under both spellings of the names. */
const twinOf = (name: string): string | undefined =>
  name.startsWith('wp_pattern_category.')
    ? name.replace('wp_pattern_category', 'site_pattern_category')
    : undefined

const inWordPress = (name: string): string => name.replace(/^site_pattern_category/, 'wp_pattern_category')

const writesPerSite = 100
const mostWatched = 60
const mostUnseen = 5

type Options = {
  readonly writes: number
  readonly seed: number
  /** Only faults whose names begin so. */
  readonly only: string
  tell(line: string): void
}

const standingsOf = (only: string): readonly Standing[] =>
  plants
    .filter(({ name }) => name.startsWith(only))
    .map((plant) => {
      const reason = unobservable.find(([names]) => names.test(plant.name))?.[1]
      const standing = { plant, concerned: 0, needless: 0, unseen: 0 }
      return reason === undefined ? standing : { ...standing, unobservable: reason }
    })

const plainWrite = (number: number, pools: Pools, random: Random, focus: string): PlainWrite | undefined => {
  for (let tries = 0; tries < 40; tries += 1) {
    const write = chooseWrite(number, undefined, pools, random, focus)
    if (isPlain(write)) return write
  }
  return undefined
}

/** A write that has been sent, and what is needed to send it once more. */
type Sent = { readonly write: PlainWrite; readonly created: Created; readonly related: readonly Read[] }

/** Repeats the write on the state before it, with the fault if there is one, and tells whether the gateway then answers as before. */
const isStaleOn = async (
  site: FuzzedSite,
  plant: Plant | undefined,
  sent: Sent,
  read: Read,
): Promise<boolean> => {
  const remove = plant === undefined ? () => {} : plantFault(plant)
  try {
    await site.restore('before')
    const known = (one: Read): Read => resolved(one, sent.created) ?? one
    await forAll([read, ...sent.related], (one) => site.throughGateway(known(one)))
    await sendWrite(site, sent.write, new Map(sent.created))
    const { hit, shown } = await site.throughGateway(known(read))
    return hit && shown !== (await site.direct(known(read)))
  } finally {
    remove()
  }
}

/** Random writes; each is looked at under all faults at once, and a fault counts as found when a gateway that has it answers stale. */
export const plantAll = async (sites: FuzzedSites, options: Options): Promise<readonly Standing[]> => {
  const standings = standingsOf(options.only)
  const byName = new Map(standings.map((one) => [one.plant.name, one]))
  const isOpen = ({ found, unobservable, unseen }: Standing): boolean =>
    found === undefined && unobservable === undefined && unseen < mostUnseen
  const site = await sites.withSetting({ names: 'same', pages: false })
  const seeded = await seededIds(sites.wordpress, basic(sites.wordpress.credentials.admin))
  const contract = await siteContractOf(sites.wordpress, site.setting)
  const tables = createFaultyTables(
    contract,
    standings.filter(({ unobservable }) => unobservable === undefined).map(({ plant }) => plant),
  )
  let writes = 0

  /** Sees on a gateway whether the fault leaves the answer stale; the spelling of the names makes a fault of its own. */
  const confirm = async (name: string, sent: Sent, read: Read): Promise<void> => {
    const standing = byName.get(name)
    if (standing === undefined || !isOpen(standing)) return
    const { plant } = standing
    const isNeutral = plant.collection === 'site_pattern_category'
    const on = isNeutral ? await sites.withSetting({ names: 'wordpress', pages: false }) : site
    if (await isStaleOn(on, plant, sent, read)) {
      const by = `${writeText(sent.write)}; ${readText(read)}`
      standing.found = { writes, concerned: standing.concerned, by }
      options.tell(`${name.padEnd(40)} found after ${writes} writes, ${standing.concerned} of them its own`)
    } else {
      standing.unseen += 1
      if (standing.unseen === mostUnseen) options.tell(`${name.padEnd(40)} computed, not seen`)
    }
  }

  const fuzzOne = async (seed: number): Promise<void> => {
    const random = createRandom(seed)
    const pools = choosePools(seeded, random)
    const created: Created = new Map()
    const watched = new Map<string, Read>()
    await site.reset()
    tables.forget()
    const known = (read: Read): Read => resolved(read, created) ?? read

    const look = async (focus: Plant | undefined): Promise<Map<string, string>> => {
      for (let more = watched.size < mostWatched ? 12 : 4; more > 0; more -= 1) {
        const read = chooseRead(pools, random, focus === undefined ? undefined : wantedReads(focus))
        watched.set(JSON.stringify(read), read)
      }
      for (const key of [...watched.keys()].slice(0, Math.max(0, watched.size - mostWatched)))
        watched.delete(key)
      const reads = [...watched.values()]
      const answers = await site.directMany(reads.map(known))
      tables.forget()
      return new Map(
        reads.flatMap((read, at) => {
          const answer = answers[at]
          if (answer === undefined) return []
          tables.store(read, known(read), answer)
          return [[JSON.stringify(read), answer.shown] as const]
        }),
      )
    }

    /** Those that WordPress answers otherwise now, by the faults that would keep them. */
    const judge = (
      kept: readonly Kept[],
      now: ReadonlyMap<string, string>,
    ): { readonly changed: ReadonlyMap<Plant, Read[]>; readonly rightButChanged: readonly Read[] } => {
      const changed = new Map<Plant, Read[]>()
      const rightButChanged: Read[] = []
      for (const { read, shown, plants } of kept) {
        const is = now.get(JSON.stringify(read))
        if (is === undefined) continue
        if (is === shown) {
          const [only] = plants
          const standing = plants.length === 1 && only !== undefined ? byName.get(only.name) : undefined
          if (standing !== undefined) standing.needless += 1
          continue
        }
        if (plants.length === 0) rightButChanged.push(read)
        for (const plant of plants) changed.set(plant, [...(changed.get(plant) ?? []), read])
      }
      return { changed, rightButChanged }
    }

    await look(undefined)
    for (let number = 1; number <= writesPerSite && writes < options.writes; number += 1) {
      const open = standings.filter(isOpen)
      if (open.length === 0) return
      const { plant: focus } = random.pick(open)
      const write = plainWrite(number, pools, random, inWordPress(wantedWrites(focus)))
      if (write === undefined) continue
      await site.save('before')
      const earlier: Created = new Map(created)
      const outcome = await sendWrite(site, write, created)
      const ready = resolved(write, created)
      if (outcome === undefined || ready === undefined) continue
      writes += 1
      remember(pools, write, outcome, random)
      for (const standing of standings) {
        if (write.kind.startsWith(inWordPress(wantedWrites(standing.plant)))) standing.concerned += 1
      }
      const kept = tables.keptAfter(ready, outcome)
      const collection = write.kind === 'upload' ? 'media' : (write.kind.split('.')[0] ?? '')
      const related = tables.readsOf(collection)
      const state = await look(random.pick(open).plant)
      const { changed, rightButChanged } = judge(kept, state)
      const ch = kept.filter((k) => {
        const is = state.get(JSON.stringify(k.read))
        return is !== undefined && is !== k.shown
      })
      process.stderr.write(
        `${write.kind} ${outcome.status} focus ${focus.name} kept ${kept.filter((k) => k.plants.length === 0).length} blind ${kept.filter((k) => k.plants.length > 0).length} changed ${ch.length} plants ${[...changed.keys()].map((x) => x.name)} \n`,
      )
      const sent = { write, created: earlier, related }
      const candidates = [...changed].filter(([plant]) =>
        [plant.name, twinOf(plant.name)].some((name) => {
          const standing = name === undefined ? undefined : byName.get(name)
          return standing !== undefined && isOpen(standing)
        }),
      )
      if (candidates.length === 0 && rightButChanged.length === 0) continue
      await site.save('after')
      for (const read of rightButChanged) {
        if (await isStaleOn(site, undefined, sent, read))
          options.tell(`STALE without a fault: ${writeText(write)}; ${readText(read)}`)
      }
      for (const [{ name }, reads] of candidates) {
        const twin = twinOf(name)
        for (const read of reads.slice(0, 2)) {
          await confirm(name, sent, read)
          if (twin !== undefined) await confirm(twin, sent, read)
        }
      }
      await site.restore('after')
    }
  }

  for (let number = 0; writes < options.writes && standings.some(isOpen); number += 1) {
    await fuzzOne(options.seed + number)
    process.stderr.write(
      `${writes} writes, ${standings.filter(({ found }) => found !== undefined).length} found, ${standings.filter(isOpen).length} open\n`,
    )
  }
  return standings
}
