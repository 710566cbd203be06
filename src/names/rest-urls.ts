import { type NameSwap, noSwap } from './name-swap.ts'
import { mapPath, mapQuery } from './target.ts'

/** Longer text is content, not a link: bounds what the content scanner may hold back. */
export const maxUrlLength = 8192

/** RFC 3986 characters and a little more that WordPress leaves in its links; \uXXXX as it stands in ASCII-escaped JSON. */
const urlText = /^(?:[!#-;=?-[\]-\u00ff]|\\u[0-9a-fA-F]{4})*$/

/** Whether an octet may stand in such a text by itself; the escapes are told apart by whoever reads them. */
export const isUrlOctet = (octet: number): boolean =>
  octet > 0x20 && octet !== 0x22 && octet !== 0x3c && octet !== 0x3e && octet !== 0x5c

/** Translates URLs below one REST root into URLs below another. */
export type RestUrls = {
  /** The text prefixes that make a string worth asking about. */
  readonly roots: readonly string[]
  /** Whether every URL would come out as it went in. */
  readonly isIdentity: boolean
  /** The translated URL, or undefined when `url` is not one below a root; takes JSON text between quotes, `\/` resolved. */
  map(url: string): string | undefined
  /** Same for a path-absolute reference (RFC 3986 §4.2), resolved against the root's own host. */
  mapPathReference(reference: string): string | undefined
}

/** Whether a root ends where a URL's path goes on, so that `/wp-json` is not found in `/wp-jsonp`. */
export const endsRoot = (after: string | undefined): boolean =>
  after === undefined || after === '/' || after === '?' || after === '#'

const pathOf = (root: string): string => {
  const from = root.indexOf('/', root.indexOf('://') + 3)
  return from === -1 ? '' : root.slice(from)
}

const splitAt = (text: string, mark: string): [string, string] => {
  const at = text.indexOf(mark)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}

const mapRest = (rest: string, swap: NameSwap): string => {
  const [beforeFragment, fragment] = splitAt(rest, '#')
  const [path, query] = splitAt(beforeFragment, '?')
  return mapPath(path, swap) + (query === '' ? '' : `?${mapQuery(query.slice(1), swap)}`) + fragment
}

/** Roots without a trailing slash; the first that fits wins. */
export const createRestUrls = (from: readonly string[], to: string, swap: NameSwap): RestUrls => {
  const paths = [...new Set(from.map(pathOf))].filter((path) => path !== '')
  const replaced = (text: string, roots: readonly string[], target: string): string | undefined => {
    const root = roots.find((prefix) => text.startsWith(prefix) && endsRoot(text[prefix.length]))
    if (root === undefined || text.length > maxUrlLength || !urlText.test(text)) return undefined
    return target + mapRest(text.slice(root.length), swap)
  }
  return {
    roots: from,
    isIdentity: swap === noSwap && from.every((root) => root === to),
    map: (url) => replaced(url, from, to),
    mapPathReference: (reference) => replaced(reference, paths, pathOf(to)),
  }
}
