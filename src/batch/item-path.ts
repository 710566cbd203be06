/** Where an item wants to go: a path and query of this service, or why not, as WordPress says it. */
export type ItemTarget =
  | { readonly kind: 'target'; readonly path: string; readonly query: string }
  | { readonly kind: 'unparsable' }
  | { readonly kind: 'no-route' }

/**
 * Parameters that mean something on a request of its own and nothing inside a batch, where WordPress hands the item's
 * query to the route only. Sent as a request of its own the item must not have them.
 */
const inertParameters: ReadonlySet<string> = new Set([
  '_method',
  '_envelope',
  '_embed',
  '_jsonp',
  '_pretty',
  '_locale',
  '_wpnonce',
  'rest_route',
])

/** Octet by octet as PHP does it: text that is no UTF-8 must not hide a name. */
const decoded = (text: string): string =>
  text
    .replaceAll('+', ' ')
    .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** The names PHP may make of a query name: spaces before it and a NUL with the rest dropped, other characters folded, cut at a bracket or not. */
const phpNames = (raw: string): string[] => {
  const name = (decoded(raw).split('\0', 1)[0] ?? '').replace(/^ +/, '')
  const base = name.slice(0, 1) + (name.slice(1).split('[', 1)[0] ?? '')
  return [name, base].map((text) => text.replaceAll(/[ .[]/g, '_'))
}

const isInert = (pair: string): boolean =>
  phpNames(pair.split('=', 1)[0] ?? '').some((name) => inertParameters.has(name))

const withoutInert = (query: string): string =>
  query
    .split('&')
    .filter((pair) => pair !== '' && !isInert(pair))
    .join('&')

/** Characters that a request target cannot have are percent-encoded; control characters become `_` as PHP's parse_url makes them. */
const targetText = (text: string): string =>
  text
    .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    .replaceAll(/[\x00-\x1f\x7f]/g, '_')
    .replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent)
    .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent)

/** `scheme://host:port` or `//host:port` in front of a path; WordPress ignores who is named there, and so nobody is asked. */
const authorityPattern = /^(?:[a-z][a-z0-9+.-]*:)?\/\/([^/?#]*)/i

/** PHP's parse_url gives up on an empty host and on a port that is not one. */
const isAuthority = (authority: string): boolean => {
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  const port = /:(\d*)$/.exec(host)
  return host !== '' && !host.startsWith(':') && (port === null || Number(port[1]) <= 65_535)
}

/**
 * Can a route be meant? Escapes and dot segments never match one inside a batch, and elsewhere could mean another path. An empty
 * segment may stand within an identifier, and nowhere else: the row shows which.
 */
const isPlainPath = (path: string): boolean =>
  /^\/(?!\/)/.test(path) && !/[%\\]|\/\.{1,2}(?:\/|$)/.test(path) && (path === '/' || !path.endsWith('/'))

/** Understands an item's `path` as WordPress does: relative to the service's root, host ignored, fragment dropped. */
export const parseItemPath = (text: string): ItemTarget => {
  const authority = authorityPattern.exec(text)
  if (authority !== null && !isAuthority(authority[1] ?? '')) return { kind: 'unparsable' }
  const relative = (authority === null ? text : text.slice(authority[0].length)).split('#', 1)[0] ?? ''
  const mark = relative.indexOf('?')
  const path = targetText(mark === -1 ? relative : relative.slice(0, mark))
  if (!isPlainPath(path)) return { kind: 'no-route' }
  const query = mark === -1 ? '' : withoutInert(targetText(relative.slice(mark + 1)))
  return { kind: 'target', path, query }
}
