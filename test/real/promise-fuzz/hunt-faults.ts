import { forAll } from '../for-all.ts'
import { aimedReads, aimedSite, nextIds, type Step } from './aimed-site.ts'
import { aims } from './aimed-writes.ts'
import { chooseWrite } from './choose-write.ts'
import { isOpen, type Standing, wantedMembers, wantedReads, wantedWrites } from './fault-standing.ts'
import { type FaultyTables, isPlain, type Kept, type PlainWrite } from './faulty-tables.ts'
import { remember } from './fuzz-site.ts'
import { type Plant, plantFault } from './plants.ts'
import { choosePools, type Pools, type Seeded } from './pools.ts'
import { createRandom, type Random } from './random.ts'
import { chooseRead } from './reads.ts'
import { readText, writeText } from './report.ts'
import { type Outcome, sendWrite } from './send-write.ts'
import type { DirectResponse, FuzzedSite, FuzzedSites, Read } from './site-under-fuzz.ts'
import { type Created, resolved } from './write.ts'

const writesPerSite = 100
const maxWatched = 40
/** New reads after each write. */
const newReads = 6
/** Of the writes, those of kinds that concern the fault in turn. */
const focusShare = 0.85
/** Reads of one write on which a fault is planted. */
const maxReads = 2

/** What several sites of a run share. */
export type Hunt = {
  readonly sites: FuzzedSites
  readonly site: FuzzedSite
  readonly seeded: Seeded
  readonly tables: FaultyTables
  readonly standings: readonly Standing[]
  readonly maxWrites: number
  writes: number
  /** Responses that the table or a faulty one keeps after an aimed write, which were compared with WordPress's. */
  compared: number
  /** Of them, how many the table without a fault leaves stale. */
  stale: number
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

const maxTries = 60
/** Of the writes, those whose response gives only an id, so that the gateway does not know the written values. */
const trimmedShare = 0.25

/** Preferably one that changes what the fault is about. */
const plainWrite = (number: number, pools: Pools, random: Random, fault: Plant): PlainWrite | undefined => {
  const members = wantedMembers(fault)
  let other: PlainWrite | undefined
  for (let tries = 0; tries < maxTries; tries += 1) {
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

type Looked = { readonly read: Read; readonly asked: Read; readonly response: DirectResponse }

const shownIn = (looked: readonly Looked[]): ReadonlyMap<string, string> =>
  new Map(looked.map(({ read, response }) => [JSON.stringify(read), response.shown]))

const pathOf = (route: string): string => route.split('?')[0] ?? ''

/** A read of the item or list at that path, or of the list with the item. */
const isAbout = (path: string, { route }: Read): boolean => {
  const asked = pathOf(route)
  return asked === path || path.startsWith(`${asked}/`)
}

/** Looks at one write under all faults that have not been found. */
class WriteHunt {
  readonly #hunt: Hunt
  readonly #created: Created

  constructor(hunt: Hunt, created: Created) {
    this.#hunt = hunt
    this.#created = created
  }

  #known(read: Read): Read {
    return resolved(read, this.#created) ?? read
  }

  /** Undefined when it is about something that was never created. */
  async send(write: PlainWrite): Promise<Sent | undefined> {
    const { site, tables, standings } = this.#hunt
    await site.save('before')
    const created = new Map(this.#created)
    const outcome = await sendWrite(site, write, this.#created)
    const ready = resolved(write, this.#created)
    if (outcome === undefined || ready === undefined) return undefined
    this.#hunt.writes += 1
    for (const standing of standings) {
      if (write.kind.startsWith(wantedWrites(standing.plant))) standing.concerned += 1
    }
    const collection = write.kind === 'upload' ? 'media' : (write.kind.split('.')[0] ?? '')
    const path = pathOf(ready.door === 'upload' ? ready.route : ready.operation.route)
    const related = tables.readsOf(collection).filter((read) => isAbout(path, this.#known(read)))
    const kept = tables.keptAfter(ready, outcome)
    for (const { plants } of kept) for (const { name } of plants) this.#countAlone(name)
    return { write, outcome, kept, created, related }
  }

  async read(reads: readonly Read[]): Promise<readonly Looked[]> {
    const asked = reads.map((read) => this.#known(read))
    const responses = await this.#hunt.site.directMany(asked)
    return reads.flatMap((read, at) => {
      const [one, response] = [asked[at], responses[at]]
      return one === undefined || response === undefined ? [] : [{ read, asked: one, response }]
    })
  }

  /** From now on these are what is stored. */
  store(looked: readonly Looked[]): void {
    const { tables } = this.#hunt
    tables.forget()
    for (const { read, asked, response } of looked) tables.store(read, asked, response)
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

  #countAlone(name: string): void {
    const standing = this.#standing(name)
    if (standing !== undefined) standing.alone += 1
  }

  #countNeedless(plants: readonly Plant[]): void {
    for (const { name } of plants) {
      const standing = this.#standing(name)
      if (standing !== undefined) standing.needless += 1
    }
  }

  #standing(name: string | undefined): Standing | undefined {
    return this.#hunt.standings.find(({ plant }) => plant.name === name)
  }

  async judge(sent: Sent, now: ReadonlyMap<string, string>): Promise<void> {
    const { site } = this.#hunt
    const changed = [...this.#changed(sent, now)]
      .map(([plant, reads]) => ({ plant, reads, standing: this.#standing(plant?.name) }))
      .filter(({ plant, standing }) => plant === undefined || (standing !== undefined && isOpen(standing)))
    if (changed.length === 0) return
    await site.save('after')
    for (const { plant, reads, standing } of changed) {
      for (const read of reads.slice(0, maxReads)) {
        if (plant === undefined) await this.#checkRight(sent, read)
        else if (standing !== undefined && isOpen(standing)) await this.#plant(standing, sent, read)
      }
    }
    await site.restore('after')
  }

  /** The table without a fault keeps the response. */
  async #checkRight(sent: Sent, read: Read): Promise<void> {
    const { site, tell } = this.#hunt
    if (!(await isStaleOn(site, undefined, sent, read))) return
    this.#hunt.stale += 1
    tell(`STALE without a fault: ${writeText(sent.write)}; ${readText(read)}`)
  }

  async #plant(standing: Standing, sent: Sent, read: Read): Promise<void> {
    const { site, tell, writes } = this.#hunt
    const { plant, concerned } = standing
    if (!(await isStaleOn(site, plant, sent, read))) {
      standing.unseen += 1
      return
    }
    standing.found = { writes, concerned, by: `${writeText(sent.write)}; ${readText(read)}` }
    tell(`${plant.name.padEnd(44)} found after ${writes} writes, ${concerned} of its kind`)
  }
}

/** Random writes to one site. */
class SiteHunt {
  readonly #hunt: Hunt
  readonly #random: Random
  readonly #pools: Pools
  readonly #watched = new Map<string, Read>()
  readonly #each: WriteHunt

  constructor(hunt: Hunt, seed: number) {
    this.#hunt = hunt
    this.#random = createRandom(seed)
    this.#pools = choosePools(hunt.seeded, this.#random)
    this.#each = new WriteHunt(hunt, new Map())
  }

  async run(): Promise<void> {
    const { site, tables } = this.#hunt
    await site.reset()
    tables.forget()
    let open = this.#hunt.standings.filter(isOpen)
    let fault = this.#random.pick(open).plant
    await this.#look(fault)
    for (let number = 1; number <= writesPerSite && this.#hunt.writes < this.#hunt.maxWrites; number += 1) {
      const sent = await this.#send(number, fault)
      // What is read now is stored when the next write comes, which concerns that fault.
      fault = this.#random.pick(open).plant
      if (sent === undefined) continue
      await this.#each.judge(sent, await this.#look(fault))
      open = this.#hunt.standings.filter(isOpen)
      if (open.length === 0) return
    }
  }

  async #send(number: number, fault: Plant): Promise<Sent | undefined> {
    const write = plainWrite(number, this.#pools, this.#random, fault)
    const sent = write === undefined ? undefined : await this.#each.send(write)
    if (sent !== undefined) remember(this.#pools, sent.write, sent.outcome, this.#random)
    return sent
  }

  /** What WordPress answers to all watched reads, some of them new. */
  async #look(fault: Plant): Promise<ReadonlyMap<string, string>> {
    const watched = this.#watched
    for (let more = watched.size === 0 ? 5 * newReads : newReads; more > 0; more -= 1) {
      const read = chooseRead(this.#pools, this.#random, wantedReads(fault))
      watched.set(JSON.stringify(read), read)
    }
    for (const key of [...watched.keys()].slice(0, Math.max(0, watched.size - maxWatched)))
      watched.delete(key)
    const looked = await this.#each.read([...watched.values()])
    this.#each.store(looked)
    return shownIn(looked)
  }
}

export const huntOnSite = (hunt: Hunt, seed: number): Promise<void> => new SiteHunt(hunt, seed).run()

/** What WordPress gives the next items as their ids, after the one named `last`. */
const nameNext = (created: Created): void => {
  for (const [at, name] of nextIds.entries()) created.set(name, String(Number(created.get('last')) + 1 + at))
}

/** Sends what must succeed, and remembers the ids that it gives. */
const prepare = async (site: FuzzedSite, step: Step, created: Created): Promise<void> => {
  const outcome = await sendWrite(site, step, created)
  if (outcome === undefined || outcome.status >= 400)
    throw new Error(`${writeText(step)}: ${outcome?.status} ${outcome?.text.slice(0, 300)}`)
  const post = /"wp_id":(\d+)/.exec(outcome.text)?.[1]
  if (post !== undefined) created.set(`${step.name}post`, post)
  if (step.name === 'last') nameNext(created)
}

/** Sends each aimed write, or those whose text contains `only`, to a site that is made for them all. */
export const huntByAim = async (hunt: Hunt, only = ''): Promise<void> => {
  const { site, seeded } = hunt
  await site.reset()
  const base: Created = new Map([
    ['fourth', '4'],
    ['seededmenu', seeded.menus[0] ?? ''],
    ['styles', seeded['global-styles'][0] ?? ''],
  ])
  for (const step of aimedSite) await prepare(site, step, base)
  await site.save('base')
  const atFirst = await new WriteHunt(hunt, base).read(aimedReads)
  for (const { before = [], write } of aims.filter((aim) => writeText(aim.write).includes(only))) {
    await site.restore('base')
    const created: Created = new Map(base)
    const each = new WriteHunt(hunt, created)
    for (const step of before) await prepare(site, step, created)
    each.store(before.length === 0 ? atFirst : await each.read(aimedReads))
    const sent = await each.send(write)
    if (sent === undefined || sent.outcome.status >= 400)
      throw new Error(`${writeText(write)}: ${sent?.outcome.status} ${sent?.outcome.text}`)
    const kept = await each.read(sent.kept.map(({ read }) => read))
    hunt.compared += kept.length
    await each.judge(sent, shownIn(kept))
  }
}
