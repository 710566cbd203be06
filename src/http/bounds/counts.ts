/** Adds to one of several counts; a count of 0 is removed, so that the map does not grow. */
export const addCount = (counts: Map<string, number>, key: string, by: number): void => {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}
