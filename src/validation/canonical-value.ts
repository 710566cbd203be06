import type { ArgumentSchema } from '../contracts/row.ts'
import { encodeQueryText } from './percent.ts'
import { isContainer, isUnreadable, PhpArray, type PhpValue, type Unreadable } from './php-array.ts'

const inCsv = /^[^ \t\n\v\f\r,]+$/
const openBracket = '%5B'
const closeBracket = '%5D'

const scalarSpelling = (value: unknown): string =>
  typeof value === 'string' ? encodeQueryText(value) : encodeQueryText(String(value))

const key = (parent: string, index: string): string =>
  parent + openBracket + encodeQueryText(index) + closeBracket

/** May the list be written with commas? Only where a scalar cannot mean anything but a list. */
const takesCsv = (schema: ArgumentSchema | undefined): boolean => schema?.type === 'array'

const csvText = (list: readonly unknown[]): string | undefined => {
  let text = ''
  for (const item of list) {
    if (isContainer(item)) return undefined
    const spelled = String(item)
    if (!inCsv.test(spelled)) return undefined
    text += text === '' ? spelled : `,${spelled}`
  }
  return text
}

const listSpelling = (name: string, list: readonly unknown[], schema: ArgumentSchema | undefined): string => {
  const csv = takesCsv(schema) ? csvText(list) : undefined
  if (csv !== undefined) return `${name}=${encodeQueryText(csv)}`
  if (!list.some(isContainer)) {
    return list.map((item) => `${name}${openBracket}${closeBracket}=${scalarSpelling(item)}`).join('&')
  }
  return list.map((item, index) => spell(key(name, String(index)), item, schema?.items)).join('&')
}

const recordSpelling = (name: string, value: object, schema: ArgumentSchema | undefined): string => {
  const names = Object.keys(value).sort()
  if (names.length === 0) return `${name}=`
  const properties = schema?.properties
  return names
    .map((property) => {
      const known =
        properties !== undefined && Object.hasOwn(properties, property) ? properties[property] : undefined
      return spell(key(name, property), (value as Record<string, unknown>)[property], known)
    })
    .join('&')
}

/** `name=value` for a typed value, or several of them joined by `&`. `name` is already escaped. */
export function spell(name: string, value: unknown, schema: ArgumentSchema | undefined): string {
  if (Array.isArray(value)) return listSpelling(name, value, schema)
  return isContainer(value) ? recordSpelling(name, value, schema) : `${name}=${scalarSpelling(value)}`
}

/** How to write bytes that are no text, or undefined when they cannot be written. */
type SpellBytes = (value: Unreadable) => string | undefined

/** As they came, where nothing is known of what they mean. */
export const bytesKept: SpellBytes = (value) => value.description

/** Not at all. */
export const bytesRefused: SpellBytes = () => undefined

/** The spelling of a value whose meaning is unknown: every key and the order are kept. undefined: it cannot be spelled. */
export function spellVerbatim(name: string, value: PhpValue, spellBytes: SpellBytes): string | undefined {
  if (isUnreadable(value)) {
    const bytes = spellBytes(value)
    return bytes === undefined ? undefined : `${name}=${bytes}`
  }
  if (!(value instanceof PhpArray)) return `${name}=${encodeQueryText(value)}`
  const parts: string[] = []
  for (const [index, member] of value) {
    const part = spellVerbatim(key(name, index), member, spellBytes)
    if (part === undefined) return undefined
    parts.push(part)
  }
  return parts.join('&')
}
