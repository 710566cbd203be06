import type { Parts } from '../splitter.ts'
import type { Waits } from './plan-order.ts'

/** What is sent as one upstream request: a single item, or several in one upstream batch. Members are in order. */
export type Unit = {
  readonly members: readonly number[]
  /** Smaller positions in the list of units that this one waits for. */
  readonly waits: readonly number[]
}

/** How a batch is split: the number of upstream batches, and the most items of one. */
export type Cut = {
  readonly parts: Parts
  /** Most items that one upstream batch may have. */
  readonly mostItems: number
  /** May the item go inside an upstream batch? Its whole group goes item by item otherwise. */
  isChunkable(index: number): boolean
}

type Group = readonly number[]

/** Every item is a unit of its own; waits become positions of units. */
const singleUnits = (indices: readonly number[], waits: readonly Waits[], offset: number): Unit[] => {
  const unitOf = new Map(indices.map((index, at) => [index, offset + at]))
  return indices.map((index) => ({
    members: [index],
    waits: (waits[index] ?? []).flatMap((earlier) => unitOf.get(earlier) ?? []),
  }))
}

/** A group that is too long for one upstream batch: pieces in order, each after the one before it. */
const chainUnits = (group: Group, mostItems: number, offset: number): Unit[] => {
  const pieces: Unit[] = []
  for (let from = 0; from < group.length; from += mostItems) {
    const waits = pieces.length === 0 ? [] : [offset + pieces.length - 1]
    pieces.push({ members: group.slice(from, from + mostItems), waits })
  }
  return pieces
}

/** Largest groups first, each into the chunk that has least so far: close to even, and the same for the same input. */
const packed = (groups: readonly Group[], count: number, mostItems: number): number[][] => {
  const chunks: number[][] = Array.from({ length: count }, () => [])
  for (const group of [...groups].sort((a, b) => b.length - a.length)) {
    let least: number[] | undefined
    for (const chunk of chunks) {
      const fits = chunk.length + group.length <= mostItems
      if (fits && (least === undefined || chunk.length < least.length)) least = chunk
    }
    if (least === undefined) chunks.push([...group])
    else least.push(...group)
  }
  return chunks.filter(({ length }) => length > 0).map((chunk) => chunk.sort((a, b) => a - b))
}

/**
 * Cuts a batch into units that keep every wait: a group of items that wait for each other is never spread over chunks
 * that run side by side, and inside a chunk items run one after the other in the order of the batch.
 */
export const planUnits = (
  waits: readonly Waits[],
  groups: readonly Group[],
  { parts, mostItems, isChunkable }: Cut,
): readonly Unit[] => {
  const singly = parts === Number.POSITIVE_INFINITY
  const inChunks = singly ? [] : groups.filter((group) => group.every((index) => isChunkable(index)))
  const chunked = new Set(inChunks.flat())
  const single = groups.flat().filter((index) => !chunked.has(index))
  const units = singleUnits(
    single.sort((a, b) => a - b),
    waits,
    0,
  )
  for (const long of inChunks.filter(({ length }) => length > mostItems)) {
    units.push(...chainUnits(long, mostItems, units.length))
  }
  const short = inChunks.filter(({ length }) => length <= mostItems)
  const count = Math.max(Math.min(parts, short.length), Math.ceil(short.flat().length / mostItems))
  for (const members of packed(short, count, mostItems)) units.push({ members, waits: [] })
  return units
}
