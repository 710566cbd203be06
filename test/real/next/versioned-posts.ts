import { expect } from 'vitest'
import { createLatch } from '../../support/latch.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

/** `came`: the read is here, and its response is made; it is sent with `release`. */
type HeldRead = { readonly came: Promise<void>; release(): void }

/** A site whose posts show in their title how often they have been written. */
export class VersionedPosts {
  readonly origin: Origin
  readonly #versions: Map<string, number>
  /** Responses to GET so far. */
  reads = 0
  /** What the next GET does with its response. */
  #hold = async (): Promise<void> => {}

  private constructor(origin: Origin, versions: Map<string, number>) {
    this.origin = origin
    this.#versions = versions
  }

  static async start(): Promise<VersionedPosts> {
    const versions = new Map<string, number>()
    const origin = await startOrigin(async ({ method, target }, wire) => {
      const id = /posts\/(\d+)/.exec(target)?.[1] ?? ''
      if (method === 'GET') posts.reads += 1
      else versions.set(id, (versions.get(id) ?? 0) + 1)
      const title = `version ${versions.get(id) ?? 0}`
      if (method === 'GET') await posts.#hold()
      const post = { id: Number(id), type: 'post', status: 'publish', title }
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
    })
    const posts = new VersionedPosts(origin, versions)
    return posts
  }

  version(id: number): number {
    return this.#versions.get(String(id)) ?? 0
  }

  holdNextRead(): HeldRead {
    const [came, released] = [createLatch(), createLatch()]
    this.#hold = async () => {
      this.#hold = async () => {}
      came.open()
      await released.opened
    }
    return { came: came.opened, release: released.open }
  }

  /** By a door that the gateway does not see. */
  edit(id: number): void {
    this.#versions.set(String(id), this.version(id) + 1)
  }
}

/** The version that a page of Next.js shows; NaN where it shows none. */
export const shownAt = async (url: string): Promise<number> => {
  const response = await fetch(url)
  const [, version] = /<h1>version (\d+)<\/h1>/.exec(await response.text()) ?? []
  return Number(version)
}

type WriteAmid = {
  readonly url: string
  readonly posts: VersionedPosts
  readonly write: () => Promise<number>
}

/**
 * A write to post 4 while the page at `url` is made of what was read before it. What a reader is shown who asks once the write is
 * acknowledged, and then another; the version of the write.
 */
export const shownAfterWriteAmid = async ({ url, posts, write }: WriteAmid) => {
  const read = posts.holdNextRead()
  const first = shownAt(url)
  await read.came
  const written = write()
  const shown = written.then(() => shownAt(url))
  // In it the purge reaches Next.js; without anything that waits, the write is acknowledged, and the second reader has joined the first.
  await pause(1_000)
  read.release()
  expect(await written).toBe(200)
  await first
  return { shown: [await shown, await shownAt(url)], version: posts.version(4) }
}
