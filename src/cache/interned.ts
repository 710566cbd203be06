/**
 * Gives equal short texts one string: names and most values of fields are the same in all responses, and each
 * response brings its own copies from the wire. Bounded in texts and in their length.
 */
export type Intern = (text: string) => string

const longest = 64
const perGeneration = 2048

/** Two generations: what is used stays, what was seen once goes when the young one is full. */
export const createIntern = (): Intern => {
  let young = new Map<string, string>()
  let old = new Map<string, string>()
  return (text) => {
    if (text.length > longest) return text
    const known = young.get(text)
    if (known !== undefined) return known
    const kept = old.get(text) ?? text
    if (young.size >= perGeneration) {
      old = young
      young = new Map()
    }
    young.set(kept, kept)
    return kept
  }
}
