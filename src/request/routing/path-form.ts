import type { PathRefusal } from '../../contracts/finding.ts'

/** Stands in a cleaned path for `%2F`: text inside an identifier, but never a separator. No cleaned path has it otherwise. */
export const encodedSlash = '\u0080'

/** Stands for a byte that is not ASCII, where an upstream reads a path with its escapes undone. */
const foreignByte = '\u0081'

/**
 * A path in the one form that patterns are matched against: ASCII only, percent-decoded except for `%25` and for what is
 * not ASCII, `%2F` as a character of its own. Spelling it again (`spelled`) and cleaning the result gives the same text.
 */
export type CleanedPath =
  | { readonly kind: 'cleaned'; readonly text: string }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

/** How much to decode: everything, as WordPress does, or only what RFC 3986 §6.2.2.2 calls equivalent. */
export type Decoding = 'all' | 'unreserved'

const refused = (reason: PathRefusal): CleanedPath => ({ kind: 'refused', reason })

/** Nothing to decode and nothing to refuse but dot segments. */
const plain = /^\/[\w\-.~!$&'()*+,;=:@/]*$/
const notPrintable = /[^!-~]/
const badEscape = /%(?![0-9A-Fa-f]{2})/
const controlEscape = /%(?:[01][0-9A-Fa-f]|7[Ff])/
const backslash = /\\|%5[Cc]/
const escapes = /(?:%[0-9A-Fa-f]{2})+/g
const unreserved = /[\w\-.~]/
/** A separator in an escape counts too: decoded once more, the dots are a segment. */
const dotSegment = /(?:^|[/\u0080]|%2F)\.\.?(?:[/\u0080]|%2F|$)/

/** Why the raw spelling is refused. `#` and `?` never belong to a path (RFC 9112 §3.2.1). */
const refusalOfSpelling = (raw: string): PathRefusal | undefined => {
  const odd = notPrintable.exec(raw)?.[0]
  if (odd !== undefined) return odd < ' ' || odd === '\u007f' ? 'control-character' : 'bad-encoding'
  if (!raw.startsWith('/')) return 'not-absolute'
  if (/[#?]/.test(raw) || badEscape.test(raw)) return 'bad-encoding'
  if (controlEscape.test(raw)) return 'control-character'
  if (backslash.test(raw)) return 'backslash'
  return undefined
}

/** Upper-case escapes of the UTF-8 bytes; `encodeURIComponent` leaves some ASCII alone. */
const escaped = (character: string): string =>
  character < '\u0080'
    ? `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
    : encodeURIComponent(character)

const decodedCharacter = (character: string, decoding: Decoding): string => {
  if (decoding === 'unreserved') return unreserved.test(character) ? character : escaped(character)
  if (character === '/') return encodedSlash
  return character === '%' || character > '~' ? escaped(character) : character
}

/** Decodes each run of escapes, or undefined when one is not UTF-8: `decodeURIComponent` refuses overlong forms and surrogates. */
const decoded = (raw: string, decoding: Decoding): string | undefined => {
  try {
    return raw.replace(escapes, (run) =>
      Array.from(decodeURIComponent(run), (character) => decodedCharacter(character, decoding)).join(''),
    )
  } catch (error) {
    if (error instanceof URIError) return undefined
    throw error
  }
}

/** Cleans the spelling of a path; slashes are left as they are. */
export const cleanSpelling = (raw: string, decoding: Decoding): CleanedPath => {
  let text: string | undefined = raw
  if (!plain.test(raw)) {
    const reason = refusalOfSpelling(raw)
    if (reason !== undefined) return refused(reason)
    text = decoded(raw, decoding)
    if (text === undefined) return refused('bad-encoding')
  }
  return dotSegment.test(text) ? refused('dot-segment') : { kind: 'cleaned', text }
}

/** Merges slashes and drops the last one: the same route to WordPress. */
export const withSingleSlashes = (text: string): string => {
  const single = text.includes('//') ? text.replace(/\/{2,}/g, '/') : text
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single
}

/** A cleaned path as it is sent: what RFC 3986 §3.3 does not allow in a path is escaped again. */
export const spelled = (text: string): string =>
  plain.test(text) ? text : text.replace(/[^\w\-.~!$&'()*+,;=:@/%]/g, escaped)

/** A cleaned path as a matcher of bytes reads it once all escapes are decoded. */
export const withForeignBytes = (text: string): string =>
  text.includes('%') ? text.replace(/%[89A-F][0-9A-F]/g, foreignByte) : text

/** The value of a part of a cleaned path, decoded. */
export const decodedValue = (text: string): string => (text.includes('%') ? decodeURIComponent(text) : text)

/** How the identifiers of a parameter are spelled: `number` without leading zeros, `template` with its slash doubled. */
export type IdentifierForm = 'number' | 'template' | 'text'

/** Far above a theme's directory with a slug. */
const maxLength = 512

/** Digits of the largest 64-bit integer. To PHP all longer numbers are the same one, which must not get many cache keys. */
const maxDigits = 19

const everySlash = new RegExp(`[/${encodedSlash}]+`, 'g')

/** Merges slashes between names and drops those around them. */
const withPlainSlashes = (value: string): string => {
  if (!value.includes('/') && !value.includes(encodedSlash)) return value
  const single = value.replace(everySlash, '/')
  return single.slice(single.startsWith('/') ? 1 : 0, single.endsWith('/') ? -1 : undefined)
}

/**
 * `theme/slug`, `theme//slug` and more slashes name one template: servers in front of WordPress merge doubled slashes, so it
 * doubles the last one itself. Its responses show the doubled form.
 */
const withDoubledSlash = (value: string): string => {
  const last = value.lastIndexOf('/')
  return last === -1 ? value : `${value.slice(0, last)}/${value.slice(last)}`
}

/** The one spelling of an identifier in a cleaned path; undefined when it is empty, `too-long` when no resource can have it. */
export const canonicalIdentifier = (raw: string, form: IdentifierForm): string | undefined | 'too-long' => {
  if (raw.length > maxLength) return 'too-long'
  const value = withPlainSlashes(raw)
  if (value === '') return undefined
  if (form === 'template') return withDoubledSlash(value)
  if (form === 'text' || !/^\+?\d+$/.test(value)) return value
  const digits = value.replace(/^\+?0*(?=\d)/, '')
  return digits.length > maxDigits ? 'too-long' : digits
}
