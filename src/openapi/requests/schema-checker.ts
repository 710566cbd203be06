import { isIPv4, isIPv6 } from 'node:net'
import { _, Ajv2020, type KeywordCxt, str } from 'ajv/dist/2020.js'
import type { DataValidationCxt } from 'ajv/dist/types/index.js'
import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { memoizeByObject } from '../../http/memo.ts'
import type { RequestSchema } from '../document/request-schema.ts'
import {
  createQuickMultiple,
  decimalOf,
  fitsAsDouble,
  fitsAsText,
  formatBounds,
  type IntegerSchema,
  isMultiple,
} from './exact-numbers.ts'
import { safePattern } from './safe-pattern.ts'
import { type Compiled, createSchemaCompiler } from './schema-compiler.ts'
import { faultsOf, type SchemaFault } from './schema-faults.ts'

/** Texts of integers that a number of 53 bits does not hold, or whose form matters, by the JSON Pointer of their value. */
export type ExactIntegers = ReadonlyMap<string, string>

export type SchemaChecker = {
  /**
   * The faults of a value that was written in so many octets, at most `maxFaults`; none when it fits, or when the schema cannot be
   * checked.
   */
  check(schema: RequestSchema, value: unknown, exact: ExactIntegers, octets?: number): readonly SchemaFault[]
  /** The same; to compile the schema takes pieces of its own. */
  checkInPieces(
    schema: RequestSchema,
    value: unknown,
    exact: ExactIntegers,
    octets?: number,
  ): Pieces<readonly SchemaFault[]>
  /** Compiles the schema; the reason when it cannot be checked. */
  uncheckable(schema: RequestSchema): string | undefined
}

