import { type JsonFault, readJson } from '../../http/bodies/read-json.ts'
import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import {
  closes,
  comma,
  openBrace,
  opens,
  quote,
  skipSpace,
  stringAt,
  stringEnd,
  valueEnd,
} from '../../http/json-text.ts'
import { pointerStep } from '../document/bundle.ts'
import type { Parameter } from '../document/operation.ts'
import type { RequestSchema } from '../document/request-schema.ts'
import type { Texts } from './parameter-text.ts'
import { type ExactIntegers, noExactIntegers, type SchemaChecker } from './schema-checker.ts'
import type { SchemaFault } from './schema-faults.ts'
import type { ScalarType, SchemaShape } from './schema-shape.ts'

type ExactReading =
  | { readonly kind: 'read'; readonly value: unknown; readonly exact: ExactIntegers }
  | { readonly kind: 'refused'; readonly subject: 'json' | 'repeated name'; readonly detail: string }

/** How the JSON of one document is read. */
type JsonRules = {
  readonly jsonDepth: number
  /** Some integers may only be written in their shortest form (`x-trellis-integer: strict`). */
  readonly hasStrictIntegers: boolean
}

const integer = /^-?(?:0|[1-9]\d*)$/
/** Signs of a number that may be written in another form as well. */
const severalForms = /\d{16}|\d[.Ee]|-0/
const oneForm = /^(?:0|-?[1-9]\d{0,14})$/
const isNumber = /^[-\d]/

const refusedReading = (detail: string, subject: 'json' | 'repeated name' = 'json'): ExactReading => ({
  kind: 'refused',
  subject,
  detail,
})

const faults: Readonly<Record<JsonFault, string>> = {
  utf8: 'is not valid JSON',
  control: 'is not valid JSON',
  syntax: 'is not valid JSON',
  surrogate: 'is not valid JSON',
  depth: 'is nested too deep',
  'too-many-values': 'has too many values',
}

/** Characters of the pointers to all long integers, which are held. */
const maxHeld = 8_000_000

/**
 * Characters of the pointers to all values, for each octet of the content: a check writes them. A long name is a part of the pointer
 * to each value below it, so that one megabyte could cost hours.
 */
const maxPerOctet = 200

/** An index with its slash. */
const shortStep = 7

/** Values that are visited in one piece: about a millisecond. */
const valuesOfPiece = 8 * 1024

/** Of a whole value. */
class Sizes {
  members = 0
  /** Characters of the pointers to all values. */
  characters = 0
  /** Some number is none of the integers that a double holds. */
  hasLongNumber = false
  /** Lists and objects that were not visited yet, each with the length of its pointer. */
  readonly #pending: object[] = []
  readonly #lengths: number[] = []

  #addInner(value: object, pointerLength: number): number {
    if (Array.isArray(value)) {
      for (const item of value) this.#addValue(item, pointerLength + shortStep)
      return value.length + 1
    }
    const before = this.members
    for (const name in value) {
      this.members += 1
      const inner = (value as Readonly<Record<string, unknown>>)[name]
      this.#addValue(inner, pointerLength + name.length + 1)
    }
    return this.members - before + 1
  }

  *add(value: unknown): Pieces<void> {
    this.#addValue(value, 0)
    let left = valuesOfPiece
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
      left -= this.#addInner(next, this.#lengths.pop() ?? 0)
      if (left > 0) continue
      left = valuesOfPiece
      yield
    }
  }

  #addValue(value: unknown, pointerLength: number): void {
    this.characters += pointerLength
    if (typeof value === 'number') this.hasLongNumber ||= !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)
    else if (typeof value === 'object' && value !== null) {
      this.#pending.push(value)
      this.#lengths.push(pointerLength)
    }
  }
}

const tooLongNames = refusedReading('has too many values under long names')

/** A list or an object of a text that is being read. */
type OpenValue = { readonly pointer: string; readonly isObject: boolean; index: number }

/** The texts of all numbers that matter, by the pointers to them; undefined for more than can be held. The text is valid JSON. */
function* exactNumbers(
  text: string,
  matters: (number: string) => boolean,
): Pieces<ReadonlyMap<string, string> | undefined> {
  const exact = new Map<string, string>()
  const open: OpenValue[] = []
  let held = 0
  let left = valuesOfPiece
  let at = skipSpace(text, 0)
  const valueAt = (from: number, pointer: string): number => {
    const first = text.charCodeAt(from)
    if (opens(first)) {
      open.push({ pointer, isObject: first === openBrace, index: 0 })
      return from + 1
    }
    const end = valueEnd(text, from)
    if (first === quote) return end
    const number = text.slice(from, end)
    if (matters(number)) {
      held += pointer.length
      if (held <= maxHeld) exact.set(pointer, number)
    }
    return end
  }
  at = valueAt(at, '')
  for (let inner = open.at(-1); inner !== undefined; inner = open.at(-1)) {
    at = skipSpace(text, at)
    if (closes(text.charCodeAt(at))) {
      open.pop()
      at += 1
      continue
    }
    if (text.charCodeAt(at) === comma) at = skipSpace(text, at + 1)
    let step = String(inner.index)
    inner.index += 1
    if (inner.isObject) {
      const end = stringEnd(text, at)
      step = pointerStep(stringAt(text, at, end))
      at = skipSpace(text, skipSpace(text, end) + 1)
    }
    at = valueAt(at, `${inner.pointer}/${step}`)
    left -= 1
    if (held > maxHeld) return undefined
    if (left > 0) continue
    left = valuesOfPiece
    yield
  }
  return exact
}

