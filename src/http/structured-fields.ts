/**
 * Structured field values (RFC 9651), as far as the gateway reads them: dictionaries (targeted cache fields, RFC 9213)
 * and lists (Cache-Groups, RFC 9875). Anything that does not parse as a whole counts as absent.
 */
type BareItem =
  | { readonly type: 'integer' | 'decimal' | 'date'; readonly value: number }
  | { readonly type: 'string' | 'token' | 'binary' | 'display'; readonly value: string }
  | { readonly type: 'boolean'; readonly value: boolean }

/** One member: an item or an inner list. Parameters are checked for syntax and then dropped. */
export type Member =
  | { readonly kind: 'item'; readonly item: BareItem }
  | { readonly kind: 'inner-list'; readonly items: readonly BareItem[] }

type Cursor = { readonly text: string; at: number }

class NotStructured extends Error {}

const fail = (): never => {
  throw new NotStructured()
}

/** Sticky patterns without nested repetition: each is linear. */
const take = (cursor: Cursor, pattern: RegExp): string | undefined => {
  pattern.lastIndex = cursor.at
  const text = pattern.exec(cursor.text)?.[0]
  if (text !== undefined) cursor.at += text.length
  return text
}

const spaces = / */y
const optionalWhitespace = /[ \t]*/y

/** Invalid UTF-8 makes the field invalid (§4.2.10). */
const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return fail()
  }
}

/**
 * The first pattern that fits counts. Sixteen digits, or a decimal with more than twelve before the point, are errors and not
 * roundings (§4.2.4).
 */
const bareItems: readonly (readonly [pattern: RegExp, read: (text: string) => BareItem])[] = [
  [
    /"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y,
    (text) => ({ type: 'string', value: text.slice(1, -1).replace(/\\(["\\])/g, '$1') }),
  ],
  [/-?\d{1,15}(?![\d.])/y, (text) => ({ type: 'integer', value: Number(text) })],
  [/-?\d{1,12}\.\d{1,3}(?![\d.])/y, (text) => ({ type: 'decimal', value: Number(text) })],
  [/[A-Za-z*][-A-Za-z0-9!#$%&'*+.^_`|~:/]*/y, (value) => ({ type: 'token', value })],
  [/\?[01]/y, (text) => ({ type: 'boolean', value: text === '?1' })],
  [/:[A-Za-z0-9+/]*={0,2}:/y, (value) => ({ type: 'binary', value })],
  [
    /%"(?:[\x20\x21\x23-\x24\x26-\x7e]|%[0-9a-f]{2})*"/y,
    (text) => ({ type: 'display', value: percentDecoded(text.slice(2, -1)) }),
  ],
  [/@-?\d{1,15}(?![\d.])/y, (text) => ({ type: 'date', value: Number(text.slice(1)) })],
]

const readBareItem = (cursor: Cursor): BareItem => {
  for (const [pattern, read] of bareItems) {
    const text = take(cursor, pattern)
    if (text !== undefined) return read(text)
  }
  return fail()
}

const readKey = (cursor: Cursor): string => take(cursor, /[a-z*][-a-z0-9_.*]*/y) ?? fail()

const skipParameters = (cursor: Cursor): void => {
  while (cursor.text[cursor.at] === ';') {
    cursor.at += 1
    take(cursor, spaces)
    readKey(cursor)
    if (cursor.text[cursor.at] === '=') {
      cursor.at += 1
      readBareItem(cursor)
    }
  }
}

const readInnerList = (cursor: Cursor): Member => {
  cursor.at += 1
  const items: BareItem[] = []
  for (;;) {
    take(cursor, spaces)
    if (cursor.text[cursor.at] === ')') break
    items.push(readBareItem(cursor))
    skipParameters(cursor)
    if (!/[ )]/.test(cursor.text[cursor.at] ?? '')) fail()
  }
  cursor.at += 1
  skipParameters(cursor)
  return { kind: 'inner-list', items }
}

const readMember = (cursor: Cursor): Member => {
  if (cursor.text[cursor.at] === '(') return readInnerList(cursor)
  const item = readBareItem(cursor)
  skipParameters(cursor)
  return { kind: 'item', item }
}

const readDictionaryMember = (cursor: Cursor): readonly [string, Member] => {
  const key = readKey(cursor)
  if (cursor.text[cursor.at] === '=') {
    cursor.at += 1
    return [key, readMember(cursor)]
  }
  skipParameters(cursor)
  return [key, { kind: 'item', item: { type: 'boolean', value: true } }]
}

/** Members separated by commas; a trailing comma is an error (§4.2.1, §4.2.2). */
const readMembers = <T>(text: string, readOne: (cursor: Cursor) => T): readonly T[] | undefined => {
  const cursor: Cursor = { text, at: 0 }
  const members: T[] = []
  try {
    take(cursor, spaces)
    while (cursor.at < text.length) {
      members.push(readOne(cursor))
      take(cursor, optionalWhitespace)
      if (cursor.at >= text.length) return members
      if (text[cursor.at] !== ',') fail()
      cursor.at += 1
      take(cursor, optionalWhitespace)
      if (cursor.at >= text.length) fail()
    }
    return members
  } catch (error) {
    if (error instanceof NotStructured) return undefined
    throw error
  }
}

/** A dictionary, or undefined when the text is not one; the last of equal keys wins. */
export const parseDictionary = (text: string): ReadonlyMap<string, Member> | undefined => {
  const members = readMembers(text, readDictionaryMember)
  return members === undefined ? undefined : new Map(members)
}

/** A list, or undefined when the text is not one. */
export const parseList = (text: string): readonly Member[] | undefined => readMembers(text, readMember)
