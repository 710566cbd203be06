/** Reads a path through the gateway, and returns its content. */
type Read = (path: string) => Promise<unknown>

export type Page = (read: Read) => Promise<string>

export type Site = ReadonlyMap<string, Page>

type BuildOptions = {
  /** Where the paths of reads begin. */
  readonly origin: string
  /** The id of the build; undefined: its reads do not say that they are of one. */
  readonly build: string | undefined
  /** Pages that are made at the same time. */
  readonly concurrency: number
  /** Called before each page, with the number of pages made so far. */
  readonly before?: (made: number) => Promise<void>
}

/** A site generator that knows which pages read which paths, as one with a `fetch` of its own does. */
export class SiteBuilder {
  readonly #site: Site
  readonly output = new Map<string, string>()
  readonly #readBy = new Map<string, Set<string>>()

  constructor(site: Site) {
    this.#site = site
  }

  /** Makes the pages; returns their number. */
  async build(names: Iterable<string>, options: BuildOptions): Promise<number> {
    const waiting = [...names]
    const count = waiting.length
    let made = 0
    const work = async (): Promise<void> => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
        await options.before?.(made)
        await this.#make(name, options)
        made += 1
      }
    }
    await Promise.all(Array.from({ length: options.concurrency }, work))
    return count
  }

  all(): readonly string[] {
    return [...this.#site.keys()]
  }

  pagesThatRead(paths: readonly string[]): readonly string[] {
    return [...new Set(paths.flatMap((path) => [...(this.#readBy.get(path) ?? [])]))]
  }

  async #make(name: string, { origin, build }: BuildOptions): Promise<void> {
    const read: Read = async (path) => {
      this.#readBy.set(path, (this.#readBy.get(path) ?? new Set()).add(name))
      const response = await fetch(origin + path, {
        headers: build === undefined ? {} : { 'Trellis-Build': build },
      })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      return response.json()
    }
    const page = this.#site.get(name)
    if (page !== undefined) this.output.set(name, await page(read))
  }
}
