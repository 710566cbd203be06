import { chooseWrite } from './choose-write.ts'
import { isOpen, type Standing, twinOf, wantedMembers, wantedReads, wantedWrites } from './fault-standing.ts'
import { type FaultyTables, isPlain, type Kept, type PlainWrite } from './faulty-tables.ts'
import { forAll, remember } from './fuzz-site.ts'
import { type Plant, plantFault } from './plants.ts'
import { choosePools, type Pools, type Seeded } from './pools.ts'
import { createRandom, type Random } from './random.ts'
import { chooseRead } from './reads.ts'
import { readText, writeText } from './report.ts'
import { type Outcome, sendWrite } from './send-write.ts'
import type { FuzzedSite, FuzzedSites, Read } from './site-under-fuzz.ts'
import { type Created, resolved } from './write.ts'

const writesPerSite = 100
const mostWatched = 40
/** New reads after each write. */
const newReads = 6
/** Of the writes, those of kinds that concern the fault in turn. */
const focusShare = 0.85
/** Reads of one write on which a fault is planted. */
const mostReads = 2

/** What several sites of a run share. */
export type Hunt = {
  readonly sites: FuzzedSites
  readonly site: FuzzedSite
  readonly seeded: Seeded
  readonly tables: FaultyTables
  readonly standings: readonly Standing[]
  readonly mostWrites: number
  writes: number
  tell(line: string): void
}

/** A write that has been sent, and what is needed to send it once more. */
type Sent = {
  readonly write: PlainWrite
  readonly outcome: Outcome
  readonly kept: readonly Kept[]
  /** Ids before the write. */
  readonly created: Created
  /** Stored reads of the collection, which show the earlier values. */
  readonly related: readonly Read[]
}

const mostTries = 60
/** Of the writes, those whose response gives only an id, so that the gateway does not know the written values. */
const trimmedShare = 0.25

/** Preferably one that changes what the fault is about. */
const plainWrite = (number: number, pools: Pools, random: Random, fault: Plant): PlainWrite | undefined => {
  const members = wantedMembers(fault)
  let other: PlainWrite | undefined
  for (let tries = 0; tries < mostTries; tries += 1) {
    const write = chooseWrite(number, undefined, pools, random, wantedWrites(fault), focusShare)
    if (!isPlain(write)) continue
    const given = write.door === 'rest' ? Object.keys(write.operation.body ?? {}) : []
    const isTrimmed = write.door === 'rest' && random.chance(trimmedShare)
    const sent: PlainWrite = isTrimmed ? { ...write, style: 'fields' } : write
    if (members.length === 0 || members.some((name) => given.includes(name))) return sent
    other ??= sent
  }
  return other
}

/** Repeats the write on a copy of the earlier database, with the fault if there is one; does the gateway then answer as before the write? */
const isStaleOn = async (
  site: FuzzedSite,
  plant: Plant | undefined,
  { write, created, related }: Sent,
  read: Read,
): Promise<boolean> => {
  const remove = plant === undefined ? () => {} : plantFault(plant)
  const known = (one: Read): Read => resolved(one, created) ?? one
  try {
    await site.restore('before')
    await forAll([read, ...related], (one) => site.throughGateway(known(one)))
    await sendWrite(site, write, new Map(created))
    const { hit, shown } = await site.throughGateway(known(read))
    return hit && shown !== (await site.direct(known(read)))
  } finally {
    remove()
  }
}

/** Random writes to one site, each looked at under all faults that have not been found. */
class SiteHunt {
  readonly #hunt: Hunt
  readonly #random: Random
  readonly #pools: Pools
  readonly #created: Created = new Map()
  readonly #watched = new Map<string, Read>()

  constructor(hunt: Hunt, seed: number) {
    this.#hunt = hunt
    this.#random = createRandom(seed)
    this.#pools = choosePools(hunt.seeded, this.#random)
  }

  async run(): Promise<void> {
    const { site, tables } = this.#hunt
    await site.reset()
    tables.forget()
    let open = this.#hunt.standings.filter(isOpen)
    let fault = this.#random.pick(open).plant
    await this.#look(fault)
    for (let number = 1; number <= writesPerSite && this.#hunt.writes < this.#hunt.mostWrites; number += 1) {
      const sent = await this.#send(number, fault)
      // What is read now is stored when the next write comes, which concerns that fault.
      fault = this.#random.pick(open).plant
      if (sent === undefined) continue
      await this.#judge(sent, await this.#look(fault))
      open = this.#hunt.standings.filter(isOpen)
      if (open.length === 0) return
    }
  }

  #known(read: Read): Read {
    return resolved(read, this.#created) ?? read
  }

