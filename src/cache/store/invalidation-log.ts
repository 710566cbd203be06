import { createLastNumbers, createRecentValues } from '../../http/memo.ts'

type OwnNumbers = Map<string, { readonly at: number; readonly before: number }>

/** Requests, and tags of each, whose invalidations are known to show in their own responses. */
const maxRequests = 128
const maxOwnTags = 1_000

/**
 * When each tag was last invalidated, as a number that grows with every invalidation: a response that was requested before must not
 * be stored. Bounded in tags and in their length: a tag that is not among the last `maxTags` counts as invalidated.
 */
export class InvalidationLog {
  readonly #numbers: {
    set: (long: string, number: number) => void
    setAll: (number: number) => void
    restart: (number: number) => void
    of: (text: string) => number
    isAfter: (texts: readonly string[], number: number) => boolean
  }
  /** By request whose response shows what it has invalidated: the numbers that its tags got by it, and those before. */
  readonly #byRequest = createRecentValues<OwnNumbers>(maxRequests)
  #sequence = 0

  constructor(maxTags: number) {
    this.#numbers = createLastNumbers(maxTags)
  }

  /** Number of the last invalidation. */
  get sequence(): number {
    return this.#sequence
  }

  /** `request`: the one whose response shows the state after it. */
  record(tags: readonly string[], request?: string): void {
    this.#sequence += 1
    if (request !== undefined) this.#recordOwn(tags, request)
    for (const tag of tags) this.#numbers.set(tag, this.#sequence)
  }

  /** Everything counts as invalidated. */
  recordAll(): void {
    this.#sequence += 1
    this.#numbers.restart(this.#sequence)
  }

  /** Was any of the tags invalidated after `since`, other than by the request itself, or may it have been? */
  invalidatedSince(tags: readonly string[], since: number, request?: string): boolean {
    if (this.#sequence <= since || !this.#numbers.isAfter(tags, since)) return false
    const own = request === undefined ? undefined : this.#byRequest.get(request)
    if (own === undefined) return true
    return tags.some((tag) => {
      const [number, known] = [this.#numbers.of(tag), own.get(tag)]
      return number > since && (known?.at !== number || known.before > since)
    })
  }

  #recordOwn(tags: readonly string[], request: string): void {
    const own: OwnNumbers = this.#byRequest.get(request) ?? new Map()
    // It then counts as superseded by itself.
    if (own.size + tags.length > maxOwnTags) return
    for (const tag of tags) {
      const [before, known] = [this.#numbers.of(tag), own.get(tag)]
      own.set(tag, { at: this.#sequence, before: known?.at === before ? known.before : before })
    }
    this.#byRequest.set(request, own)
  }
}
