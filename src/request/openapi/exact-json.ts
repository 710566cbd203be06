import { pointerStep } from '../../contracts/openapi/bundle.ts'
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

/** Characters of the pointers to all long integers, which are held. */
const mostHeld = 8_000_000

/**
 * Characters of the pointers to all values, for each octet of the content: a check writes them. A long name is a part of the pointer
 * to each value below it, so that one megabyte could cost hours.
 */
const mostPerOctet = 200

/** An index with its slash. */
const shortStep = 7

/** Of a whole document: members of all objects, and characters of the pointers to all values. */
type Sizes = { members: number; characters: number }

const addSizes = (sizes: Sizes, value: unknown, pointerLength: number): void => {
  sizes.characters += pointerLength
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) for (const item of value) addSizes(sizes, item, pointerLength + shortStep)
  else
    for (const name of Object.keys(value)) {
      sizes.members += 1
      const member = (value as Readonly<Record<string, unknown>>)[name]
      addSizes(sizes, member, pointerLength + name.length + 1)
    }
}

/**
 * Reads JSON for a check: with the texts of integers that a double does not hold, or whose form matters. Readers differ on which of
 * two equal names counts (RFC 8259 §4), so that a repeated name is refused: the upstream might read a value that was not checked.
 */
export const readExactJson = (content: Buffer, { jsonDepth, hasStrictIntegers }: JsonRules): ExactReading => {
  const reading = readJson(content, jsonDepth)
  if (reading.kind === 'too-many-values') return refused('has too many values')
  if (reading.kind === 'refused')
    return refused(reading.code === 1 ? 'is nested too deep' : 'is not valid JSON')
  const { value, text, members } = reading
  const sizes: Sizes = { members: 0, characters: 0 }
  addSizes(sizes, value, 0)
  if (members > sizes.members) return refused('has an object that repeats a name', 'repeated name')
  if (sizes.characters > content.length * mostPerOctet) return refused('has too many values under long names')
  const mayMatter = hasStrictIntegers ? severalForms : longDigits
  if (!mayMatter.test(text)) return { kind: 'read', value, exact: noExactIntegers }
  const matters = hasStrictIntegers
    ? (number: string) => isNumber.test(number) && !oneForm.test(number)
    : (number: string) => number.length > 15 && integer.test(number)
  const exact = new Map<string, string>()
  let held = 0
  const visit = (from: number, pointer: string): number => {
    const first = text.charCodeAt(from)
    if (first === quote) return stringEnd(text, from)
    if (!opens(first)) {
      const end = valueEnd(text, from)
      const number = text.slice(from, end)
      if (matters(number)) {
        held += pointer.length
        if (held <= mostHeld) exact.set(pointer, number)
      }
      return end
    }
    let index = 0
    return visitValues(text, from, (at, name) => {
      const step = first === openBrace ? pointerStep(name) : index
      index += 1
      return visit(at, `${pointer}/${step}`)
    })
  }
  visit(text.search(/\S/), '')
  if (held > mostHeld) return refused('has too many values under long names')
  return { kind: 'read', value, exact }
}
