const byValue = (a: unknown, b: unknown): number => {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a), String(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

/** The list without repetitions, first ones kept. */
export const distinct = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : [...new Set(list)]

/** The list as a set: sorted, without repetitions. Elements are scalars of one type. */
export const sortedSet = (list: readonly unknown[]): unknown[] =>
  list.length < 2 ? [...list] : distinct(list).sort(byValue)
