/**
 * What a write to a collection can change beyond the item itself and the lists of its collection.
 * `everything`: nothing of the site is left; for writes that are rare, or whose reach is not known.
 */
export type WriteEffect = 'everything' | NamedEffect

/**
 * Answers with rendered content that a write reaches: `dynamic` are those whose content may render other things (see
 * static-content.ts), `styled` those with any class, `any` are all of them, for what can be rendered without a trace, or was not
 * rendered at all before.
 */
export type ReachedContents = 'none' | 'dynamic' | 'styled' | 'any'

/** A reach that can be named. */
export type NamedEffect = {
  /** Other items of the same collection change too: order, parents, links below it. */
  readonly siblings: boolean
  /** Collections of which any answer may change. */
  readonly collections: readonly string[]
  /** Answers with `_embedded`, which may show the item or list it. */
  readonly embedded: boolean
  /** Answers of items that name the item by its id, such as posts their terms. */
  readonly shownBy: boolean
  /** Those of them that depend on its name: they show it, or sort several such items by it. */
  readonly nameShownBy: boolean
  /** Collections whose items count the written one, when it names them in the property of that name: these items, and lists. */
  readonly countedBy: readonly string[]
  /** Lists of these collections under a filter by that property. */
  readonly filteredBy: readonly FilteredLists[]
  readonly contents: ReachedContents
}

type FilteredLists = { readonly collection: string; readonly property: string }

type EffectOptions = {
  readonly siblings?: true
  readonly embedded?: true
  readonly shownBy?: true
  readonly nameShownBy?: true
  readonly countedBy?: readonly string[]
  readonly filteredBy?: readonly FilteredLists[]
  readonly contents?: ReachedContents
}

/** A reach, of which only what is named is in it. */
export const effect = (collections: readonly string[], options: EffectOptions = {}): NamedEffect => ({
  siblings: options.siblings === true,
  collections,
  embedded: options.embedded === true,
  shownBy: options.shownBy === true,
  nameShownBy: options.nameShownBy === true,
  countedBy: options.countedBy ?? [],
  filteredBy: options.filteredBy ?? [],
  contents: options.contents ?? 'none',
})
