import type { FieldLines } from '../../http/fields.ts'
import { type NameSwap, noSwap } from '../name-swap.ts'
import { mapPath, mapQuery } from './target.ts'

/** Longer text is not taken for a URL: bounds what the content scanner holds back. */
export const maxUrlLength = 8192

/** RFC 3986 characters and a little more that WordPress leaves in its links; \uXXXX as it stands in ASCII-escaped JSON. */
const urlText = /^(?:[!#-;=?-[\]-\u00ff]|\\u[0-9a-fA-F]{4})*$/

/** Whether an octet may be in such a text outside an escape. */
export const isUrlOctet = (octet: number): boolean =>
  octet > 0x20 && octet !== 0x22 && octet !== 0x3c && octet !== 0x3e && octet !== 0x5c

/** Translates URLs below one REST root into URLs below another. */
export type RestUrls = {
  /** Only strings with one of these prefixes can be URLs below a root. */
  readonly roots: readonly string[]
  /** Whether no URL changes. */
  readonly isIdentity: boolean
  /** The translated URL, or undefined when `url` is not one below a root; takes JSON text between quotes, `\/` resolved. */
  map(url: string): string | undefined
  /** Same for a path-absolute reference (RFC 3986 §4.2), resolved against the root's own host. */
  mapPathReference(reference: string): string | undefined
}

/** Whether a root may be followed by this character: `/wp-json` is not the root of `/wp-jsonp`. */
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

/** Fields that describe the upstream's octets and are wrong for mapped ones (RFC 9110 §7.7, RFC 9530 §2). */
const octetFields = new Set(['content-length', 'content-md5', 'digest', 'content-digest', 'accept-ranges'])

/** Translates the targets of a Link field (RFC 8288 §3): text in angle brackets outside a quoted string. */
export const mapLinkValue = (value: string, urls: RestUrls): string => {
  let mapped = ''
  let at = 0
  while (at < value.length) {
    const open = nextTarget(value, at)
    const close = open === -1 ? -1 : value.indexOf('>', open)
    if (close === -1) break
    const target = value.slice(open + 1, close)
    mapped += value.slice(at, open + 1) + (urls.map(target) ?? target)
    at = close
  }
  return mapped + value.slice(at)
}

const nextTarget = (value: string, from: number): number => {
  let quoted = false
  for (let at = from; at < value.length; at++) {
    const character = value[at]
    if (quoted && character === '\\') at++
    else if (character === '"') quoted = !quoted
    else if (character === '<' && !quoted) return at
  }
  return -1
}

const mapReference = (value: string, urls: RestUrls): string =>
  urls.map(value) ?? (value.startsWith('//') ? undefined : urls.mapPathReference(value)) ?? value

const mapField = (name: string, value: string, urls: RestUrls): string => {
  if (name === 'link') return mapLinkValue(value, urls)
  return name === 'location' || name === 'content-location' ? mapReference(value, urls) : value
}

/** A strong validator stands for the same octets (RFC 9110 §8.8.1); mapped octets are only equivalent. */
const weakened = (entityTag: string): string => (entityTag.startsWith('W/') ? entityTag : `W/${entityTag}`)

/** The upstream's fields for the public side; `contentMapped` when the content is mapped too. */
export const mapFields = (lines: FieldLines, urls: RestUrls, contentMapped: boolean): string[] => {
  const mapped: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    const value = lines[i + 1] as string
    const lower = name.toLowerCase()
    if (!contentMapped) mapped.push(name, mapField(lower, value, urls))
    else if (lower === 'etag') mapped.push(name, weakened(value))
    else if (!octetFields.has(lower)) mapped.push(name, mapField(lower, value, urls))
  }
  return mapped
}
