import { endsRoot, isUrlOctet, maxUrlLength } from './rest-urls.ts'

/** A root as it stands behind the quote of a string, and what stands there instead. */
type Needle = { readonly octets: Buffer; readonly text: Buffer; readonly isEscaped: boolean }

const quote = 0x22
const backslash = 0x5c
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

/** What is written in both ways, or with another escape, is the scanner's to understand. */
type UrlEnd = number | 'odd' | 'none'

/** Position of the quote behind a URL that goes on at `from`. */
const urlEnd = (content: Buffer, from: number, isEscaped: boolean): UrlEnd => {
  const most = Math.min(content.length, from + maxUrlLength / 2)
  for (let at = from; at < most; at++) {
    const octet = content[at] as number
    if (octet === quote) return at
    if (octet === backslash) {
      if (!isEscaped || content[at + 1] !== slash) return 'odd'
      at++
    } else if (octet === slash && isEscaped) return 'odd'
    else if (!isUrlOctet(octet)) return 'none'
  }
  return 'odd'
}

const afterRoot = (content: Buffer, at: number): string | undefined => {
  const octet = content[content[at] === backslash ? at + 1 : at]
  return octet === quote || octet === undefined ? undefined : String.fromCharCode(octet)
}

const isSpace = (octet: number | undefined): boolean =>
  octet === 0x20 || octet === 0x0a || octet === 0x0d || octet === 0x09

/** The names of members are no links. */
const isKey = (content: Buffer, end: number): boolean => {
  let at = end + 1
  while (isSpace(content[at])) at++
  return content[at] === 0x3a
}

type Found = { readonly at: number; readonly needle: Needle }

/**
 * Puts one root in place of others in the URLs of a whole JSON text, as the scanner does where no name is exchanged: then
 * nothing but strings that begin with a root changes, and an unescaped quote in front of one opens a string. `undefined`:
 * there is something in it that only the scanner understands.
 */
export const createRootMapper = (
  roots: readonly string[],
  to: string,
): ((content: Buffer) => Buffer | undefined) => {
  const needles = needlesOf(roots, to)

  /** Whether that is a URL below the root, to be given another one. */
  const judged = (content: Buffer, at: number, { octets, isEscaped }: Needle): boolean | 'odd' => {
    if (content[at - 1] === backslash) return 'odd'
    const from = at + octets.length
    if (!endsRoot(afterRoot(content, from))) return false
    const end = urlEnd(content, from, isEscaped)
    if (end === 'odd') return 'odd'
    return end !== 'none' && !isKey(content, end)
  }

  const allOf = (content: Buffer, needle: Needle, found: Found[]): boolean => {
    const { octets } = needle
    for (let at = content.indexOf(octets); at !== -1; at = content.indexOf(octets, at + octets.length)) {
      const verdict = judged(content, at, needle)
      if (verdict === 'odd') return false
      if (verdict) found.push({ at, needle })
    }
    return true
  }

  return (content) => {
    if (content.includes(linkKey)) return undefined
    const found: Found[] = []
    for (const needle of needles) if (!allOf(content, needle, found)) return undefined
    if (found.length === 0) return content
    // The first root that fits wins: sorting keeps the order of those at one place.
    found.sort((one, other) => one.at - other.at)
    return replaced(
      content,
      found.filter(({ at }, index) => at !== found[index - 1]?.at),
    )
  }
}

/** One allocation of its own: it is often kept. */
const replaced = (content: Buffer, found: readonly Found[]): Buffer => {
  let length = content.length
  for (const { needle } of found) length += needle.text.length - needle.octets.length
  const whole = Buffer.allocUnsafeSlow(length)
  let from = 0
  let at = 0
  for (const { at: place, needle } of found) {
    at += content.copy(whole, at, from, place)
    at += needle.text.copy(whole, at)
    from = place + needle.octets.length
  }
  content.copy(whole, at, from)
  return whole
}
