import { longestParameterName, parameterEnd, parameterStart } from '../../http/php-names.ts'
import type { NameSwap } from '../name-swap.ts'

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

/** PHP reads `site.id` and `site id` as `site_id`, drops leading spaces and cuts at a NUL. */
const folded = (name: string): string => {
  const nul = name.indexOf('\0')
  return (nul === -1 ? name : name.slice(0, nul)).replace(/^ +/, '').replace(/[ .]/g, '_')
}

const formDecoded = (text: string): string =>
  text.includes('+') || text.includes('%') ? decoded(text.replaceAll('+', ' ')) : text

/** `meta[site_id]` contains two names. A swapped name is encoded again, so that it never becomes a second parameter. */
const mapName = (raw: string, swap: NameSwap): string => {
  // The validator refuses such names.
  if (raw.length > longestParameterName) return raw
  const parts = formDecoded(raw).split(/([[\]])/)
  const mapped = parts.map((part, i) => swap.keys.get(i === 0 ? folded(part) : part))
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
  if (name.startsWith('_fields') || name.startsWith('_embed')) return mapNameList(raw, swap)
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
