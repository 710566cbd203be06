import { createHash } from 'node:crypto'

/** Most keys and tags are shorter, and are kept as they are: to make a digest takes longer than all else that is done with one. */
const longestKept = 128

/** Begins every digest; no key or tag that is kept as it is begins with it. */
const mark = '#'

/**
 * The text, or SHA-256 of one that is long: a client that sends 14 KB in a field that a response varies by must not decide how much
 * memory a key takes. Different texts stay different.
 */
export const shortText = (text: string): string =>
  text.length <= longestKept && !text.startsWith(mark)
    ? text
    : mark + createHash('sha256').update(text).digest('base64url')

/** V8 keeps all of a text for the sake of a part that was cut out of it, and all pieces of one that was put together and never compared. */
export const ownText = (text: string): string => Buffer.from(text).toString()

/**
 * Header fields (RFC 9110 §5). Responses keep theirs as one flat array of name, value, name, value …:
 * order and repeated lines survive, and a stored response is ready for `writeHead` without a rebuild.
 */
export type FieldLines = readonly string[]

/** Request fields as node:http gives them: lower-case names, repeated lines already combined. */
export type RequestFields = Readonly<Record<string, string | string[] | undefined>>

/** RFC 9110 §5.1: names compare without regard to case. Most differ in length already. */
const isNamed = (name: string | undefined, wanted: string): boolean =>
  name !== undefined &&
  name.length === wanted.length &&
  (name === wanted || name.toLowerCase() === wanted.toLowerCase())

/** All values of one field, in order. */
export const fieldValues = (lines: FieldLines, name: string): string[] => {
  const values: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) values.push(lines[i + 1] as string)
  }
  return values
}

/** The combined value of a field (RFC 9110 §5.3), or undefined when no line carries it. */
export const fieldValue = (lines: FieldLines, name: string): string | undefined => {
  let value: string | undefined
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) value = value === undefined ? lines[i + 1] : `${value}, ${lines[i + 1]}`
  }
  return value
}

/** The combined value of a request field. */
export const requestField = (fields: RequestFields, name: string): string | undefined => {
  const value = fields[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** Is any of the named fields there? */
export const hasField = (lines: FieldLines, names: ReadonlySet<string>): boolean => {
  for (let i = 0; i < lines.length; i += 2) {
    if (names.has((lines[i] as string).toLowerCase())) return true
  }
  return false
}

/** The lines without the named fields. */
export const withoutFields = (lines: FieldLines, names: ReadonlySet<string>): string[] => {
  const kept: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    if (!names.has(name.toLowerCase())) kept.push(name, lines[i + 1] as string)
  }
  return kept
}

/** The lines with every line of one field replaced by a single new one, at the end. */
export const withField = (lines: FieldLines, name: string, value: string): string[] => {
  const kept = withoutFields(lines, new Set([name.toLowerCase()]))
  kept.push(name, value)
  return kept
}

/** Fields that replace those of a response, and names of fields that are removed from it, in lower case. */
export type FieldChanges = { readonly set: FieldLines; readonly removed: ReadonlySet<string> }

/** The lines with the changes applied; `removed` includes the names in `set`. */
export const withChanges = (lines: FieldLines, { set, removed }: FieldChanges): string[] => {
  const kept = withoutFields(lines, removed)
  kept.push(...set)
  return kept
}
