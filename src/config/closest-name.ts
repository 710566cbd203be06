/** Longer names get no suggestion; this also bounds the table below. */
const longestName = 64

/** Damerau–Levenshtein distance (optimal string alignment). */
const editDistance = (a: string, b: string): number => {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) best = Math.min(best, (beforePrevious[j - 2] ?? 0) + 1)
      current.push(best)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}

/** Ignores case and separators: `max_bytes`, `max-bytes` and `MaxBytes` all mean `maxBytes`. */
const folded = (name: string): string => name.toLowerCase().replaceAll(/[-_ ]/g, '')

/** The known name that is most similar, or undefined when none is similar enough. */
export const closestName = (name: string, known: readonly string[]): string | undefined => {
  if (name.length > longestName) return undefined
  const wanted = folded(name)
  let closest: string | undefined
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const edits = editDistance(wanted, folded(candidate))
    if (edits < fewest) {
      fewest = edits
      closest = candidate
    }
  }
  return closest
}
