import { elements, type JsonText, member, members } from './json-parts.ts'

/** A value in the answer of another item: its id, and a JSON Pointer (RFC 6901) into `{"body": …, "status": …}`. */
export type Reference = { readonly id: string; readonly pointer: readonly string[] }

/** What the text of a request refers to; undefined when something looks like a reference and is none. */
export type FoundReferences = readonly Reference[] | undefined

/** Ids of items: they stand in references, so they have no character that means something there. */
export const itemIdPattern = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

const mostSegments = 16
const mostReferences = 32

/** Reads `id#/body/…`. */
export const parseReference = (text: string): Reference | undefined => {
  const [id = '', fragment = '', ...more] = text.split('#')
  const segments = fragment.split('/')
  const wellFormed = itemIdPattern.test(id) && more.length === 0 && segments[0] === ''
  if (!wellFormed || segments.length < 2 || segments.length > mostSegments + 1) return undefined
  // RFC 6901 §4: ~1 first, so that ~01 stands for ~1.
  const pointer = segments.slice(1).map((one) => one.replaceAll('~1', '/').replaceAll('~0', '~'))
  return { id, pointer }
}

/** The text of `{"$ref": "…"}`; undefined for anything else. */
const referenceText = (text: JsonText): string | undefined => {
  if (!text.startsWith('{')) return undefined
  const parts = members(text)
  const value = parts.get('$ref')
  return parts.size === 1 && value?.startsWith('"') === true ? (JSON.parse(value) as string) : undefined
}

/** All references in a JSON text, which has been parsed before and so is no deeper than the limit. */
export const referencesIn = (text: JsonText): FoundReferences => {
  const found: Reference[] = []
  const visit = (part: JsonText): boolean => {
    const named = referenceText(part)
    if (named !== undefined) {
      const reference = parseReference(named)
      if (reference === undefined || found.length === mostReferences) return false
      found.push(reference)
      return true
    }
    const inner = part.startsWith('{') ? [...members(part).values()] : (elements(part) ?? [])
    return inner.every(visit)
  }
  return visit(text) ? found : undefined
}

/** The text with each reference replaced by the text of a value, so that a number of 64 bits stays what it is. */
export const withValues = (text: JsonText, textOf: (reference: Reference) => JsonText): JsonText => {
  const named = referenceText(text)
  const reference = named === undefined ? undefined : parseReference(named)
  if (reference !== undefined) return textOf(reference)
  if (text.startsWith('{')) {
    const inner = [...members(text)].map(
      ([name, value]) => `${JSON.stringify(name)}:${withValues(value, textOf)}`,
    )
    return `{${inner.join(',')}}`
  }
  const inner = elements(text)
  return inner === undefined ? text : `[${inner.map((value) => withValues(value, textOf)).join(',')}]`
}

const indexPattern = /^(?:0|[1-9]\d{0,5})$/

/** The text that a pointer leads to; undefined when there is nothing. */
export const valueAt = (text: JsonText, pointer: readonly string[]): JsonText | undefined => {
  let at: JsonText | undefined = text
  for (const segment of pointer) {
    if (at?.startsWith('{') === true) at = member(at, segment)
    else at = indexPattern.test(segment) ? elements(at ?? '')?.[Number(segment)] : undefined
    if (at === undefined) return undefined
  }
  return at
}

/** Is anything nested deeper than that? */
export const isDeeperThan = (text: JsonText, depth: number): boolean => {
  const inner = text.startsWith('{') ? [...members(text).values()] : elements(text)
  if (inner === undefined) return false
  return depth === 0 || inner.some((part) => isDeeperThan(part, depth - 1))
}