/**
 * Reads JSON for a check: with the texts of integers that a double does not hold, or whose form matters. Readers differ on which of
 * two equal names counts (RFC 8259 §4), so that a repeated name is refused: the upstream might read a value that was not checked.
 */
export function* readExactJson(
  content: Buffer,
  { jsonDepth, hasStrictIntegers }: JsonRules,
): Pieces<ExactReading> {
  const reading = yield* readJson(content, jsonDepth)
  if (reading.kind === 'refused') return refusedReading(faults[reading.fault])
  const { value, text, members } = reading
  const sizes = new Sizes()
  yield* sizes.add(value)
  // The value has fewer members than the text.
  if (sizes.members !== members) return refusedReading('has an object that repeats a name', 'repeated name')
  if (sizes.characters > content.length * maxPerOctet) return tooLongNames
  const mayMatter = hasStrictIntegers ? severalForms.test(text) : sizes.hasLongNumber
  if (!mayMatter) return { kind: 'read', value, exact: noExactIntegers }
  const matters = hasStrictIntegers
    ? (number: string) => isNumber.test(number) && !oneForm.test(number)
    : (number: string) => number.length > 15 && integer.test(number)
  const exact = yield* exactNumbers(text, matters)
  return exact === undefined ? tooLongNames : { kind: 'read', value, exact }
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?$/

type Typed = { readonly value: unknown; readonly exact?: string }

/** Leading zeros of an integer that may have them. */
const padding = /^(-?)0+(?=\d)/

const asInteger = (digits: string, form: SchemaShape['integers']): Typed | undefined => {
  const text = form === 'padded' ? digits.replace(padding, '$1') : digits
  if (!integer.test(text) || (form !== 'json' && text === '-0')) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? { value } : { value, exact: text }
}

const asNumber = (text: string): Typed | undefined => {
  if (!number.test(text)) return undefined
  const value = Number(text)
  return Number.isFinite(value) ? (asInteger(text, 'json') ?? { value }) : undefined
}

/** The value that a text spells; undefined for none. Integers and numbers have the grammar of JSON only. */
const typed = (text: string, type: ScalarType, form: SchemaShape['integers']): Typed | undefined => {
  switch (type) {
    case 'integer':
      return asInteger(text, form)
    case 'number':
      return asNumber(text)
    case 'boolean':
      return text === 'true' || text === 'false' ? { value: text === 'true' } : undefined
    case 'null':
      return text === '' || text === 'null' ? { value: null } : undefined
    case 'string':
      return { value: text }
  }
}

/** The first of the values that a text can spell under a schema. */
const firstTyped = (text: string, { scalars, integers }: SchemaShape): Typed | undefined => {
  for (const type of scalars) {
    const typedValue = typed(text, type, integers)
    if (typedValue !== undefined) return typedValue
  }
  return undefined
}

export type ValueParts = JsonRules & {
  readonly checker: SchemaChecker
  shapeOf(schema: RequestSchema): SchemaShape
}

type ParameterReading =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'absent' }
  | { readonly kind: 'fault'; readonly fault: SchemaFault }

const fault = (detail: string, pointer = ''): ParameterReading => ({
  kind: 'fault',
  fault: { pointer, detail },
})

const typeNames = ({ types }: SchemaShape): string =>
  `must be ${[...types].filter((type) => type !== 'array' && type !== 'object').join(' or ') || 'another value'}`

/** A list or an object inside of another one has no style: it is not read. */
const isNested = ({ types }: SchemaShape): boolean =>
  types.size > 0 && [...types].every((type) => type === 'array' || type === 'object')

/** Values of several texts, each read by its own schema. */
const readAll = (
  texts: readonly (readonly [pointer: string, text: string, schema: RequestSchema])[],
  { shapeOf }: ValueParts,
): { readonly values: unknown[]; readonly exact: Map<string, string> } | ParameterReading => {
  const values: unknown[] = []
  const exact = new Map<string, string>()
  for (const [pointer, text, schema] of texts) {
    const shape = shapeOf(schema)
    const isUnread = isNested(shape)
    const reading = isUnread ? undefined : firstTyped(text, shape)
    if (reading === undefined)
      return isUnread ? { kind: 'value', value: undefined } : fault(typeNames(shape), pointer)
    if (reading.exact !== undefined) exact.set(pointer, reading.exact)
    values.push(reading.value)
  }
  return { values, exact }
}