export const noExactIntegers: ExactIntegers = new Map()

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** 0 for a month that does not exist. */
const daysOfMonth = (year: number, month: number): number =>
  month === 2 && isLeap(year)
    ? 29
    : (([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const)[month - 1] ?? 0)

const isDay = (text: string): boolean => {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []
  if (day === undefined) return false
  return Number(day) >= 1 && Number(day) <= daysOfMonth(Number(year), Number(month))
}

const isTime = (text: string): boolean =>
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i.test(text)

/** Formats of texts that are checked; all others are annotations. Linear in the length of the text. */
const textFormats: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDay,
  time: isTime,
  'date-time': (text) => /[t ]/i.test(text[10] ?? '') && isDay(text.slice(0, 10)) && isTime(text.slice(11)),
  uuid: (text) => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(text),
  // RFC 5321 §4.1.2: a local part in quotes has any printable character, with a backslash before a quote.
  email: (text) =>
    text.length <= 320 && /^(?:[^\s@"]+|"(?:[ !#-[\]-~\u0080-\uffff]|\\[ -~])*")@[^\s@]+$/.test(text),
  ipv4: isIPv4,
  // A zone is no part of the address (RFC 4291 §2.2).
  ipv6: (text) => isIPv6(text) && !text.includes('%'),
  hostname: (text) =>
    text.length <= 253 &&
    text.split('.').every((label) => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i.test(label)),
  uri: (text) => /^[a-z][a-z\d+.-]*:[!#-;=?-[\]_a-z~%]+$/i.test(text),
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(text),
}

/** Of a longer value only the first fault is looked for: that check ends there. */
const maxValues = 1_000

/** Whether a value and what is inside of it are at most `maxValues`. */
const isShort = (value: unknown): boolean => {
  const values = [value]
  for (let at = 0; at < values.length && values.length <= maxValues; at += 1) {
    const next = values[at]
    if (typeof next === 'object' && next !== null) for (const inner of Object.values(next)) values.push(inner)
  }
  return values.length <= maxValues
}

/** Of `S or null` as `anyOf` or `oneOf`: the faults of a value that is not null are those of S. */
const withNull = (schema: object, keyword: 'anyOf' | 'oneOf'): object => {
  const { [keyword]: forms, allOf = [], ...rest } = schema as Readonly<Record<string, readonly object[]>>
  const [form, orNull] = forms?.length === 2 ? forms : []
  if (form === undefined || JSON.stringify(orNull) !== '{"type":"null"}') return schema
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  const onNull = keyword === 'oneOf' ? { then: { not: form } } : {}
  return { ...rest, allOf: [...allOf, { if: orNull, ...onNull, else: form }] }
}

/** Work of a schema for each value, beside what its own schemas do. */
const withSteps = (schema: object): object => {
  const {
    properties,
    required,
    contains,
    steps = 0,
  } = schema as {
    readonly properties?: object
    readonly required?: readonly unknown[]
    readonly contains?: object
    readonly steps?: number
  }
  const names = Object.keys(properties ?? {}).length + (Array.isArray(required) ? required.length : 0)
  const more = Math.floor(names / namesOfStep)
  return {
    ...schema,
    ...(more === 0 ? {} : { steps: steps + more }),
    // An error is made for each item that does not fit.
    ...(typeof contains === 'object' ? { contains: { allOf: [contains], steps: 4 } } : {}),
  }
}

/** Without patterns of member names that cannot be run safely: then it is unknown which members are declared. */
const runnable = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(runnable)
  if (typeof value !== 'object' || value === null) return value
  const schema = withSteps(withNull(withNull(value, 'anyOf'), 'oneOf'))
  const { patternProperties } = schema as { readonly patternProperties?: Record<string, unknown> }
  const undecided = Object.keys(patternProperties ?? {}).filter((source) => safePattern(source) === undefined)
  const droppedKeywords =
    undecided.length === 0 ? [] : ['patternProperties', 'additionalProperties', 'unevaluatedProperties']
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => !droppedKeywords.includes(keyword))
      // Values of these are data.
      .map(([keyword, inner]) => [
        keyword,
        keyword === 'enum' || keyword === 'const' ? inner : runnable(inner),
      ]),
  )
}

/** An undecided pattern holds for every text; `trellis check` lists them. */
const anyText = { test: () => true, toString: () => 'undecided' }

/**
 * Of some 0.1 µs each. Alternatives that contain one another double the work with each level of the value: a short value has fewer
 * steps, or many of them would take a core.
 */
const maxSteps = (octets: number): number => Math.min(200_000, 20_000 + 4 * octets)

const stepsOfPattern = 3
const stepsOfDecimal = 16
const stepsOfList = 6
const namesOfStep = 8

/** That many characters are copied or compared in the time of one step. */
const charactersOfStep = 64

/** `details` has the texts. */
const noMessage = { message: '' }

/** A text has at most as many characters (code points) as code units. */
const charactersOf = (text: string): number => {
  let count = text.length
  for (let at = 0; at < text.length - 1; at += 1) {
    const isPair = (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
    if (isPair) {
      count -= 1
      at += 1
    }
  }
  return count
}

const lengthKeywords = [
  ['maxLength', '>'],
  ['minLength', '<'],
] as const

const lengthCode = (context: KeywordCxt, operator: '>' | '<'): void => {
  const { gen, data, schema } = context
  const characters = _`${gen.scopeValue('func', { ref: charactersOf })}(${data})`
  context.fail(
    operator === '>'
      ? _`${data}.length > ${schema} && ${characters} > ${schema}`
      : _`${data}.length < ${2 * schema} && ${characters} < ${schema}`,
  )
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The number of values in a list or object whose JSON equals that of every equal one: nothing is nested, and names are in order. */
const flatSize = (value: object): number | undefined => {
  if (Array.isArray(value)) return value.some(isNested) ? undefined : value.length
  let size = 0
  let last = ''
  for (const [name, inner] of Object.entries(value)) {
    if (isNested(inner) || (size > 0 && name < last)) return undefined
    last = name
    size += 1
  }
  return size
}

/** Finds a value among those of a list, in the same time for every length of the list. */
const listedIn = (
  values: readonly unknown[],
  comparable: (value: object) => string,
): ((value: unknown) => boolean) => {
  const scalars = new Set(values.filter((value) => !isNested(value)))
  const texts = new Set(values.filter(isNested).map(comparable))
  return (value) => (isNested(value) ? texts.size > 0 && texts.has(comparable(value)) : scalars.has(value))
}

/** Thrown out of a compiled check. */
class TooManySteps extends Error {}

const tooLong: readonly SchemaFault[] = [{ pointer: '', detail: 'takes too long to check' }]

/** The keywords that are checked in another way than the library checks them, with the steps that a check may still take. */
class CountedKeywords {
  readonly #formats: 'assert' | 'annotate'
  // Validation is synchronous, so that one value serves all.
  exactNow = noExactIntegers
  stepsLeft = 0

  constructor(formats: 'assert' | 'annotate') {
    this.#formats = formats
  }

  readonly #count = (more: number): void => {
    this.stepsLeft -= more
    if (this.stepsLeft < 0) throw new TooManySteps()
  }

  /** Equal values have equal texts: members in the order of their names. */
  readonly #comparable = (value: unknown): string => {
    if (!isNested(value)) {
      this.#count(1)
      return JSON.stringify(value)
    }
    const size = flatSize(value)
    this.#count(size === undefined ? stepsOfList : 2 + size / namesOfStep)
    if (size !== undefined) return JSON.stringify(value)
    const text = Array.isArray(value)
      ? `[${value.map(this.#comparable).join()}]`
      : `{${Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, inner]) => `${JSON.stringify(name)}:${this.#comparable(inner)}`)
          .join()}}`
    this.#count(text.length / charactersOfStep)
    return text
  }

  readonly #listed = memoizeByObject((values: readonly unknown[]) => {
    this.stepsLeft = Number.POSITIVE_INFINITY
    return listedIn(values, this.#comparable)
  })

  readonly #areDifferent = (items: readonly unknown[], pointer: string): boolean => {
    // Numbers, texts, booleans and null as they are; others, and integers that a double does not hold, by their texts.
    const values = new Set<unknown>()
    const texts = new Set<string>()
    for (const [index, item] of items.entries()) {
      this.#count(1)
      const isLong = typeof item === 'number' && !Number.isSafeInteger(item) && this.exactNow.size > 0
      const exact = isLong ? this.exactNow.get(`${pointer}/${index}`) : undefined
      if (exact !== undefined) texts.add(exact)
      else if (isNested(item)) texts.add(this.#comparable(item))
      else values.add(item)
    }
    return values.size + texts.size === items.length
  }

  readonly #fits = (value: number, pointer: string, schema: IntegerSchema): boolean => {
    // A look-up takes as long as its pointer is.
    this.#count(1 + pointer.length / charactersOfStep)
    const text = this.exactNow.get(pointer)
    return text === undefined ? fitsAsDouble(value, schema['format']) : fitsAsText(text, value, schema)
  }

  readonly #integerBounds = (context: KeywordCxt): void => {
    const { gen, data, it, parentSchema } = context
    const isStrict = parentSchema['integerText'] === 'strict'
    const bounds = formatBounds(parentSchema['format'])
    // The other bounds are integers that a double holds: a double is beyond one exactly when its text is.
    if (!isStrict && bounds === undefined) return
    const ref = (value: number, pointer: string): boolean => this.#fits(value, pointer, parentSchema)
    const call = _`${gen.scopeValue('func', { ref })}(${data}, ${str`${_`instancePath`}${it.errorPath}`})`
    if (isStrict || bounds === undefined) {
      context.fail(_`!${call}`)
      return
    }
    // Whatever digits a double has lost, it is between its neighbours: nothing is called for it, and no pointer is written.
    const inBounds = _`${data} > ${Number(bounds.min)} && ${data} < ${Number(bounds.max)}`
    context.fail(_`!(${inBounds}) && !${call}`)
  }

  readonly #multipleOf = (context: KeywordCxt): void => {
    const { gen, data, it, schema } = context
    const of = decimalOf(String(schema))
    const isQuickMultiple = createQuickMultiple(of)
    const ref = (value: number, pointer: string): boolean => {
      const isKnown = isQuickMultiple(value)
      if (isKnown !== undefined) return isKnown
      this.#count(stepsOfDecimal + pointer.length / charactersOfStep)
      return isMultiple(value, this.exactNow.get(pointer), of)
    }
    const call = _`${gen.scopeValue('func', { ref })}(${data}, ${str`${_`instancePath`}${it.errorPath}`})`
    const isPlain = _`Number.isSafeInteger(${data}) && ${data} % ${schema} === 0`
    context.fail(Number.isSafeInteger(schema) ? _`!(${isPlain}) && !${call}` : _`!${call}`)
  }

  readonly #regExp = Object.assign(
    (source: string) => {
      const pattern = safePattern(source)
      if (pattern === undefined) return anyText
      const test = (text: string): boolean => {
        this.#count(stepsOfPattern + pattern.stepsOf(text))
        return pattern.test(text)
      }
      return { test, toString: pattern.toString }
    },
    { code: 'countedPattern' },
  )

  readonly #steps = ({ gen, schema }: KeywordCxt): void => {
    gen.code(_`${gen.scopeValue('func', { ref: this.#count })}(${schema})`)
  }

  prepare(allErrors: boolean): Ajv2020 {
    const ajv = new Ajv2020({
      strict: false,
      logger: false,
      validateSchema: false,
      ownProperties: true,
      addUsedSchema: false,
      inlineRefs: false,
      allErrors,
      code: { regExp: this.#regExp },
      formats: textFormats,
      validateFormats: this.#formats === 'assert',
    })
    ajv.addKeyword({ keyword: 'integerBounds', type: 'number', error: noMessage, code: this.#integerBounds })
    ajv.addKeyword({ keyword: 'steps', before: 'not', schemaType: 'number', code: this.#steps })
    // Those of the library count the characters of every text.
    for (const [keyword, operator] of lengthKeywords) {
      ajv.removeKeyword(keyword)
      ajv.addKeyword({
        keyword,
        type: 'string',
        schemaType: 'number',
        error: { message: '', params: ({ schema }) => _`{limit: ${schema}}` },
        code: (context) => lengthCode(context, operator),
      })
    }
    // The one of the library compares a value with each of a long list.
    ajv.removeKeyword('enum')
    ajv.addKeyword({
      keyword: 'enum',
      schemaType: 'array',
      errors: false,
      compile: (values: readonly unknown[]) => this.#listed(values),
    })
    // The one of the library divides doubles.
    ajv.removeKeyword('multipleOf')
    ajv.addKeyword({
      keyword: 'multipleOf',
      type: 'number',
      schemaType: 'number',
      error: { message: '', params: ({ schema }) => _`{multipleOf: ${schema}}` },
      code: this.#multipleOf,
    })
    // The one of the library compares each item with each other one.
    ajv.removeKeyword('uniqueItems')
    ajv.addKeyword({
      keyword: 'uniqueItems',
      type: 'array',
      schemaType: 'boolean',
      errors: false,
      compile: (mustDiffer: boolean) => (items: readonly unknown[], context?: DataValidationCxt) =>
        !mustDiffer || this.#areDifferent(items, context?.instancePath ?? ''),
    })
    return ajv
  }
}

/** Checks values against schemas of one document. Each schema is compiled on first use. */
export const createSchemaChecker = (
  definitions: ReadonlyMap<string, RequestSchema>,
  formats: 'assert' | 'annotate' = 'assert',
): SchemaChecker => {
  const keywords = new CountedKeywords(formats)
  const compiler = createSchemaCompiler(definitions, () => keywords.prepare(false), runnable)
  const compilerForAll = createSchemaCompiler(definitions, () => keywords.prepare(true), runnable)
  const check = (
    validate: Compiled,
    value: unknown,
    exact: ExactIntegers,
    max: number,
  ): readonly SchemaFault[] => {
    if (typeof validate !== 'function') return []
    keywords.exactNow = exact
    keywords.stepsLeft = max
    try {
      return validate(value) === true ? [] : faultsOf(validate.errors ?? [])
    } catch (error) {
      if (error instanceof TooManySteps) return tooLong
      throw error
    } finally {
      keywords.exactNow = noExactIntegers
    }
  }
  function* checkInPieces(
    schema: RequestSchema,
    value: unknown,
    exact: ExactIntegers,
    octets = 0,
  ): Pieces<readonly SchemaFault[]> {
    if (schema === true) return []
    if (schema === false) return [{ pointer: '', detail: 'is not allowed' }]
    const validate = yield* compiler.inPieces(schema)
    const faults = check(validate, value, exact, maxSteps(octets))
    if (faults.length === 0 || faults === tooLong || !isShort(value)) return faults
    const left = keywords.stepsLeft
    const validateForAll = yield* compilerForAll.inPieces(schema)
    const allFaults = check(validateForAll, value, exact, left)
    return allFaults === tooLong ? faults : allFaults
  }
  return {
    checkInPieces,
    check: (schema, value, exact, octets) => atOnce(checkInPieces(schema, value, exact, octets)),
    uncheckable: (schema) => {
      if (typeof schema === 'boolean') return undefined
      const validate = compiler.atOnce(schema)
      return typeof validate === 'function' ? undefined : validate.reason
    },
  }
}
