/** A difference of two documents; `undefined` means absent. */
export type Difference = {
  readonly path: readonly string[]
  readonly ours: unknown
  readonly theirs: unknown
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** All differences, both directions. An empty list and an empty object differ: that is how PHP writes an empty map. */
export const compareValues = (ours: unknown, theirs: unknown, path: readonly string[] = []): Difference[] => {
  const comparable = isObject(ours) && isObject(theirs) && Array.isArray(ours) === Array.isArray(theirs)
  if (!comparable) return Object.is(ours, theirs) ? [] : [{ path, ours, theirs }]
  const keys = new Set([...Object.keys(ours), ...Object.keys(theirs)])
  return [...keys].flatMap((key) => compareValues(ours[key], theirs[key], [...path, key]))
}