const checked = (
  value: unknown,
  schema: RequestSchema,
  exact: ReadonlyMap<string, string>,
  { checker }: ValueParts,
  octets = 0,
): ParameterReading => {
  const [fault] = checker.check(schema, value, exact, octets)
  return fault === undefined ? { kind: 'value', value } : { kind: 'fault', fault }
}

const readScalar = (
  text: string,
  schema: RequestSchema,
  allowEmpty: boolean,
  parts: ValueParts,
): ParameterReading => {
  if (text === '' && allowEmpty) return { kind: 'value', value: '' }
  const shape = parts.shapeOf(schema)
  let first: ParameterReading | undefined
  for (const type of shape.scalars) {
    const typedValue = typed(text, type, shape.integers)
    if (typedValue === undefined) continue
    const exact = typedValue.exact === undefined ? noExactIntegers : new Map([['', typedValue.exact]])
    const reading = checked(typedValue.value, schema, exact, parts)
    if (reading.kind === 'value') return reading
    first ??= reading
  }
  return first ?? fault(typeNames(shape))
}

const readJsonText = (text: string, schema: RequestSchema, parts: ValueParts): ParameterReading => {
  const reading = atOnce(readExactJson(Buffer.from(text), parts))
  return reading.kind === 'refused'
    ? fault(reading.detail)
    : checked(reading.value, schema, reading.exact, parts, text.length)
}

const takesNested = ({ types }: SchemaShape): boolean =>
  types.size === 0 || types.has('array') || types.has('object')

type Members = Extract<Texts, { kind: 'members' }>

/** Some members are lists or objects, which have no style in an object: the others are checked one by one. */
const readBesideNested = (
  { members, nestedNames = new Set() }: Members,
  { properties, additional }: SchemaShape,
  parts: ValueParts,
): ParameterReading => {
  for (const name of nestedNames) {
    const schema = properties.get(name) ?? additional
    const pointer = `/${pointerStep(name)}`
    if (schema === false) return fault('has a member that is not declared')
    if (!takesNested(parts.shapeOf(schema))) return fault(typeNames(parts.shapeOf(schema)), pointer)
  }
  for (const [name, text] of members) {
    const schema = properties.get(name) ?? additional
    if (schema === false) return fault('has a member that is not declared')
    const shape = parts.shapeOf(schema)
    const reading = isNested(shape) ? undefined : readScalar(text, schema, false, parts)
    if (reading?.kind === 'fault')
      return fault(reading.fault.detail, `/${pointerStep(name)}${reading.fault.pointer}`)
  }
  return { kind: 'value', value: undefined }
}

const readMembers = (texts: Members, schema: RequestSchema, parts: ValueParts): ParameterReading => {
  const shape = parts.shapeOf(schema)
  const { properties, additional, isWhole } = shape
  const schemaOf = (name: string) => properties.get(name) ?? (additional === false ? true : additional)
  const hasNested =
    (texts.nestedNames?.size ?? 0) > 0 ||
    texts.members.some(([name]) => isNested(parts.shapeOf(schemaOf(name))))
  if (hasNested) return isWhole ? readBesideNested(texts, shape, parts) : { kind: 'value', value: undefined }
  const readings = readAll(
    texts.members.map(([name, text]) => [`/${pointerStep(name)}`, text, schemaOf(name)]),
    parts,
  )
  if ('kind' in readings) return readings
  const value = Object.fromEntries(texts.members.map(([name], index) => [name, readings.values[index]]))
  return checked(value, schema, readings.exact, parts)
}

/** The value of a parameter, checked against its schema. */
export const readValue = (
  texts: Texts,
  { schema, encoding, allowEmptyValue }: Pick<Parameter, 'schema' | 'encoding' | 'allowEmptyValue'>,
  parts: ValueParts,
): ParameterReading => {
  switch (texts.kind) {
    case 'absent':
      return texts
    case 'fault':
      return fault(texts.detail)
    case 'unread':
      return { kind: 'value', value: undefined }
    case 'text':
      if (encoding === 'text') return { kind: 'value', value: texts.text }
      return encoding === 'json'
        ? readJsonText(texts.text, schema, parts)
        : readScalar(texts.text, schema, allowEmptyValue, parts)
    case 'list': {
      const { items } = parts.shapeOf(schema)
      const readings = readAll(
        texts.items.map((text, index) => [`/${index}`, text, items]),
        parts,
      )
      return 'kind' in readings ? readings : checked(readings.values, schema, readings.exact, parts)
    }
    case 'members':
      return readMembers(texts, schema, parts)
  }
}
