import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { inTurns } from '../http/bounds/in-turns.ts'
import { targetKeyOf } from './cache-key.ts'
import type { BuildReading, ReadResponse } from './cache-read.ts'
import { createTagIndex, type TagHolder } from './store/tag-index.ts'

/** Builds whose reads are kept; of more, the one that was used longest ago is forgotten. */
const maxBuilds = 64
/** For the reads of all builds together: some 30,000 with ten tags each. */
const maxBytes = 64 * 1024 * 1024
const maxAgeMs = 30 * 86_400_000

/** Measured as for a stored response: an object, a tag in the index, and the entries of a build that has it. */
const overheadBytes = 300
const overheadOfTag = 96
const overheadOfHolder = 100

const hashedPerTurn = 4 * 1024 * 1024
const releasedPerTurn = 1_000
/** Comparisons of a read with an invalidation, each by its key: some two milliseconds. */
const comparedPerTurn = 2_000
/** Invalidations that no tag describes, and that wait; more become the one of everything. */
const maxWaiting = 1_000

/** What one URL gave a build. */
type BuildRead = TagHolder & {
  /** As the build sent it; several URLs may have one key. */
  readonly url: string
  readonly varyKey: string
  /** Rises with each read. */
  readonly order: number
  /** Undefined: the response was not one that can be compared, and counts as changed. */
  readonly digest: string | undefined
  /** How many builds have it: a build shares what it takes over with the one that it follows. */
  holders: number
  /** Since when it may be another one, by the wall clock: several processes compare it. */
  doubtfulSince: number | undefined
  /** Since when it is known to be another one. */
  changedSince: number | undefined
}

class Build {
  readonly reads = new Map<string, BuildRead>()
  /** Names of the reads that it has not taken over: a build takes over many reads at once when it begins. */
  readonly own = new Set<string>()
  usedAt: number
  lastReadAt = 0
  /** Its reads were too many to be kept, or it is forgotten. */
  isOverflowed = false

  constructor(now: number) {
    this.usedAt = now
  }
}

/** What one process knows of a build. `changed`: URLs. */
export type BuildReport = {
  readonly reads: number
  readonly changed: readonly string[]
  /** When the first of the changes was; null without any. Sent between processes as JSON. */
  readonly changedAt: number | null
  readonly lastReadAt: number
  /** Its reads are not known any more: everything may have changed. */
  readonly isOverflowed: boolean
}

/** Headers that differ between two responses with the same content. */
const volatileHeaders: ReadonlySet<string> = new Set([
  ...['date', 'expires', 'age', 'etag', 'last-modified', 'cache-control'],
])

/** Equal for two responses from which a site generator makes the same page. */
const digestOf = ({ status, headers, content }: ReadResponse): string => {
  const hash = createHash('sha256').update(`${status}\n`)
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]?.toLowerCase() ?? ''
    if (!volatileHeaders.has(name)) hash.update(`${name}:${headers[at + 1]}\n`)
  }
  return hash.update('\n').update(content).digest('base64url')
}

const weightOf = ({ url, key, tags }: Pick<BuildRead, 'url' | 'key' | 'tags'>): number =>
  tags.reduce((bytes, tag) => bytes + tag.length + overheadOfTag, overheadBytes + 2 * url.length + key.length)

/** An invalidation that no tag describes. */
type WideInvalidation = {
  readonly isMeant: (key: string) => boolean
  readonly since: number
  /** Order of the last read before it: later ones show the state after it. */
  readonly last: number
}

const isCurrent = ({ doubtfulSince, changedSince }: BuildRead): boolean =>
  doubtfulSince === undefined && changedSince === undefined

/**
 * What builds of site generators have read, and which of it may have changed since: each read has the tags of its response, and an
 * invalidation puts it in doubt. A read in doubt is compared with what is stored now.
 */