  async #send(number: number, fault: Plant): Promise<Sent | undefined> {
    const { site, tables, standings } = this.#hunt
    const write = plainWrite(number, this.#pools, this.#random, fault)
    if (write === undefined) return undefined
    await site.save('before')
    const created = new Map(this.#created)
    const outcome = await sendWrite(site, write, this.#created)
    const ready = resolved(write, this.#created)
    if (outcome === undefined || ready === undefined) return undefined
    this.#hunt.writes += 1
    for (const standing of standings) {
      if (write.kind.startsWith(wantedWrites(standing.plant))) standing.concerned += 1
    }
    remember(this.#pools, write, outcome, this.#random)
    const collection = write.kind === 'upload' ? 'media' : (write.kind.split('.')[0] ?? '')
    const related = tables.readsOf(collection)
    return { write, outcome, kept: tables.keptAfter(ready, outcome), created, related }
  }

  /** What WordPress answers to all watched reads, some of them new; each counts as stored from then on. */
  async #look(fault: Plant): Promise<ReadonlyMap<string, string>> {
    const { site, tables } = this.#hunt
    const watched = this.#watched
    for (let more = watched.size === 0 ? 5 * newReads : newReads; more > 0; more -= 1) {
      const read = chooseRead(this.#pools, this.#random, wantedReads(fault))
      watched.set(JSON.stringify(read), read)
    }
    for (const key of [...watched.keys()].slice(0, Math.max(0, watched.size - mostWatched)))
      watched.delete(key)
    const entries = [...watched].map(([key, read]) => ({ key, read, asked: this.#known(read) }))
    const answers = await site.directMany(entries.map(({ asked }) => asked))
    tables.forget()
    const now = new Map<string, string>()
    for (const [at, { key, read, asked }] of entries.entries()) {
      const answer = answers[at]
      if (answer === undefined) continue
      tables.store(read, asked, answer)
      now.set(key, answer.shown)
    }
    return now
  }

  /** Responses that WordPress gives otherwise after the write, by the faults with which a gateway keeps them; none: kept anyway. */
  #changed({ kept }: Sent, now: ReadonlyMap<string, string>): ReadonlyMap<Plant | undefined, Read[]> {
    const changed = new Map<Plant | undefined, Read[]>()
    for (const { read, shown, plants } of kept) {
      const is = now.get(JSON.stringify(read))
      if (is === undefined) continue
      if (is === shown) this.#countNeedless(plants)
      else {
        const by = plants.length === 0 ? [undefined] : plants
        for (const plant of by) changed.set(plant, [...(changed.get(plant) ?? []), read])
      }
    }
    return changed
  }

  #countNeedless(plants: readonly Plant[]): void {
    const [only] = plants
    const standing = plants.length === 1 ? this.#standing(only?.name) : undefined
    if (standing !== undefined) standing.needless += 1
  }

  #standing(name: string | undefined): Standing | undefined {
    return this.#hunt.standings.find(({ plant }) => plant.name === name)
  }

  async #judge(sent: Sent, now: ReadonlyMap<string, string>): Promise<void> {
    const { site } = this.#hunt
    const wanted = (plant: Plant | undefined): readonly Standing[] =>
      [plant?.name, plant === undefined ? undefined : twinOf(plant.name)]
        .map((name) => this.#standing(name))
        .filter((standing) => standing !== undefined && isOpen(standing)) as readonly Standing[]
    const changed = [...this.#changed(sent, now)].filter(
      ([plant]) => plant === undefined || wanted(plant).length > 0,
    )
    if (changed.length === 0) return
    await site.save('after')
    for (const [plant, reads] of changed) {
      for (const read of reads.slice(0, mostReads)) {
        if (plant === undefined) await this.#checkRight(sent, read)
        else for (const standing of wanted(plant)) await this.#plant(standing, sent, read)
      }
    }
    await site.restore('after')
  }

  /** The table without a fault keeps the response. */
  async #checkRight(sent: Sent, read: Read): Promise<void> {
    const { site, tell } = this.#hunt
    if (await isStaleOn(site, undefined, sent, read))
      tell(`STALE without a fault: ${writeText(sent.write)}; ${readText(read)}`)
  }

  async #plant(standing: Standing, sent: Sent, read: Read): Promise<void> {
    const { sites, site, tell, writes } = this.#hunt
    const { plant, concerned } = standing
    // The spelling of a site that is no WordPress has its own rows in the table.
    const isNeutral = plant.collection === 'site_pattern_category'
    const on = isNeutral ? await sites.withSetting({ names: 'wordpress', pages: false }) : site
    if (!(await isStaleOn(on, plant, sent, read))) {
      standing.unseen += 1
      return
    }
    standing.found = { writes, concerned, by: `${writeText(sent.write)}; ${readText(read)}` }
    tell(`${plant.name.padEnd(44)} found after ${writes} writes, ${concerned} of its kind`)
  }
}

export const huntOnSite = (hunt: Hunt, seed: number): Promise<void> => new SiteHunt(hunt, seed).run()
