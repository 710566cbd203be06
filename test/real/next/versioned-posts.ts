import { type Origin, startOrigin } from '../../support/origin.ts'

/** A site whose posts show in their title how often they have been written. */
export class VersionedPosts {
  readonly origin: Origin
  readonly #versions: Map<string, number>
  /** Responses to GET so far. */
  reads = 0

  private constructor(origin: Origin, versions: Map<string, number>) {
    this.origin = origin
    this.#versions = versions
  }

  static async start(): Promise<VersionedPosts> {
    const versions = new Map<string, number>()
    const origin = await startOrigin(({ method, target }, wire) => {
      const id = /posts\/(\d+)/.exec(target)?.[1] ?? ''
      if (method === 'GET') posts.reads += 1
      else versions.set(id, (versions.get(id) ?? 0) + 1)
      const title = `version ${versions.get(id) ?? 0}`
      const post = { id: Number(id), type: 'post', status: 'publish', title }
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify(post) })
    })
    const posts = new VersionedPosts(origin, versions)
    return posts
  }

  version(id: number): number {
    return this.#versions.get(String(id)) ?? 0
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
