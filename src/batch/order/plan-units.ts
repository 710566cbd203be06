import type { Waits } from './plan-order.ts'
import type { SplitParts } from './split.ts'

/** What is sent as one upstream request: a single item, or several in one upstream batch. Members are in order. */
export type Unit = {
  readonly members: readonly number[]
  /** Smaller positions in the list of units that this one waits for. */
  readonly waits: readonly number[]
}

/** How a batch is split: the number of upstream batches, and the most items of one. */
type Cut = {
  readonly parts: SplitParts
  readonly maxItems: number
  /** May the item be part of an upstream batch? Otherwise its whole group is sent item by item. */
  mayShareRequest(index: number): boolean
}

type Group = readonly number[]

/** Every item is its own unit; waits become positions of units. */
const singleUnits = (indices: readonly number[], waits: readonly Waits[]): Unit[] => {
  const unitOf = new Map(indices.map((index, at) => [index, at]))
  return indices.map((index) => ({
    members: [index],
    waits: (waits[index] ?? []).flatMap((earlier) => unitOf.get(earlier) ?? []),
  }))
}

/** A group that is too long for one upstream batch: several in order, each after the one before it. */
const chainUnits = (group: Group, maxItems: number, offset: number): Unit[] => {
  const chain: Unit[] = []
  for (let from = 0; from < group.length; from += maxItems) {
    const waits = chain.length === 0 ? [] : [offset + chain.length - 1]
    chain.push({ members: group.slice(from, from + maxItems), waits })
  }
  return chain
}

/** Largest groups first, each into the upstream batch that has least so far: close to even, and the same for the same input. */
const packed = (groups: readonly Group[], count: number, maxItems: number): number[][] => {
  const batches: number[][] = Array.from({ length: count }, () => [])
  for (const group of [...groups].sort((a, b) => b.length - a.length)) {
    let min: number[] | undefined
    for (const batch of batches) {
      const fits = batch.length + group.length <= maxItems
      if (fits && (min === undefined || batch.length < min.length)) min = batch
    }
    if (min === undefined) batches.push([...group])
    else min.push(...group)
  }
  return batches.filter(({ length }) => length > 0).map((batch) => batch.sort((a, b) => a - b))
}

/**
 * Cuts a batch into units that keep every wait: a group of items that wait for each other is never spread over upstream
 * batches that run side by side, and inside one of them items run one after the other in the order of the batch.
 */
export const planUnits = (
  waits: readonly Waits[],
  groups: readonly Group[],
  { parts, maxItems, mayShareRequest }: Cut,
): readonly Unit[] => {
  const singly = parts === Number.POSITIVE_INFINITY
  const shared = singly ? [] : groups.filter((group) => group.every((index) => mayShareRequest(index)))
  const sharedItems = new Set(shared.flat())
  const single = groups.flat().filter((index) => !sharedItems.has(index))
  single.sort((a, b) => a - b)
  const units = singleUnits(single, waits)
  for (const long of shared.filter(({ length }) => length > maxItems)) {
    units.push(...chainUnits(long, maxItems, units.length))
  }
  const short = shared.filter(({ length }) => length <= maxItems)
  const count = Math.max(Math.min(parts, short.length), Math.ceil(short.flat().length / maxItems))
  for (const members of packed(short, count, maxItems)) units.push({ members, waits: [] })
  return units
}
