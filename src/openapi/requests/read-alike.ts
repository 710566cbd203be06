/** Deeper names are no declared name's with more brackets. */
const maxSteps = 8

const stepsOf = (text: string): readonly string[] =>
  text
    .split(/[[\]]/, 2 * maxSteps)
    .map((step) => step.trim())
    .filter((step) => step !== '')
    .slice(0, maxSteps)

/** Some servers take these for `_`, and some ignore case. Of a step that is longer than all that are declared the rest does not matter. */
const foldedStep = (step: string, longest: number): string =>
  step
    .slice(0, longest + 1)
    .replace(/[ .]/g, '_')
    .toLowerCase()

const keyOf = (steps: readonly string[], longest: number): string =>
  steps.map((step) => foldedStep(step, longest)).join('[')

/** What stands behind a NUL is cut. */
const beforeNul = (name: string): string => {
  const end = name.indexOf('\0')
  return (end < 0 ? name : name.slice(0, end)).trim()
}

/** The keys of the names that servers may read: `[i]`, `i[]` and `i[a]` as `i`, and `page[size` as `page_size`. */
const keysOf = (name: string, longest: number): readonly string[] => {
  const text = beforeNul(name)
  const steps = stepsOf(text)
  const keys = steps.map((_, at) => keyOf(steps.slice(0, at + 1), longest))
  return text.includes('[') && !text.includes(']')
    ? [...keys, foldedStep(text.replace('[', '_'), longest)]
    : keys
}

/** Longer names than any declared one with brackets are compared by their beginning. */
const longestCompared = 1024

/**
 * Finds the declared name that Rack, qs or a server that folds names or that ignores case may read in place of an undeclared one, whose value no
 * schema describes.
 */
export const createReadAlike = (declaredNames: Iterable<string>): ((name: string) => string | undefined) => {
  const names = new Map<string, string>()
  const all = [...declaredNames]
  const longest = Math.max(0, ...all.map((name) => name.length))
  for (const name of all) {
    const key = keyOf(stepsOf(beforeNul(name)), longest)
    if (!names.has(key)) names.set(key, name)
  }
  return (name) => {
    for (const key of keysOf(name.slice(0, longestCompared), longest)) {
      const declaredName = names.get(key)
      if (declaredName !== undefined) return declaredName
    }
    return undefined
  }
}
