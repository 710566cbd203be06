import { createHash } from 'node:crypto'

/** The host of an authority as hosts are compared: lower case, without port and final dot (RFC 9110 §4.2.3). */
export const hostOf = (authority: string): string => {
  const end = authority.startsWith('[') ? authority.indexOf(']') + 1 : authority.indexOf(':')
  const host = end <= 0 ? authority : authority.slice(0, end)
  return (host.endsWith('.') ? host.slice(0, -1) : host).toLowerCase()
}

const wildcard = '*'

/**
 * Indexes values by their host patterns: a host, or `*.` and a suffix of one or more labels. The cost of a lookup depends on the labels of the host, not on the
 * number of patterns.
 */
export const createHostTable = <Value>(
  rows: readonly { readonly hosts: readonly string[]; readonly value: Value }[],
) => {
  const exact = new Map<string, Value[]>()
  const bySuffix = new Map<string, Value[]>()
  for (const { hosts, value } of rows) {
    for (const pattern of hosts) {
      const isWildcard = pattern.startsWith(wildcard)
      const values = isWildcard ? bySuffix : exact
      const key = isWildcard ? pattern.slice(1) : pattern
      values.set(key, [...(values.get(key) ?? []), value])
    }
  }
  return {
    /** The values for a host, those of the most specific pattern first: the host itself, then the longest wildcard. */
    matching: (host: string): readonly Value[] => {
      const matches = [...(exact.get(host) ?? [])]
      // No name has an empty label (RFC 1034 §3.1).
      if (host.startsWith('.') || host.includes('..')) return matches
      // A suffix begins with its dot, so that `*.shop.example` does not match `shop.example`.
      for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
        matches.push(...(bySuffix.get(host.slice(dot)) ?? []))
      }
      return matches
    },
  }
}

/** The URL with another host; scheme, port and path stay. */
export const urlAtHost = (url: string, host: string): string =>
  url.replace(/^(https?:\/\/)(?:\[[^\]]*\]|[^/:?#]*)/i, (_, scheme: string) => `${scheme}${host}`)

/** Scripts that get the rest of a path as PATH_INFO. */
const script = /\.(?:php\d?|phtml|cgi|pl|py)(?=\/)/g

/** Without these, servers differ at most in case and in the slash at the end. */
const severalReadings = /[^\w\-~!$&'()*+,=:@./]|\/\/|\.(?:\/|$)|\.(?:php\d?|phtml|cgi|pl|py)\//i

/** In ASCII, where servers have one reading: what `trimmed` changes. */
const untrimmed = /[A-Z.]|\/(?:\/|$)/

/** A path as a matcher compares it: merged slashes, none at the end, no dots or spaces at the end of a segment, in lower case. */
const trimmed = (path: string): string => {
  const text = path
    .replace(/(?<![ .])[ .]+(?=\/|$)/g, '')
    .replace(/\/{2,}/g, '/')
    .toLowerCase()
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text
}

/** All escapes undone but those of slashes. Text that is not UTF-8 stays as it is: it has no other reading. */
const decodedButSlashes = (path: string): string => {
  try {
    return path
      .split(/%2f/i)
      .map((part) => decodeURIComponent(part))
      .join('%2f')
  } catch {
    return path
  }
}

const withSlashes = (path: string): string => path.replace(/%2f/gi, '/')
const withoutParameters = (path: string): string => path.replace(/;[^/]*/g, '')

/** The path, and what remains of it where a script takes what follows its name. */
const withScripts = (path: string): readonly string[] => {
  const ends = [...path.matchAll(script)].map(({ index, 0: { length } }) => index + length)
  const [first, last] = [ends[0], ends.at(-1)]
  return first === undefined ? [path] : [path, path.slice(0, first), path.slice(0, last)]
}

const both = (paths: readonly string[], other: (path: string) => string): readonly string[] => [
  ...paths,
  ...paths.map(other),
]

/**
 * The forms in which servers may read a path, for comparisons with paths in `folded` form: some ignore case, merge slashes, cut `;params`,
 * take `%2F` for a slash, ignore dots and spaces at the end of a segment, or give a script what follows its name. At most twelve.
 */
export const pathReadings = (path: string): readonly string[] => {
  if (!severalReadings.test(path)) return [untrimmed.test(path) ? trimmed(path) : path]
  const decoded = decodedButSlashes(path)
  const readings = both(both([decoded], withSlashes), withoutParameters).map(trimmed)
  return [...new Set(readings.flatMap(withScripts))]
}

/** The path or pattern with which the readings of a path are compared. */
export const folded = (path: string): string => {
  if (severalReadings.test(path)) return trimmed(withoutParameters(withSlashes(decodedButSlashes(path))))
  return untrimmed.test(path) ? trimmed(path) : path
}

/** Path and query of a target; the query is '' where it has none, or an empty one. */
export const targetParts = (target: string): { readonly path: string; readonly query: string } => {
  const at = target.indexOf('?')
  return at === -1 ? { path: target, query: '' } : { path: target.slice(0, at), query: target.slice(at + 1) }
}

export const targetOf = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`)

/** Octets one to one: servers read what is not UTF-8 octet by octet. */
export const unescaped = (text: string): string =>
  text.includes('%')
    ? text.replace(/%([\dA-Fa-f]{2})/g, (_, octet: string) => String.fromCharCode(Number.parseInt(octet, 16)))
    : text

/** Without escapes, case and the `=` of an empty value, each of which makes no difference to some server. */
const foldedPair = (pair: string): string => {
  const text = pair.indexOf('=') === pair.length - 1 ? pair.slice(0, -1) : pair
  return unescaped(text.replaceAll('+', ' ')).toLowerCase()
}

/** To sort and decode all that fits into a URL would take milliseconds. */
const maxFoldedQuery = 1_024

/** Without order and empty parameters either; undefined where it is too long, however it is spelled. */
const foldedQuery = (query: string): string | undefined => {
  const pairs: string[] = []
  let length = 0
  for (const pair of query.split('&')) {
    // An escape has three octets.
    if (pair.length > 3 * maxFoldedQuery) return undefined
    const text = pair === '' ? '' : foldedPair(pair)
    if (text === '') continue
    length += text.length + 1
    if (length > maxFoldedQuery) return undefined
    pairs.push(text)
  }
  return pairs.sort().join('&')
}

/**
 * Short, and without the secrets that a query may have: it is a part of tags. No target has the mark, a fragment. All long queries of
 * a path have the same: a write to one of them reaches the others too.
 */
const digestOfQuery = (query: string | undefined): string => {
  if (query === undefined) return '#long'
  return query === '' ? '' : `#${createHash('sha256').update(query).digest('base64url').slice(0, 22)}`
}

/** The same for targets that servers read as one by case, slashes, `;params` and escapes, and for some others. */
export const foldedTarget = (target: string): string => {
  const { path, query } = targetParts(target)
  return targetOf(folded(path), query === '' ? '' : digestOfQuery(foldedQuery(query)))
}
