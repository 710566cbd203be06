import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { endsRoot, mapReferences, maxUrlLength } from '../../http/headers/links.ts'
import {
  foldPhpName,
  listsNames,
  longestParameterName,
  parameterEnd,
  parameterStart,
} from '../arguments/php-query.ts'
import type { NamePair, NameTable } from './name-table.ts'

type Swap = ReadonlyMap<string, string>

/**
 * Each name of a pair maps to the other one, in both directions. If only neutral names were replaced, each route and parameter
 * would have a second public name, its WordPress spelling, that no row validates and no write invalidates.
 * Swapped, each upstream name has exactly one public name, and mapping twice is the identity.
 */
export type NameSwap = {
  readonly namespaces: Swap
  readonly keys: Swap
  readonly segments: Swap
}

const swapOf = (pairs: readonly NamePair[]): Swap => {
  const swap = new Map<string, string>()
  for (const { neutral, wordpress } of pairs) {
    if (neutral === wordpress || swap.has(neutral) || swap.has(wordpress)) {
      throw new Error(
        `The name pair ${neutral}, ${wordpress} repeats a name; mapping back would be ambiguous.`,
      )
    }
    swap.set(neutral, wordpress).set(wordpress, neutral)
  }
  return swap
}

/** Indexes the table. Throws at start when a name occurs in two pairs. */
export const createNameSwap = (table: NameTable): NameSwap => ({
  namespaces: swapOf(table.namespaces),
  keys: swapOf(table.keys),
  segments: swapOf(table.segments),
})

/** Swaps nothing: for `names: same`. */
export const noSwap: NameSwap = { namespaces: new Map(), keys: new Map(), segments: new Map() }

