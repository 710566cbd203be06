import type { CheckedItem } from '../exchange/request-context.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { Effect } from '../http/methods.ts'

/** One request of a batch, ready to be checked and run. */
export type BatchItem = {
  /** Position in the batch, from 0. */
  readonly index: number
  readonly method: string
  /** What its service says of it; a write until it is checked. */
  readonly effect: Effect
  /** Relative to the service's root, with a leading slash, e.g. `/site/v2/posts/5`. */
  readonly path: string
  /** Without `?`; empty when there is none. */
  readonly query: string
  /** Lower-case names; nothing among them sets credentials, framing, forwarding or another method. */
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer | undefined
  /** Its route and validation; undefined until it was checked. */
  readonly checked?: CheckedItem | undefined
}

/** What an item touches, for the order of the batch. */
export type ConflictFacts = {
  /** Collection of the row, e.g. `posts`; empty when it has none. */
  readonly collection: string
  /** Kind of the row: `collection`, `item`, `revisions` … */
  readonly kind: string
  /** The item that is meant, after parameters that name another one were understood. */
  readonly itemId: string | undefined
  readonly method: string
  readonly effect: Effect
  /** If stored responses of the service have tags: those of what the item shows, and of what it may change. */
  readonly reach?: ItemReach | undefined
}

export type ItemReach = { readonly shows: ReadonlySet<string>; readonly changes: readonly string[] }

/** The result of the route table and validation for an item, without running it. */
export type ItemCheck =
  | { readonly kind: 'runnable'; readonly conflict: ConflictFacts; readonly checked?: CheckedItem }
  /** `headers` are shown with the item unless the batch fails as a whole. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly body: unknown
      readonly headers?: HeaderLines
    }

export type ItemResponse = {
  readonly status: number
  readonly headers: HeaderLines
  /** JSON of the response, copied into the batch's response byte for byte. */
  readonly content: Buffer
  /** It is known to be JSON: it was cut out of some. */
  readonly isJson?: boolean
}

/** An item's response that the gateway made, in the error shape of the site contract. */
export type ItemError = { readonly status: number; readonly body: unknown; readonly headers: HeaderLines }

/** What the response of the batch shows for an item. */
export type ItemResult = ItemResponse | ItemError

/**
 * Sends an item; `signal` ends it at any time, `stop` only before it has begun. What it throws becomes the item's
 * response.
 */
export type HandleItem = (item: BatchItem, signal: AbortSignal, stop: AbortSignal) => Promise<ItemResponse>
