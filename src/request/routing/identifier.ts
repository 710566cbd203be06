import { encodedSlash } from './character-set.ts'

/** How the identifiers of a parameter are spelled: `number` without leading zeros, `template` with its slash doubled. */
export type IdentifierForm = 'number' | 'template' | 'text'

/** The longest identifier that is looked at: a theme's directory and a slug stay far below. */
const maxLength = 512

/** Digits of the largest 64-bit integer. More digits are one and the same number to PHP, which must not have many keys. */
const maxDigits = 19

const everySlash = new RegExp(`[/${encodedSlash}]+`, 'g')

/** One slash between names, none around them. */
const withPlainSlashes = (value: string): string => {
  if (!value.includes('/') && !value.includes(encodedSlash)) return value
  const single = value.replace(everySlash, '/')
  return single.slice(single.startsWith('/') ? 1 : 0, single.endsWith('/') ? -1 : undefined)
}

/**
 * `theme/slug`, `theme//slug` and more slashes name one template: WordPress doubles the last slash itself, because
 * servers in front of it merge doubled ones. The doubled form is the identifier that it shows.
 */
const withDoubledSlash = (value: string): string => {
  const last = value.lastIndexOf('/')
  return last === -1 ? value : `${value.slice(0, last)}/${value.slice(last)}`
}

/** The one spelling of an identifier in a cleaned path; undefined when it is empty, `too-long` when nothing has it. */
export const canonicalIdentifier = (raw: string, form: IdentifierForm): string | undefined | 'too-long' => {
  if (raw.length > maxLength) return 'too-long'
  const value = withPlainSlashes(raw)
  if (value === '') return undefined
  if (form === 'template') return withDoubledSlash(value)
  if (form === 'text' || !/^\+?\d+$/.test(value)) return value
  const digits = value.replace(/^\+?0*(?=\d)/, '')
  return digits.length > maxDigits ? 'too-long' : digits
}
