import { pointerStep } from '../../contracts/openapi/bundle.ts'
import type { Parameter } from '../../contracts/openapi/operation.ts'
import type { RequestSchema } from '../../contracts/openapi/request-schema.ts'
import { type JsonRules, readExactJson } from './exact-json.ts'
import type { Texts } from './parameter-text.ts'
import { noExactIntegers, type SchemaChecker, type SchemaFault } from './schema-checker.ts'
import type { ScalarType, SchemaShape } from './schema-shape.ts'

const integer = /^-?(?:0|[1-9]\d*)$/
const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?$/

type Typed = { readonly value: unknown; readonly exact?: string }

/** Leading zeros of an integer that may have them. */
const padding = /^(-?)0+(?=\d)/

const asInteger = (written: string, form: SchemaShape['integers']): Typed | undefined => {
  const text = form === 'padded' ? written.replace(padding, '$1') : written
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
    const found = typed(text, type, integers)
    if (found !== undefined) return found
  }
  return undefined
}

export type ValueParts = JsonRules & {
  readonly checker: SchemaChecker
  shapeOf(schema: RequestSchema): SchemaShape
}

export type ParameterReading =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'absent' }
  | { readonly kind: 'fault'; readonly fault: SchemaFault }

const fault = (detail: string, pointer = ''): ParameterReading => ({
  kind: 'fault',
  fault: { pointer, detail },
})

const typeNames = ({ types }: SchemaShape): string =>
  `must be ${[...types].filter((type) => type !== 'array' && type !== 'object').join(' or ') || 'another value'}`

/** Values of several texts, each read by its own schema. */
const readAll = (
  texts: readonly (readonly [pointer: string, text: string, schema: RequestSchema])[],
  { shapeOf }: ValueParts,
): { readonly values: unknown[]; readonly exact: Map<string, string> } | ParameterReading => {
  const values: unknown[] = []
  const exact = new Map<string, string>()
  for (const [pointer, text, schema] of texts) {
    const shape = shapeOf(schema)
    // A list or an object inside of another one has no style: it is checked as a text if at all.
    const isNested =
      shape.types.size > 0 && [...shape.types].every((type) => type === 'array' || type === 'object')
    const reading = isNested ? undefined : firstTyped(text, shape)
    if (reading === undefined)
      return isNested ? { kind: 'value', value: undefined } : fault(typeNames(shape), pointer)
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
): ParameterReading => {
  const found = checker.check(schema, value, exact)
  return found === undefined ? { kind: 'value', value } : { kind: 'fault', fault: found }
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
    const found = typed(text, type, shape.integers)
    if (found === undefined) continue
    const exact = found.exact === undefined ? noExactIntegers : new Map([['', found.exact]])
    const reading = checked(found.value, schema, exact, parts)
    if (reading.kind === 'value') return reading
    first ??= reading
  }
  return first ?? fault(typeNames(shape))
}

const readJsonText = (text: string, schema: RequestSchema, parts: ValueParts): ParameterReading => {
  const reading = readExactJson(Buffer.from(text), parts)
  return reading.kind === 'refused'
    ? fault(reading.detail)
    : checked(reading.value, schema, reading.exact, parts)
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
      const read = readAll(
        texts.items.map((text, index) => [`/${index}`, text, items]),
        parts,
      )
      return 'kind' in read ? read : checked(read.values, schema, read.exact, parts)
    }
    case 'members': {
      const { properties, additional } = parts.shapeOf(schema)
      const read = readAll(
        texts.members.map(([name, text]) => [
          `/${pointerStep(name)}`,
          text,
          properties.get(name) ?? (additional === false ? true : additional),
        ]),
        parts,
      )
      if ('kind' in read) return read
      const value = Object.fromEntries(texts.members.map(([name], index) => [name, read.values[index]]))
      return checked(value, schema, read.exact, parts)
    }
  }
}
