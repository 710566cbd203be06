import type { LocalName } from '../../support/local-names.ts'
import type { RunningProcess } from '../../support/processes.ts'
import type { NextSite } from './next-site.ts'
import { shownAt, type VersionedPosts } from './versioned-posts.ts'

const ids = [1, 2, 3, 4, 5]
const pages: readonly (readonly [path: string, id: number])[] = [
  ...ids.map((id) => [`/posts/${id}`, id] as const),
  ['/front', 4],
  ['/fetched', 4],
]

/** What a run came to. `refused`: writes with 503 or 504. */
type Counts = {
  reads: number
  acknowledged: number
  refused: number
  killed: number
  joined: number
  restarted: number
}

type FrontEndOptions = {
  readonly site: NextSite
  readonly posts: VersionedPosts
  readonly port: number
  /** What Trellis and the readers resolve. */
  readonly name: LocalName
  /** Writes a post through Trellis; returns the status. */
  readonly write: (id: number) => Promise<number>
  readonly random: () => number
}

/**
 * Instances of one front end behind a name, each on a loopback address of its own. Readers read the instances that the name lists, and
 * compare what a page shows with the last write that was acknowledged before they asked.
 */
export class FrontEndUnderLoad {
  readonly #options: FrontEndOptions
  readonly #instances = new Map<string, RunningProcess>()
  /** Of each post: the version of the last acknowledged write. */
  readonly #acknowledged = new Map<number, number>()
  readonly older: string[] = []
  readonly counts: Counts = { reads: 0, acknowledged: 0, refused: 0, killed: 0, joined: 0, restarted: 0 }
  #isOver = false
  #readers: readonly Promise<void>[] = []

  constructor(options: FrontEndOptions) {
    this.#options = options
  }

  startReaders(readers: number): void {
    this.#readers = Array.from({ length: readers }, () => this.#readUntilOver())
  }

  async stopReaders(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#readers)
  }

  /** Starts an instance; it is listed as soon as it takes requests. */
  async join(address: string): Promise<void> {
    await this.#start(address)
    const { name } = this.#options
    name.addresses = [...name.addresses, address]
    this.counts.joined += 1
  }

  /** No longer listed, then ended. */
  async leave(address: string): Promise<void> {
    const { name } = this.#options
    name.addresses = name.addresses.filter((listed) => listed !== address)
    await this.#instances.get(address)?.stop()
    this.#instances.delete(address)
  }

  /** As a deploy does, and as a crash does. */
  async restart(address: string, graceMs: number): Promise<void> {
    await this.#instances.get(address)?.stop(graceMs)
    await this.#start(address)
    this.counts.restarted += 1
  }

  /** Ends an instance at a moment while the purge of a write is on its way. */
  async killWhileWriting(address: string): Promise<void> {
    const { random, name } = this.#options
    const killed = new Promise((resolve) => setTimeout(resolve, Math.floor(random() * 40))).then(() =>
      this.#instances.get(address)?.stop(0),
    )
    await Promise.all([this.write(), killed])
    this.#instances.delete(address)
    this.counts.killed += 1
    // As health checks do after a while.
    name.addresses = name.addresses.filter((listed) => listed !== address)
  }

  async write(): Promise<number> {
    const { write, posts, random } = this.#options
    const id = ids[Math.floor(random() * ids.length)] ?? 1
    const status = await write(id)
    if (status === 200) {
      this.#acknowledged.set(id, posts.version(id))
      this.counts.acknowledged += 1
    } else this.counts.refused += 1
    return status
  }

  async #start(address: string): Promise<void> {
    const { site, port } = this.#options
    this.#instances.set(address, await site.start(port, address))
  }

  async #readUntilOver(): Promise<void> {
    while (!this.#isOver) {
      const { addresses } = this.#options.name
      const { random, port } = this.#options
      const address = addresses[Math.floor(random() * addresses.length)]
      const [path, id] = pages[Math.floor(random() * pages.length)] ?? ['/front', 4]
      if (address === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        continue
      }
      const min = this.#acknowledged.get(id) ?? 0
      const version = await shownAt(`http://${address}:${port}${path}`).catch(() => undefined)
      // The instance is away, or ends.
      if (version === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        continue
      }
      this.counts.reads += 1
      if (!(version >= min)) this.older.push(`${address}${path}: ${version} after ${min}`)
    }
  }
}
