import type { ItemOrder } from '../../service/contract.ts'
import { mustKeepOrder, type OrderFacts, reachOf } from './reach.ts'

/** The earlier items that one waits for; undefined for an item that does not run. */
export type Waits = readonly number[] | undefined

/**
 * For each item the positions of earlier ones that it waits for, so that the outcome is that of one after the other;
 * undefined marks an item that does not run. Identifiers that the upstream makes up may differ, as they do between clients.
 */
export const planOrder = (items: readonly (OrderFacts | undefined)[], order: ItemOrder): readonly Waits[] => {
  const reaching = items.map((facts) =>
    facts === undefined ? undefined : { facts, reach: reachOf(facts, order) },
  )
  return reaching.map((later, at) => {
    if (later === undefined) return undefined
    const waits: number[] = []
    for (const [index, earlier] of reaching.slice(0, at).entries()) {
      if (earlier !== undefined && mustKeepOrder(earlier, later, order)) waits.push(index)
    }
    return waits
  })
}

/**
 * Positions of the items that run, in groups: items that wait for each other, directly or indirectly, are in one group, in order.
 * Items of different groups never wait for each other.
 */
export const conflictGroups = (waits: readonly Waits[]): readonly (readonly number[])[] => {
  // Each item names its group by the first item of it that is known so far.
  const first: number[] = []
  const firstOf = (index: number): number => {
    let at = index
    for (let next = first[at] ?? at; next !== at; next = first[at] ?? at) at = next
    return at
  }
  for (const [index, earlier] of waits.entries()) {
    first[index] = index
    for (const earlierIndex of earlier ?? []) {
      const [low, high] = [firstOf(earlierIndex), firstOf(index)].sort((a, b) => a - b) as [number, number]
      first[high] = low
    }
  }
  const groups = new Map<number, number[]>()
  for (const [index, earlier] of waits.entries()) {
    if (earlier === undefined) continue
    const group = groups.get(firstOf(index))
    if (group === undefined) groups.set(firstOf(index), [index])
    else group.push(index)
  }
  return [...groups.values()]
}
