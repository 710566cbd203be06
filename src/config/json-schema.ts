import * as z from 'zod'
import { isJsonObject } from '../http/json-text.ts'
import { closestName, type Path, type UnplacedFault, valueAt } from './fault.ts'
import { nearDuration, nearSize } from './quantities.ts'
import { durationHint, sizeHint } from './schema/leaves.ts'
import { exampleOf, foreignKey } from './schema/removed-keys.ts'
import { serviceShape } from './schema/service-shape.ts'
import { configShape } from './schema/shape.ts'

/** JSON Schema (2020-12) as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** A reference to the environment; the loader checks the value that it is replaced by. */
const reference = { type: 'string', pattern: String.raw`\$\{[A-Za-z_]` } as const

const isLeafWithRules = (schema: JsonSchema): boolean =>
  ['integer', 'number', 'boolean'].includes(String(schema['type'])) ||
  (schema['type'] === 'string' && (schema['enum'] !== undefined || schema['pattern'] !== undefined))

/** Allows a reference to the environment for every checked value, so that editors accept `'${PORT:-8080}'`. */
const withReferences = (schema: JsonSchema): JsonSchema => {
  if (isLeafWithRules(schema)) {
    const { default: fallback, description, ...rules } = schema
    return {
      ...(description === undefined ? {} : { description }),
      ...(fallback === undefined ? {} : { default: fallback }),
      anyOf: [rules, reference],
    }
  }
  const entries = Object.entries(schema).map(([keyword, value]) => {
    if (keyword === 'default' || keyword === 'propertyNames') return [keyword, value]
    if (Array.isArray(value))
      return [keyword, value.map((item) => (isJsonObject(item) ? withReferences(item) : item))]
    return [keyword, isJsonObject(value) ? withReferences(value) : value]
  })
  return Object.fromEntries(entries)
}

export const configJsonSchema = (): JsonSchema => {
  const { $schema, ...schema } = z.toJSONSchema(configShape, { io: 'input', unrepresentable: 'any' })
  return { $schema, title: 'Trellis configuration', ...withReferences(schema) }
}

const keywordSchema = (schema: JsonSchema, keyword: string): JsonSchema | undefined => {
  const value = schema[keyword]
  return isJsonObject(value) ? value : undefined
}

/** The alternative for the `contract` of the value. */
const alternativeFor = (schema: JsonSchema, value: unknown): JsonSchema => {
  const alternatives = schema['oneOf']
  if (!Array.isArray(alternatives) || !isJsonObject(value)) return schema
  const match = alternatives.filter(isJsonObject).find((alternative) => {
    const properties = keywordSchema(alternative, 'properties')
    return properties !== undefined && keywordSchema(properties, 'contract')?.['const'] === value['contract']
  })
  return match ?? schema
}

/** Keys that the schema allows at a path of a value; none where the path leaves the schema. */
const knownKeys = (schema: JsonSchema, value: unknown, path: readonly (string | number)[]): string[] => {
  const here = alternativeFor(schema, value)
  const [step, ...rest] = path
  const properties = keywordSchema(here, 'properties')
  if (step === undefined) return Object.keys(properties ?? {})
  const next =
    typeof step === 'number'
      ? keywordSchema(here, 'items')
      : (keywordSchema(properties ?? {}, step) ?? keywordSchema(here, 'additionalProperties'))
  if (next === undefined || typeof value !== 'object' || value === null) return []
  return knownKeys(next, (value as Record<string | number, unknown>)[step], rest)
}

const contractNames = serviceShape.options.map((option) => option.shape.contract.value)

type ZodIssue = z.core.$ZodIssue

const kindName = (value: unknown): string => {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a section'
  if (Number.isFinite(value) && !Number.isInteger(value)) return 'a number with a fraction'
  return (
    { string: 'a text', number: 'a number', boolean: 'true or false' }[typeof value as string] ?? 'nothing'
  )
}

const expectedOf = (issue: ZodIssue): string => {
  if (issue.code === 'invalid_union' && issue.discriminator !== undefined) {
    return `expected one of: ${contractNames.join(', ')}`
  }
  if (issue.code !== 'invalid_type') return issue.message
  if (issue.expected === 'object' || issue.expected === 'record')
    return 'expected a section with keys and values'
  if (issue.expected === 'array') return 'expected a list'
  return issue.message.startsWith('Invalid input') ? `expected a ${issue.expected}` : issue.message
}

const units: Readonly<Record<string, readonly [one: string, several: string]>> = {
  array: [' entry', ' entries'],
  string: [' character', ' characters'],
}

/** The bound that a list, a text or a number does not keep; a message of our own where there is one. */
const boundOf = (issue: Extract<ZodIssue, { code: 'too_small' | 'too_big' }>): string => {
  if (!issue.message.startsWith('Too')) return issue.message
  const [word, limit] =
    issue.code === 'too_small'
      ? (['at least', Number(issue.minimum)] as const)
      : (['at most', Number(issue.maximum)] as const)
  return `expected ${word} ${limit}${units[issue.origin]?.[limit === 1 ? 0 : 1] ?? ''}`
}

