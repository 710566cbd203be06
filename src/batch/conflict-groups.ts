import type { Waits } from './plan-order.ts'

/**
 * Positions of the items that run, in groups: who waits for whom, directly or through others, is in one group, in order.
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
    for (const one of earlier ?? []) {
      const [low, high] = [firstOf(one), firstOf(index)].sort((a, b) => a - b) as [number, number]
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