/** RFC 3986 characters and a little more that WordPress leaves in its links; \uXXXX as it stands in ASCII-escaped JSON. */
const urlText = /^(?:[!#-;=?-[\]-\u00ff]|\\u[0-9a-fA-F]{4})*$/

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

/** Translates URLs below one REST root into URLs below another. Roots without a trailing slash; the first that fits wins. */
export const createRestUrls = (from: readonly string[], to: string, swap: NameSwap) => {
  const paths = [...new Set(from.map(pathOf))].filter((path) => path !== '')
  const replaced = (text: string, roots: readonly string[], target: string): string | undefined => {
    const root = roots.find((prefix) => text.startsWith(prefix) && endsRoot(text[prefix.length]))
    if (root === undefined || text.length > maxUrlLength || !urlText.test(text)) return undefined
    return target + mapRest(text.slice(root.length), swap)
  }
  return {
    /** Only strings with one of these prefixes can be URLs below a root. */
    roots: from,
    /** Whether no URL changes. */
    isIdentity: swap === noSwap && from.every((root) => root === to),
    /** The translated URL, or undefined when `url` is not one below a root; takes JSON text between quotes, `\/` resolved. */
    map: (url: string) => replaced(url, from, to),
    /** Same for a path-absolute reference (RFC 3986 §4.2), resolved against the root's own host. */
    mapPathReference: (reference: string) => replaced(reference, paths, pathOf(to)),
  }
}

export type RestUrls = ReturnType<typeof createRestUrls>

/** Fields that describe the upstream's octets and are wrong for mapped ones (RFC 9110 §7.7, RFC 9530 §2). */
const octetFields = new Set(['content-length', 'content-md5', 'digest', 'content-digest', 'accept-ranges'])

const mapField = (name: string, value: string, urls: RestUrls): string =>
  mapReferences(
    name,
    value,
    (text) => urls.map(text) ?? (text.startsWith('//') ? undefined : urls.mapPathReference(text)),
  )

/** A strong validator stands for the same octets (RFC 9110 §8.8.1); mapped octets are only equivalent. */
const weakened = (entityTag: string): string => (entityTag.startsWith('W/') ? entityTag : `W/${entityTag}`)

/** The upstream's fields for the public side; `contentMapped` when the content is mapped too. */
export const mapFields = (lines: HeaderLines, urls: RestUrls, contentMapped: boolean): string[] => {
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

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The segment as WordPress compares it: decoded, without regard to case. */
const compared = (segment: string): string =>
  (segment.includes('%') ? decoded(segment) : segment).toLowerCase()

const segmentEnd = (path: string, from: number): number => {
  const slash = path.indexOf('/', from)
  return slash === -1 ? path.length : slash
}

const skipSlashes = (path: string, from: number): number => {
  let at = from
  while (path[at] === '/') at++
  return at
}

/**
 * Swaps namespace and collection segment of a path relative to the REST root, e.g. `/site/v2/posts/5`.
 * Also for the patterns of a discovery document, whose namespaces are literal.
 */
export const mapPath = (path: string, swap: NameSwap): string => {
  const vendorAt = skipSlashes(path, 0)
  const vendorEnd = segmentEnd(path, vendorAt)
  const versionAt = skipSlashes(path, vendorEnd)
  const versionEnd = segmentEnd(path, versionAt)
  const namespace = `${compared(path.slice(vendorAt, vendorEnd))}/${compared(path.slice(versionAt, versionEnd))}`
  const mapped = swap.namespaces.get(namespace)
  if (mapped === undefined) return path
  const collectionAt = skipSlashes(path, versionEnd)
  const collectionEnd = segmentEnd(path, collectionAt)
  const collection = path.slice(collectionAt, collectionEnd)
  return (
    path.slice(0, vendorAt) +
    mapped +
    path.slice(versionEnd, collectionAt) +
    (swap.segments.get(compared(collection)) ?? collection) +
    path.slice(collectionEnd)
  )
}

const formDecoded = (text: string): string =>
  text.includes('+') || text.includes('%') ? decoded(text.replaceAll('+', ' ')) : text

/** `meta[site_id]` contains two names. A swapped name is encoded again, so that it never becomes a second parameter. */
const mapName = (raw: string, swap: NameSwap): string => {
  // The validator refuses such names.
  if (raw.length > longestParameterName) return raw
  const parts = formDecoded(raw).split(/([[\]])/)
  const mapped = parts.map((part, i) => swap.keys.get(i === 0 ? foldPhpName(part) : part))
  if (mapped.every((part) => part === undefined)) return raw
  const brackets = raw.includes('[')
  return parts
    .map((part, i) => (brackets && i % 2 === 1 ? part : encodeURIComponent(mapped[i] ?? part)))
    .join('')
}

/** A comma- or space-separated list of dotted names, as `_fields` and `_embed` take it. */
const mapNameList = (raw: string, swap: NameSwap): string => {
  const value = formDecoded(raw)
  const mapped = value.replace(/[^,.\s]+/g, (part) => swap.keys.get(part) ?? part)
  return mapped === value ? raw : encodeURIComponent(mapped).replaceAll('%2C', ',')
}

const mapNamespaceValue = (raw: string, swap: NameSwap): string => {
  const mapped = swap.namespaces.get(formDecoded(raw))
  if (mapped === undefined) return raw
  return raw.includes('/') ? mapped : encodeURIComponent(mapped)
}

const mapValue = (name: string, raw: string, swap: NameSwap): string => {
  if (listsNames(name)) return mapNameList(raw, swap)
  return name === 'namespace' ? mapNamespaceValue(raw, swap) : raw
}

const mapParameter = (parameter: string, swap: NameSwap): string => {
  const equals = parameter.indexOf('=')
  if (equals === -1) return mapName(parameter, swap)
  const name = parameter.slice(0, equals)
  const value = parameter.slice(equals + 1)
  return `${mapName(name, swap)}=${mapValue(formDecoded(name), value, swap)}`
}

/** Swaps parameter names, and names inside the values of `_fields`, `_embed` and `namespace`. Also for form content. */
export const mapQuery = (query: string, swap: NameSwap): string => {
  if (query === '' || swap.keys.size === 0) return query
  let mapped = ''
  let copied = 0
  let start = parameterStart(query, 0)
  while (start < query.length) {
    const end = parameterEnd(query, start)
    const parameter = query.slice(start, end)
    const swapped = mapParameter(parameter, swap)
    if (swapped !== parameter) {
      mapped += query.slice(copied, start) + swapped
      copied = end
    }
    start = parameterStart(query, end)
  }
  return copied === 0 ? query : mapped + query.slice(copied)
}
