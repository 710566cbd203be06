import type { FieldLines } from '../http/fields.ts'

/** One request of a batch, ready to be admitted and run. */
export type BatchItem = {
  /** Position in the batch, from 0. */
  readonly index: number
  readonly method: string
  /** Relative to the service's root, with a leading slash, e.g. `/site/v2/posts/5`. */
  readonly path: string
  /** Without `?`; empty when there is none. */
  readonly query: string
  /** Lower-case names; nothing among them sets credentials, framing, forwarding or another method. */
  readonly fields: Readonly<Record<string, string>>
  /** The item's body as JSON text. */
  readonly content: Buffer | undefined
  /** Another service that is asked instead of the batch's own. */
  readonly service?: string | undefined
  /** Authorization of the item itself: only for another service, which never gets the batch's own. */
  readonly credential?: string | undefined
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
  /** Another service than the batch's own: what happens there is not seen here. */
  readonly service?: string | undefined
}

/** What the route table and validation say about an item, without running it. */
export type Admission =
  | { readonly kind: 'runnable'; readonly conflict: ConflictFacts }
  /** `fields` are shown with the item unless the batch fails as a whole. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly body: unknown
      readonly fields?: FieldLines
    }

/** What an item answered. */
export type ItemAnswer = {
  readonly status: number
  readonly fields: FieldLines
  /** JSON as it came; copied into the batch's answer byte for byte. */
  readonly content: Buffer
  /** It is known to be JSON: it was cut out of some. */
  readonly isJson?: boolean
}

/**
 * Sends an item; `signal` ends it on its way, `stop` only as long as it has not begun. What it throws becomes the item's
 * answer.
 */
export type Dispatch = (item: BatchItem, signal: AbortSignal, stop: AbortSignal) => Promise<ItemAnswer>