/** Messages for issues without a message of our own. Never contains the value: it may be a secret. */
const messageOf = (issue: ZodIssue, value: unknown): string => {
  if (value === undefined) return `is required: ${expectedOf(issue)}`
  if (value === null) return 'is empty: leave the key out, or give it a value'
  switch (issue.code) {
    case 'invalid_type':
      return `${expectedOf(issue)}, found ${kindName(value)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message
    case 'too_small':
    case 'too_big':
      return boundOf(issue)
    default:
      return expectedOf(issue)
  }
}

const allowedWords = (issue: ZodIssue): string[] => {
  if (issue.code === 'invalid_value') return issue.values.map(String)
  return issue.code === 'invalid_union' && issue.discriminator !== undefined ? [...contractNames] : []
}

/** What other programs, and `trellis init`, call a value. */
const otherWords: Readonly<Record<string, readonly string[]>> = {
  wordpress: ['site'],
  wp: ['site', 'wordpress'],
  swagger: ['openapi'],
  http: ['open'],
  rest: ['open'],
  warning: ['warn'],
  verbose: ['debug'],
  off: ['same', 'silent'],
  none: ['same', 'silent'],
  neutral: ['wordpress'],
}

const withSuggestion = (fault: UnplacedFault, name: unknown, words: readonly string[]): UnplacedFault => {
  const otherWord =
    typeof name === 'string' && Object.hasOwn(otherWords, name.toLowerCase())
      ? otherWords[name.toLowerCase()]?.find((word) => words.includes(word))
      : undefined
  const closest = typeof name === 'string' ? closestName(name, words) : undefined
  const suggestion = otherWord ?? closest
  return suggestion === undefined ? fault : { ...fault, suggestion }
}

/** A section has at most some twenty keys. */
const withList = (names: readonly string[]): string => (names.length === 0 ? '' : `: ${names.join(', ')}`)

/** Why a key is unknown, where its text shows it; or else the keys that may be meant. */
const unknownKey = (key: string, keys: readonly string[]): string => {
  if (key.startsWith('//')) return 'unknown key; a comment begins with "#"'
  if (key.includes(':')) return 'unknown key; the colon behind a key needs a space after it'
  const [section = '', ...inner] = key.split('.')
  if (inner.length > 0 && keys.includes(section))
    return `unknown key; write ${section}: { ${inner.join('.')}: ... }`
  return keys.length === 0 ? 'unknown key' : `unknown key; the keys here are${withList(keys)}`
}

/** Thousands may be milliseconds. */
const nearSeconds = (count: number): string | undefined => (count % 1000 === 0 ? undefined : `${count}s`)

/** The spelling of a size or duration that the value seems to mean. */
const nearQuantity = (message: string, value: unknown): string | undefined => {
  if (message.startsWith(durationHint) && /^[1-9]\d{0,8}$/.test(String(value)))
    return nearSeconds(Number(value))
  if (typeof value !== 'string') return undefined
  if (message === sizeHint) return nearSize(value)
  return message.startsWith(durationHint) ? nearDuration(value) : undefined
}

const plainAuthority = /^[A-Za-z0-9.-]{1,253}(?::\d{1,5})?$/

/** An origin without its scheme. */
const nearOrigin = (message: string, value: unknown): string | undefined =>
  message.startsWith('expected an origin') && typeof value === 'string' && plainAuthority.test(value)
    ? `http://${value}`
    : undefined

/** `$PORT` and `%PORT%`, as shells write variables. */
const shellVariable = /^(?:\$[A-Za-z_]\w*|%[A-Za-z_]\w*%)$/

/** What to write in place of a value of another kind. */
const remedyOf = (issue: ZodIssue, value: unknown, keysOf: () => readonly string[]): string | undefined => {
  const example =
    typeof value === 'string' || Array.isArray(value) ? exampleOf(issue.path as Path) : undefined
  if (example !== undefined || issue.code !== 'invalid_type' || value === undefined || value === null)
    return example
  if (typeof value === 'string' && shellVariable.test(value))
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
    return 'write "${NAME}" for an environment variable'
  if (issue.expected === 'array')
    return isJsonObject(value) ? 'begin each entry with "-"' : 'put it in brackets'
  if (issue.expected !== 'object' && issue.expected !== 'record') return undefined
  const keys = keysOf()
  return keys.length === 0 ? undefined : `its keys are${withList(keys)}`
}

/** Made once, by the first fault. */
let schemaOfShape: JsonSchema | undefined

/** Turns the issues of zod into faults: one for each unknown key, with a similar known name. */
export const shapeFaults = (issues: readonly ZodIssue[], value: unknown): UnplacedFault[] => {
  schemaOfShape ??= configJsonSchema()
  const schema = schemaOfShape
  const faults = issues.flatMap((issue): UnplacedFault[] => {
    const path = issue.path as Path
    if (issue.code === 'unrecognized_keys') {
      const keys = knownKeys(schema, value, path)
      return issue.keys.map((key): UnplacedFault => {
        const fault = { path: [...path, key], at: 'key' } as const
        const message = foreignKey(fault.path)
        if (message !== undefined) return { ...fault, message }
        const suggested = withSuggestion({ ...fault, message: 'unknown key' }, key, keys)
        return suggested.suggestion === undefined ? { ...fault, message: unknownKey(key, keys) } : suggested
      })
    }
    const foundValue = valueAt(value, path)
    const at = issue.code === 'invalid_key' || foundValue === undefined ? 'key' : 'value'
    const remedy = remedyOf(issue, foundValue, () => knownKeys(schema, value, path))
    const text = messageOf(issue, foundValue)
    const fault = { path, message: remedy === undefined ? text : `${text}; ${remedy}`, at } as const
    const suggestion = nearQuantity(fault.message, foundValue) ?? nearOrigin(fault.message, foundValue)
    if (suggestion !== undefined) return [{ ...fault, suggestion }]
    return [withSuggestion(fault, foundValue, allowedWords(issue))]
  })
  // A value of the wrong type fails the checks of the right one as well.
  const names = new Set<string>()
  return faults.filter(({ path }) => {
    const name = JSON.stringify(path)
    const isFirst = !names.has(name)
    names.add(name)
    return isFirst
  })
}
