import { parseReference, type Reference } from './json-references.ts'

const placeholderPattern = /(\{[^{}]*\})/

/** A path in pieces: text, and references that are a whole segment each. */
export type PathTemplate = readonly (string | Reference)[]

/** Cuts `/posts/{new#/body/id}`; undefined when a reference stands where none can be. */
export const pathTemplate = (path: string): PathTemplate | undefined => {
  const pieces: (string | Reference)[] = []
  for (const piece of path.split(placeholderPattern)) {
    const reference = piece.startsWith('{') ? parseReference(piece.slice(1, -1)) : undefined
    pieces.push(reference ?? piece)
  }
  let inQuery = false
  const isWhole = pieces.every((piece, at) => {
    if (typeof piece === 'string') {
      inQuery ||= piece.includes('?')
      return true
    }
    const before = pieces[at - 1]
    const after = pieces[at + 1]
    const isFirstInSegment = typeof before === 'string' && before.endsWith('/')
    const isLastInSegment = typeof after === 'string' && (after === '' || /^[/?]/.test(after))
    return isFirstInSegment && isLastInSegment && !inQuery
  })
  return isWhole ? pieces : undefined
}

/** What a value is as one segment: encoded, and undefined where it would be none or mean another path. */
export const pathSegment = (valueText: string): string | undefined => {
  if (/^-?\d{1,20}$/.test(valueText)) return valueText
  if (!valueText.startsWith('"')) return undefined
  const text = JSON.parse(valueText) as string
  if (text === '' || text === '.' || text === '..' || text.length > 200) return undefined
  // A lone surrogate is no text that could be encoded.
  return /\p{Surrogate}/u.test(text) ? undefined : encodeURIComponent(text)
}
