import type { Target } from './day-targets.ts'

/** Reads that were no hits for one cause; `changed`: those whose response differed from the one before, which no cache could have kept. */
export type CauseCount = { misses: number; changed: number }

/** What readers were told last, and what has become of its stored response. */
type Known = { text: string; cause: string | undefined }

/** Addresses differ in the order of their parameters. */
const spelling = (path: string): string => decodeURIComponent(path).split(/[?&]/).sort().join(' ')

/** The upstream's response was stored: whole, or while it was sent on. */
const isStored = (status: string): boolean => /; ?(?:stored\b|detail=streamed\b)/.test(status)

/** Tells for each read that is no hit why: the event that has dropped the stored response, or why there was none. */
export class MissCauses {
  readonly counts = new Map<string, CauseCount>()
  readonly #known = new Map<string, Known>()

  /** These paths are no longer stored after an event. */
  dropped(paths: readonly string[], event: string): void {
    for (const path of paths) {
      const known = this.#known.get(spelling(path))
      if (known !== undefined) known.cause = `dropped by ${event}`
    }
  }

  read({ text: path }: Target, { isHit, status, text }: Reply): void {
    const key = spelling(path)
    const known = this.#known.get(key)
    if (!isHit) this.#count(known?.cause ?? (known === undefined ? 'first reading' : 'unknown'), text, known)
    const cause = isHit || isStored(status) ? undefined : `not stored: ${/detail=([\w-]+)/.exec(status)?.[1]}`
    this.#known.set(key, { text, cause })
  }

  /** The same readers and stored responses, and nothing counted. */
  emptied(): void {
    this.counts.clear()
  }

  #count(cause: string, text: string, known: Known | undefined): void {
    const count = this.counts.get(cause) ?? { misses: 0, changed: 0 }
    count.misses += 1
    count.changed += Number(text !== known?.text)
    this.counts.set(cause, count)
  }
}

/** What a reader got. */
export type Reply = { readonly isHit: boolean; readonly status: string; readonly text: string }
