import { openBrace, opens, quote, stringEnd, valueEnd, visitValues } from '../../http/json-text.ts'
import { readJson } from '../validation/json-content.ts'
import { type ExactIntegers, noExactIntegers } from './schema-checker.ts'

export type ExactReading =
  | { readonly kind: 'read'; readonly value: unknown; readonly exact: ExactIntegers }
  | { readonly kind: 'refused'; readonly subject: 'json' | 'repeated name'; readonly detail: string }

/** How the JSON of one document is read. */
export type JsonRules = {
  readonly jsonDepth: number
  /** Some integers may only be written in their shortest form (`x-trellis-integer: strict`). */
  readonly hasStrictIntegers: boolean
}

/** Characters of the pointers to all long integers, which are held. */
const mostHeld = 8_000_000

/**
 * The same of all values, which a check puts together: for each octet of the content. A long name is a part of the pointer to each
 * value below it, so that one megabyte could cost hours.
 */
const mostPerOctet = 200

/** An index with its slash. */
const shortStep = 7

const longDigits = /\d{16}/
const integer = /^-?(?:0|[1-9]\d*)$/
/** Signs of a number that may be written in another form as well. */
const severalForms = /\d{16}|\d[.Ee]|-0/
const oneForm = /^(?:0|-?[1-9]\d{0,14})$/
const isNumber = /^[-\d]/

const refused = (detail: string, subject: 'json' | 'repeated name' = 'json'): ExactReading => ({
  kind: 'refused',
  subject,
  detail,
})

const escaped = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/**
 * Reads JSON for a check: with the texts of integers that a double does not hold, or whose form matters. Readers differ on which of two equal names counts
 * (RFC 8259 §4), so that a repeated name is refused: the upstream might read a value that was not checked.
 */
export const readExactJson = (content: Buffer, { jsonDepth, hasStrictIntegers }: JsonRules): ExactReading => {
  const reading = readJson(content, jsonDepth)
  if (reading.kind === 'too-many-values') return refused('has too many values')
  if (reading.kind === 'refused')
    return refused(reading.code === 1 ? 'is nested too deep' : 'is not valid JSON')
  const { value } = reading
  const mayMatter = hasStrictIntegers ? severalForms : longDigits
  const matters = hasStrictIntegers
    ? (number: string) => isNumber.test(number) && !oneForm.test(number)
    : (number: string) => number.length > 15 && integer.test(number)
  if (typeof value !== 'object' || value === null) {
    const text = content.toString('utf8').trim()
    const exact = matters(text) ? new Map([['', text]]) : noExactIntegers
    return { kind: 'read', value, exact }
  }
  const text = content.toString('utf8')
  const exact = mayMatter.test(text) ? new Map<string, string>() : undefined
  let repeated = false
  let held = 0
  let characters = 0
  const noteNumber = (number: string, pointer: string, length: number): void => {
    if (!matters(number)) return
    held += length
    if (held <= mostHeld) exact?.set(pointer, number)
  }
  const visit = (from: number, pointer: string, length: number): number => {
    characters += length
    const first = text.charCodeAt(from)
    if (first === quote) return stringEnd(text, from)
    if (!opens(first)) {
      const end = valueEnd(text, from)
      if (exact !== undefined) noteNumber(text.slice(from, end), pointer, length)
      return end
    }
    const names = first === openBrace ? new Set<string>() : undefined
    let index = 0
    return visitValues(text, from, (at, name) => {
      if (names !== undefined) {
        repeated ||= names.has(name)
        names.add(name)
      }
      const step = exact === undefined ? '' : `${pointer}/${names === undefined ? index : escaped(name)}`
      index += 1
      return visit(at, step, length + (names === undefined ? shortStep : name.length + 1))
    })
  }
  visit(text.search(/\S/), '', 0)
  if (repeated) return refused('has an object that repeats a name', 'repeated name')
  if (held > mostHeld || characters > content.length * mostPerOctet)
    return refused('has too many values under long names')
  return { kind: 'read', value, exact: exact ?? noExactIntegers }
}
