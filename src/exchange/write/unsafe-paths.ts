import { headerValue } from '../../http/headers/header-lines.ts'
import type { WriteResponse } from '../../service/tagger.ts'

/** An unsafe request, with its URL at the upstream. */
export type UnsafeRequest = {
  /** Path and query as in the cache key. */
  readonly target: string
  /** The absolute URL of the request for the upstream; only URLs of its origin are invalidated. */
  readonly url: string
  /** Absolute URLs of the service, for clients and at the upstream; `url` begins with one. */
  readonly roots: readonly string[]
  /** The one for clients; it ends with `mount`. */
  readonly publicRoot: string
  readonly mount: string
  /** Path of the URL that a MOVE or COPY writes to (RFC 4918 §10.3), with the host by which its client knows the service. */
  readonly destination?: string | undefined
  /** An error response invalidates nothing (RFC 9111 §4.4). Otherwise a 5xx counts as an unknown outcome. */
  readonly sparedByServerError?: boolean
}

/** A path behind a root or a mount, which may be empty, as a target. */
export const asTarget = (path: string): string => (path.startsWith('/') ? path : `/${path}`)

const withoutScheme = (url: string): string => url.replace(/^https?:/, '')

/**
 * Path and query after each of the roots that the URL begins with. Other origins must not invalidate this one (RFC 9111 §4.4); http and
 * https make no difference, since many upstreams do not know the scheme that their clients use.
 */
const behind = (roots: readonly string[], url: URL): readonly string[] => {
  url.hash = ''
  const text = withoutScheme(url.href)
  return roots
    .map(withoutScheme)
    .filter((root) => text === root || text.startsWith(`${root}/`) || text.startsWith(`${root}?`))
    .map((root) => asTarget(text.slice(root.length)))
}

/** Header values are octets, one to a character. Upstreams write names of pages as they are, in UTF-8. */
const asWritten = (value: string): string =>
  /[^\x20-\x7e]/.test(value) ? Buffer.from(value, 'latin1').toString() : value

/**
 * The target in a Location or Content-Location, if it belongs to this service; several where the URL may be one of the upstream or one
 * of clients. With a query also as it was written: a URL object escapes quotation marks, clients may not.
 */
export const namedTargets = (
  value: string | undefined,
  { url, roots }: Pick<UnsafeRequest, 'url' | 'roots'>,
): readonly string[] => {
  const text = value === undefined ? undefined : asWritten(value)
  if (text === undefined || !URL.canParse(text, url)) return []
  const query = /^[^?#]*(\?[^#]*)/.exec(text)?.[1]
  return behind(roots, new URL(text, url)).flatMap((target) =>
    query === undefined ? [target] : [target, target.split('?', 1)[0] + query],
  )
}

/**
 * Public paths that an unsafe request invalidates (RFC 9111 §4.4): its own, that of Destination, and those of Location and
 * Content-Location on the same origin, read as URLs of the upstream and as URLs for clients; none after an error response.
 */
export const unsafePaths = (
  request: UnsafeRequest,
  response: WriteResponse | undefined,
): readonly string[] => {
  const { mount, publicRoot, target, destination } = request
  const spared = request.sparedByServerError === true ? 600 : 500
  if (response !== undefined) {
    if (response.status < 200 || (response.status > 399 && response.status < spared)) return []
  }
  const forClients = {
    url: publicRoot + target,
    roots: [publicRoot.slice(0, publicRoot.length - mount.length)],
  }
  const inResponse = response === undefined ? [] : ['location', 'content-location']
  const paths = [
    destination,
    ...inResponse.map((name) => headerValue(response?.headers ?? [], name)),
  ].flatMap((value) => [
    ...namedTargets(value, request).map((path) => mount + path),
    ...namedTargets(value, forClients),
  ])
  return [...new Set([mount + target, ...paths])]
}
