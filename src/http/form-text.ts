import { memoizeLast } from './memo.ts'

/**
 * Text that is not UTF-8, with its escaped bytes as the description; or, without a description, brackets nested too deep or an
 * index too large to decode exactly. No type accepts it, so a declared parameter with it is refused.
 */
export type Unreadable = symbol

export const isUnreadable = (value: unknown): value is Unreadable => typeof value === 'symbol'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const loneSurrogate = /\p{Surrogate}/u
const notAscii = /[\u0080-\uffff]/

/** Value of one hexadecimal digit, or -1. */
const hexDigit = (code: number | undefined): number => {
  if (code === undefined) return -1
  if (code >= 48 && code <= 57) return code - 48
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}

/** No query is longer; forms are never spelled again. */
const maxKeptBytes = 64 * 1024

const digits = Buffer.from('0123456789ABCDEF')
const percent = 0x25
const clear = new Uint8Array(256)
for (let byte = 0; byte < 128; byte++) if (/[\w.,:~-]/.test(String.fromCharCode(byte))) clear[byte] = 1

/** Bytes in the spelling that `encodeQueryText` gives to text; not by a pattern, which takes ten times as long. */
const escapeBytes = (bytes: Buffer): string => {
  const text = Buffer.allocUnsafe(3 * bytes.length)
  let at = 0
  for (const byte of bytes) {
    if (clear[byte] === 1) {
      text[at++] = byte
      continue
    }
    text[at++] = percent
    text[at++] = digits[byte >> 4] as number
    text[at++] = digits[byte & 15] as number
  }
  return text.toString('latin1', 0, at)
}

/** Byte by byte: `%zz` and a lone `%` stay. */
const decodeLeniently = (text: string): string | Unreadable => {
  const source = Buffer.from(text, 'utf8')
  const bytes = Buffer.alloc(source.length)
  let length = 0
  for (let i = 0; i < source.length; i++) {
    const high = source[i] === 37 ? hexDigit(source[i + 1]) : -1
    const low = high < 0 ? -1 : hexDigit(source[i + 2])
    if (low < 0) bytes[length++] = source[i] as number
    else {
      bytes[length++] = high * 16 + low
      i += 2
    }
  }
  const read = bytes.subarray(0, length)
  try {
    return utf8.decode(read)
  } catch {
    return read.length > maxKeptBytes ? Symbol() : Symbol(escapeBytes(read))
  }
}

/**
 * Decodes a name or value of a query or form: `+` is a space, broken escapes stay, bytes that are not UTF-8 make it
 * unreadable.
 */
export const decodeFormText = (raw: string): string | Unreadable => {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  if (spaced.includes('%')) {
    try {
      return decodeURIComponent(spaced)
    } catch {
      return decodeLeniently(spaced)
    }
  }
  return notAscii.test(spaced) && loneSurrogate.test(spaced) ? Symbol() : spaced
}

const noParameters: readonly (readonly [name: string, value: string])[] = []

/** Name and value of each parameter of a query (without `?`), decoded: once for all that ask about it in a row. */
export const queryParameters = memoizeLast((query) =>
  query === '' ? noParameters : [...new URLSearchParams(query)],
)

const plain = /^[\w.,:~-]*$/
const alwaysClear = /%(?:2C|3A)/g

/**
 * The one spelling of a text in a canonical query: everything but unreserved characters, comma and colon is escaped.
 */
export const encodeQueryText = (text: string): string => {
  if (plain.test(text)) return text
  const escaped = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return escaped.replace(alwaysClear, (code) => (code === '%2C' ? ',' : ':'))
}

/** Matches names against a list of names and `prefix*` patterns. */
export const trackingMatcher = (names: readonly string[]): ((name: string) => boolean) => {
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}
