/**
 * What a write to a collection can change beyond the item itself and the lists of its collection.
 * `everything`: nothing of the site is left; for writes that are rare, or whose reach nobody can name.
 */
export type WriteEffect = 'everything' | NamedEffect

/** A reach that can be named. */
export type NamedEffect = {
  /** Other items of the same collection change too: order, parents, links below it. */
  readonly siblings: boolean
  /** Collections of which any answer may change. */
  readonly collections: readonly string[]
  /** Answers with `_embedded`, which may show the item or list it. */
  readonly embedded: boolean
  /** Answers whose rendered content lists other things (see `dynamicMarkers`). */
  readonly dynamic: boolean
}

/** A reach, of which only what is named is in it. */
export const effect = (
  collections: readonly string[],
  options: { readonly siblings?: true; readonly embedded?: true; readonly dynamic?: true } = {},
): NamedEffect => ({
  siblings: options.siblings === true,
  collections,
  embedded: options.embedded === true,
  dynamic: options.dynamic === true,
})
