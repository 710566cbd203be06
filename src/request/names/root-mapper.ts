import { backslash, isSpace, quote } from '../../http/json-text.ts'
import { endsRoot, isUrlOctet, maxUrlLength } from './urls.ts'

/** A root behind the quote that opens a string, and its replacement. */
type Needle = { readonly octets: Buffer; readonly text: Buffer; readonly isEscaped: boolean }

const slash = 0x2f

const escapedSlashes = (text: string): string => text.replaceAll('/', '\\/')

const needlesOf = (roots: readonly string[], to: string): readonly Needle[] =>
  roots.flatMap((root) => [
    { octets: Buffer.from(`"${root}`, 'latin1'), text: Buffer.from(`"${to}`, 'latin1'), isEscaped: false },
    {
      octets: Buffer.from(`"${escapedSlashes(root)}`, 'latin1'),
      text: Buffer.from(`"${escapedSlashes(to)}`, 'latin1'),
      isEscaped: true,
    },
  ])

/** `"Link": "<…>"` holds URLs in the middle of a string. */
const linkKey = Buffer.from('"Link"')

/** `unclear`: a URL with slashes in both forms or with another escape, which only the scanner reads. */
type UrlEnd = number | 'unclear' | 'none'

/** Position of the quote that closes the string of a URL, from a position inside the URL. */
const urlEnd = (content: Buffer, from: number, isEscaped: boolean): UrlEnd => {
  const most = Math.min(content.length, from + maxUrlLength / 2)
  for (let at = from; at < most; at++) {
    const octet = content[at] as number
    if (octet === quote) return at
    if (octet === backslash) {
      if (!isEscaped || content[at + 1] !== slash) return 'unclear'
      at++
    } else if (octet === slash && isEscaped) return 'unclear'
    else if (!isUrlOctet(octet)) return 'none'
  }
  return 'unclear'
}

const afterRoot = (content: Buffer, at: number): string | undefined => {
  const octet = content[content[at] === backslash ? at + 1 : at]
  return octet === quote || octet === undefined ? undefined : String.fromCharCode(octet)
}

/** Names of members are not URLs. */
const isKey = (content: Buffer, end: number): boolean => {
  let at = end + 1
  while (isSpace(content[at] ?? 0)) at++
  return content[at] === 0x3a
}

type Found = { readonly at: number; readonly needle: Needle }

/**
 * Replaces roots in the URLs of a complete JSON text, with the result of the scanner where no names are swapped: then only
 * strings that begin with a root change, and an unescaped quote in front of a root opens a string. Returns undefined where
 * only the scanner can read the text.
 */
export const createRootMapper = (
  roots: readonly string[],
  to: string,
): ((content: Buffer) => Buffer | undefined) => {
  const needles = needlesOf(roots, to)

  /** Whether the string is a URL below the root. */
  const isUrlBelow = (content: Buffer, at: number, { octets, isEscaped }: Needle): boolean | 'unclear' => {
    if (content[at - 1] === backslash) return 'unclear'
    const from = at + octets.length
    if (!endsRoot(afterRoot(content, from))) return false
    const end = urlEnd(content, from, isEscaped)
    if (end === 'unclear') return 'unclear'
    return end !== 'none' && !isKey(content, end)
  }

  const findAll = (content: Buffer, needle: Needle, found: Found[]): boolean => {
    const { octets } = needle
    for (let at = content.indexOf(octets); at !== -1; at = content.indexOf(octets, at + octets.length)) {
      const isUrl = isUrlBelow(content, at, needle)
      if (isUrl === 'unclear') return false
      if (isUrl) found.push({ at, needle })
    }
    return true
  }

  return (content) => {
    if (content.includes(linkKey)) return undefined
    const found: Found[] = []
    for (const needle of needles) if (!findAll(content, needle, found)) return undefined
    if (found.length === 0) return content
    // The first root wins: sorting keeps the order of those at one position.
    found.sort((one, other) => one.at - other.at)
    return replaced(
      content,
      found.filter(({ at }, index) => at !== found[index - 1]?.at),
    )
  }
}

/** Not from the pool: stored responses keep the buffer. */
const replaced = (content: Buffer, found: readonly Found[]): Buffer => {
  let length = content.length
  for (const { needle } of found) length += needle.text.length - needle.octets.length
  const whole = Buffer.allocUnsafeSlow(length)
  let from = 0
  let at = 0
  for (const { at: position, needle } of found) {
    at += content.copy(whole, at, from, position)
    at += needle.text.copy(whole, at)
    from = position + needle.octets.length
  }
  content.copy(whole, at, from)
  return whole
}
