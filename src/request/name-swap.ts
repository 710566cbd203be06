import type { NamePair } from '../contracts/site/names.ts'

/** The names that differ between the public side and the upstream. */
export type NameTable = {
  readonly namespaces: readonly NamePair[]
  /** Query parameters and keys of JSON objects. */
  readonly keys: readonly NamePair[]
  /** First path segment behind a mapped namespace. */
  readonly segments: readonly NamePair[]
}

type Swap = ReadonlyMap<string, string>

/**
 * Each name of a pair maps to the other one, in both directions. If only neutral names were replaced, each route and parameter
 * would have a second public name, its WordPress spelling, that no row validates and no write invalidates.
 * Swapped, each upstream name has exactly one public name, and mapping twice is the identity.
 */
export type NameSwap = {
  readonly namespaces: Swap
  readonly keys: Swap
  readonly segments: Swap
}

const swapOf = (pairs: readonly NamePair[]): Swap => {
  const swap = new Map<string, string>()
  for (const { neutral, wordpress } of pairs) {
    if (neutral === wordpress || swap.has(neutral) || swap.has(wordpress)) {
      throw new Error(
        `The name pair ${neutral}, ${wordpress} repeats a name; mapping back would be ambiguous.`,
      )
    }
    swap.set(neutral, wordpress).set(wordpress, neutral)
  }
  return swap
}

/** Indexes the table. Throws at start when a name occurs in two pairs. */
export const createNameSwap = (table: NameTable): NameSwap => ({
  namespaces: swapOf(table.namespaces),
  keys: swapOf(table.keys),
  segments: swapOf(table.segments),
})

/** Swaps nothing: for `names: same`. */
export const noSwap: NameSwap = { namespaces: new Map(), keys: new Map(), segments: new Map() }