export class Builds {
  readonly #now: () => number
  /** Least recently used first. */
  readonly #builds = new Map<string, Build>()
  readonly #index = createTagIndex<BuildRead>()
  /** Of all builds, oldest first: those not in doubt, and some that are by now. */
  readonly #current = new Set<BuildRead>()
  /** Oldest first; not yet compared with any read. */
  #waiting: WideInvalidation[] = []
  /** Resolves when each of them, and those before, has been compared with every read. */
  #walked: Promise<void> = Promise.resolve()
  /** Walks that have not ended. */
  #walks = 0
  #lastOrder = 0
  /** No build has them; they are still in the index. */
  readonly #released: BuildRead[] = []
  #isSweeping = false
  #bytes = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** `since`: what of its reads has not changed counts as read by the new build. */
  begin(id: string, since: string | undefined): void {
    const followed = since === undefined ? undefined : this.#use(since)
    const build = new Build(this.#now())
    this.#builds.set(id, build)
    if (followed !== undefined) {
      build.isOverflowed = followed.isOverflowed
      for (const [name, read] of followed.reads) {
        if (!isCurrent(read) || read.digest === undefined) continue
        this.#share(build, name, read)
      }
    }
    this.#evict(build)
  }

  /** Undefined: no such build was begun, or it is forgotten. */
  reading(id: string, url: string, key: string): BuildReading | undefined {
    const build = this.#builds.get(id)
    if (build === undefined) return undefined
    const name = `${url}\n${key}`
    return {
      used: (stored, isCurrent) => this.#used(id, build, name, stored, isCurrent),
      usedUnknown: () => this.#usedUnknown(id, build, name, key),
    }
  }

  invalidated(tags: readonly string[], since = this.#now()): void {
    if (this.#index.size === 0) return
    for (const tag of tags) for (const read of this.#index.holders(tag)) read.doubtfulSince ??= since
  }

  /** For what no tag describes. Reads that are recorded from here on show the state after it. */
  invalidatedWhere(isMeant: (key: string) => boolean, since = this.#now()): void {
    if (this.#current.size === 0) return
    const added = { isMeant, since, last: this.#lastOrder }
    const [oldest] = this.#waiting
    if (oldest !== undefined && this.#waiting.length === maxWaiting)
      this.#waiting = [{ ...added, isMeant: () => true, since: oldest.since }]
    else this.#waiting.push(added)
    // Those that arrive while a walk is under way share the next one.
    if (oldest !== undefined) return
    this.#walks += 1
    this.#walked = this.#walked.then(() => inTurns(this.#walk()))
  }

  /** Keys of the reads in doubt that can be compared. */
  async doubtful(id: string): Promise<readonly string[]> {
    await this.#walked
    const reads = [...(this.#builds.get(id)?.reads.values() ?? [])]
    const doubtful = reads.filter(
      (read) => read.digest !== undefined && read.changedSince === undefined && !isCurrent(read),
    )
    return [...new Set(doubtful.map(({ key }) => key))]
  }

  /** Compares the reads in doubt with what is stored at that moment; `since`: what was there before proves nothing, such as what a soft purge has left. */
  async compare(
    id: string,
    variantsOf: (key: string, since: number) => readonly ReadResponse[],
  ): Promise<void> {
    const build = this.#builds.get(id)
    if (build === undefined) return
    let hashedBytes = 0
    for (const [name, read] of [...build.reads]) {
      if (hashedBytes > hashedPerTurn) {
        await setImmediate()
        hashedBytes = 0
      }
      // What an invalidation that has arrived meanwhile means is not known yet: the read stays in doubt.
      if (this.#walks > 0 || read.doubtfulSince === undefined || read.digest === undefined) continue
      const stored = variantsOf(read.key, read.doubtfulSince).find(
        (variant) => variant.varyKey === read.varyKey,
      )
      if (stored === undefined || build.reads.get(name) !== read) continue
      hashedBytes += stored.content.length + overheadBytes
      this.#compared(build, name, read, stored, true)
    }
    await this.#walked
  }

  /**
   * Returns what the invalidations up to the last `compare` have changed, and some since: a build that begins in the same turn takes over
   * the reads that the others have yet to reach, and has them in doubt then. `isConnected`: invalidations of other processes arrive.
   */
  report(id: string, isConnected: boolean): BuildReport | undefined {
    const build = this.#use(id)
    if (build === undefined) return undefined
    const { reads, lastReadAt, isOverflowed } = build
    const changed = [...reads.values()].filter(
      (read) => !isConnected || read.digest === undefined || !isCurrent(read),
    )
    const times = changed.flatMap(({ changedSince, doubtfulSince }) => changedSince ?? doubtfulSince ?? [])
    return {
      reads: reads.size,
      changed: [...new Set(changed.map(({ url }) => url))],
      changedAt: times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time)),
      lastReadAt,
      isOverflowed,
    }
  }

  /** Compares the reads with all invalidations that wait; yields where requests may be served. */
  *#walk(): Generator<undefined, void> {
    const waiting = this.#waiting
    this.#waiting = []
    let compared = 0
    for (const read of this.#current) {
      const due = waiting.filter(({ last }) => read.order <= last)
      if (due.length === 0) break
      read.doubtfulSince ??= due.find(({ isMeant }) => isMeant(read.key))?.since
      if (read.doubtfulSince !== undefined) this.#current.delete(read)
      compared += due.length
      if (compared < comparedPerTurn) continue
      compared = 0
      yield
    }
    this.#walks -= 1
  }

  #use(id: string): Build | undefined {
    const build = this.#builds.get(id)
    if (build === undefined) return undefined
    build.usedAt = this.#now()
    this.#builds.delete(id)
    this.#builds.set(id, build)
    return build
  }

  #used(id: string, build: Build, name: string, stored: ReadResponse, isCurrent: boolean): void {
    const now = this.#now()
    build.lastReadAt = now
    const before = build.reads.get(name)
    const isInherited = !build.own.has(name)
    if (before?.digest !== undefined && !isInherited) this.#compared(build, name, before, stored, isCurrent)
    else {
      const unknown = before !== undefined && !isInherited ? { changedSince: now } : {}
      this.#set(build, name, {
        ...this.#readOf(name, stored, isCurrent ? undefined : now),
        ...unknown,
      })
    }
    this.#evict(this.#use(id))
  }

  #usedUnknown(id: string, build: Build, name: string, key: string): void {
    build.lastReadAt = this.#now()
    const before = build.reads.get(name)
    if (before === undefined || !build.own.has(name))
      this.#set(build, name, {
        url: name.slice(0, name.indexOf('\n')),
        key,
        tags: [],
        positions: undefined,
        number: 0,
        varyKey: '',
        order: this.#nextOrder(),
        digest: undefined,
        holders: 0,
        doubtfulSince: undefined,
        changedSince: undefined,
      })
    else before.changedSince ??= this.#now()
    this.#evict(this.#use(id))
  }

  #readOf(name: string, stored: ReadResponse, doubtfulSince: number | undefined): BuildRead {
    return {
      url: name.slice(0, name.indexOf('\n')),
      key: stored.key,
      tags: [targetKeyOf(stored.key), ...stored.tags],
      positions: undefined,
      number: 0,
      varyKey: stored.varyKey,
      order: this.#nextOrder(),
      digest: digestOf(stored),
      holders: 0,
      doubtfulSince,
      changedSince: undefined,
    }
  }

  #nextOrder(): number {
    this.#lastOrder += 1
    return this.#lastOrder
  }

  /** The same content clears the doubt. Another one is never forgotten: pages were made of the first. */
  #compared(build: Build, name: string, read: BuildRead, stored: ReadResponse, isCurrent: boolean): void {
    const now = this.#now()
    const next = this.#readOf(name, stored, isCurrent ? undefined : (read.doubtfulSince ?? now))
    if (next.digest !== read.digest) {
      read.changedSince ??= read.doubtfulSince ?? now
      return
    }
    const isInherited = !build.own.has(name)
    this.#set(build, name, { ...next, changedSince: read.changedSince })
    if (isInherited) build.own.delete(name)
  }

  #set(build: Build, name: string, read: BuildRead): void {
    if (build.isOverflowed) return
    const before = build.reads.get(name)
    if (before !== undefined && this.#release(before)) this.#index.remove(before)
    this.#share(build, name, read)
    build.own.add(name)
    this.#index.add(read)
    if (read.doubtfulSince === undefined) this.#current.add(read)
    this.#bytes += weightOf(read)
  }

  #share(build: Build, name: string, read: BuildRead): void {
    build.reads.set(name, read)
    read.holders += 1
    this.#bytes += overheadOfHolder
  }

  /** True where no other build has it. */
  #release(read: BuildRead): boolean {
    read.holders -= 1
    this.#bytes -= overheadOfHolder
    if (read.holders > 0) return false
    this.#bytes -= weightOf(read)
    this.#current.delete(read)
    return true
  }

  #clear(build: Build): void {
    for (const read of build.reads.values()) if (this.#release(read)) this.#released.push(read)
    build.reads.clear()
    build.own.clear()
    // A response that is on its way adds nothing any more.
    build.isOverflowed = true
    void this.#sweep()
  }

  /** To remove a read from the index takes as long as it has tags. */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    while (this.#released.length > 0) {
      for (const read of this.#released.splice(-releasedPerTurn)) this.#index.remove(read)
      await setImmediate()
    }
    this.#isSweeping = false
  }

  /** Forgets builds that are too old or too many; of one that is too large by itself, its reads. */
  #evict(used: Build | undefined): void {
    const oldest = this.#now() - maxAgeMs
    for (const [id, build] of this.#builds) {
      const isTooMuch = this.#builds.size > maxBuilds || this.#bytes > maxBytes || build.usedAt < oldest
      if (!isTooMuch || build === used) break
      this.#clear(build)
      this.#builds.delete(id)
    }
    if (this.#bytes <= maxBytes || used === undefined) return
    this.#clear(used)
  }
}
