import { forAll } from '../for-all.ts'
import { chooseWrite } from './choose-write.ts'
import { choosePools, type Pool, type Pools, type Seeded } from './pools.ts'
import { createRandom, type Random } from './random.ts'
import { chooseRead } from './reads.ts'
import { type Outcome, sendWrite } from './send-write.ts'
import type { FuzzedSite, Read } from './site-under-fuzz.ts'
import { type Created, resolved, type Write } from './write.ts'

/** A stored response that is older than an acknowledged write. */
export type StaleResponse = {
  readonly read: Read
  /** All writes so far, in their order. */
  readonly writes: readonly Write[]
  /** How many of them had been sent when the response was last seen to be right. */
  readonly rightAfter: number
  /** Reads from which the gateway may know the values before a write. */
  readonly stored: readonly Read[]
  readonly shown: string
  readonly direct: string
}

/** What a run has seen. */
export type Seen = {
  writes: number
  refused: number
  hits: number
  reads: number
  /** Responses that differ from WordPress's own when they are new, too: no matter of the cache. */
  readonly otherwise: Set<string>
  readonly statuses: Map<string, Map<number, number>>
}

export const nothingSeen = (): Seen => ({
  writes: 0,
  refused: 0,
  hits: 0,
  reads: 0,
  otherwise: new Set(),
  statuses: new Map(),
})

export type FuzzOptions = {
  readonly site: FuzzedSite
  readonly seeded: Seeded
  readonly seed: number
  readonly writes: number
  readonly until?: number
  /** Answers read after each write, of which about a third are asked for anew. */
  readonly responsesPerWrite: number
  readonly focus?: string
  readonly readFocus?: RegExp
  readonly seen: Seen
  /** Goes on unless it says no. */
  stale(response: StaleResponse): Promise<boolean>
}

const creating: Readonly<Record<string, Pool>> = {
  'posts.create': 'posts',
  schedule: 'posts',
  'xmlrpc.new-post': 'posts',
  'pages.create': 'pages',
  'categories.create': 'categories',
  'tags.create': 'tags',
  'wp_pattern_category.create': 'wp_pattern_category',
  'comments.create': 'comments',
  upload: 'media',
  'menus.create': 'menus',
  'menu-items.create': 'menu-items',
  'blocks.create': 'blocks',
  'navigation.create': 'navigation',
  'users.create': 'users',
  'notes.create': 'notes',
  'widgets.create': 'widgets',
}

/** More than these are forgotten, so that writes and reads go on to meet. */
const maxInPool = 5

export const remember = (pools: Pools, write: Write, outcome: Outcome, random: Random): void => {
  const pool = creating[write.kind]
  if (pool === undefined || outcome.created === undefined) return
  const ids = pools[pool]
  ids.push(`{${write.name}}`)
  if (ids.length > maxInPool) ids.splice(random.int(ids.length - 1), 1)
}

/** Reads that are repeated; the oldest makes room for a new one. */
const maxWatched = 60

type Kept = { readonly read: Read; rightAfter: number }

const count = (seen: Seen, { kind }: Write, { status }: Outcome): void => {
  seen.writes += 1
  if (status >= 400) seen.refused += 1
  const statuses = seen.statuses.get(kind) ?? new Map<number, number>()
  seen.statuses.set(kind, statuses.set(status, (statuses.get(status) ?? 0) + 1))
}

/** Random writes to one site, each followed by a look at what is stored. */
export const fuzzSite = async (options: FuzzOptions): Promise<void> => {
  const { site, seen } = options
  const random = createRandom(options.seed)
  const pools = choosePools(options.seeded, random)
  const created: Created = new Map()
  const writes: Write[] = []
  const kept = new Map<string, Kept>()
  const watched = new Map<string, Read>()
  await site.reset()

  const known = (read: Read): Read => resolved(read, created) ?? read

  /** Is the stored response older than WordPress's current one, while a new response is not? */
  const confirm = async (read: Read): Promise<{ shown: string; direct: string } | undefined> => {
    const { hit, shown } = await site.throughGateway(known(read))
    const direct = await site.direct(known(read))
    const shape = read.route.replaceAll(/\{w\d+\}|\d+/g, 'N')
    if (!hit || shown === direct || seen.otherwise.has(shape)) return undefined
    await site.purge(known(read))
    const again = await site.throughGateway(known(read))
    if (again.shown === (await site.direct(known(read)))) return { shown, direct }
    seen.otherwise.add(shape)
    return undefined
  }

  /** A third are read again so that something is stored; most of the others are stored. */
  const readsNow = (): Read[] => {
    const fresh = Array.from({ length: watched.size < maxWatched ? 3 : 1 }, () =>
      chooseRead(pools, random, options.readFocus),
    )
    for (const read of fresh) watched.set(JSON.stringify(read), read)
    for (const key of [...watched.keys()].slice(0, Math.max(0, watched.size - maxWatched)))
      watched.delete(key)
    const left = [...watched.values()]
    const count = Math.min(left.length, options.responsesPerWrite)
    return Array.from({ length: count }, () => left.splice(random.int(left.length), 1)[0] as Read)
  }

  /** Stored ones that differ from what WordPress seems to say. */
  const differing = async (reads: readonly Read[]): Promise<Read[]> => {
    const replies = await forAll(reads, (read) => site.throughGateway(known(read)))
    const hits = reads.flatMap((read, at) => {
      const reply = replies[at]
      return reply?.hit === true ? [{ read, shown: reply.shown }] : []
    })
    seen.reads += reads.length
    seen.hits += hits.length
    const direct = await site.directMany(hits.map(({ read }) => known(read)))
    return hits.filter(({ shown }, at) => shown !== direct[at]?.shown).map(({ read }) => read)
  }

  const firstStale = async (
    reads: readonly Read[],
  ): Promise<Pick<StaleResponse, 'read' | 'shown' | 'direct'> | undefined> => {
    for (const read of reads) {
      const confirmed = await confirm(read)
      if (confirmed !== undefined) return { read, ...confirmed }
    }
    return undefined
  }

  for (let number = 1; number <= options.writes; number += 1) {
    if (options.until !== undefined && performance.now() > options.until) return
    const write = chooseWrite(number, writes.at(-1), pools, random, options.focus)
    const outcome = await sendWrite(site, write, created)
    if (outcome === undefined) continue
    writes.push(write)
    count(seen, write, outcome)
    remember(pools, write, outcome, random)

    const reads = readsNow()
    const doubtful = await differing(reads)
    const before = new Map(kept)
    for (const read of reads) kept.set(JSON.stringify(read), { read, rightAfter: writes.length })
    const found = await firstStale(doubtful)
    if (found === undefined) continue
    const rightAfter = before.get(JSON.stringify(found.read))?.rightAfter ?? 0
    const stored = [...before.values()].map(({ read }) => read)
    if (!(await options.stale({ ...found, writes: [...writes], rightAfter, stored }))) return
    // The cache was emptied.
    kept.clear()
  }
}
