import type { HeaderLines } from './header-lines.ts'

// URLs in the headers of responses: Location, Content-Location (RFC 9110), Link (RFC 8288) and Refresh (HTML, "Refresh").

/** Longer text is not taken for a URL. */
export const maxUrlLength = 8192

/** Further ones of a response stay: reading each as a URL takes microseconds. */
export const maxReferences = 128

/** A reference in another form; undefined: it stays. */
export type MapReference = (reference: string) => string | undefined

const targetStart = (value: string, from: number): number => {
  let quoted = false
  for (let at = from; at < value.length; at++) {
    const character = value[at]
    if (quoted && character === '\\') at++
    else if (character === '"') quoted = !quoted
    else if (character === '<' && !quoted) return at
  }
  return -1
}

/** The targets of a Link header (RFC 8288 §3): text in angle brackets outside a quoted string. */
export const mapLinkValue = (value: string, map: MapReference): string => {
  let mapped = ''
  let at = 0
  while (at < value.length) {
    const open = targetStart(value, at)
    const close = open === -1 ? -1 : value.indexOf('>', open)
    if (close === -1) break
    const target = value.slice(open + 1, close)
    mapped += value.slice(at, open + 1) + (map(target) ?? target)
    at = close
  }
  return mapped + value.slice(at)
}

/** Seconds, then a URL with or without `url=`, in quotation marks or not. */
const refreshStart = /^\d[\d.]*[ \t]*[;,][ \t]*(?:url[ \t]*=[ \t]*)?(["']?)/i

const mapRefresh = (value: string, map: MapReference): string => {
  const [start, mark] = refreshStart.exec(value) ?? []
  if (start === undefined) return value
  const closing = mark ? value.indexOf(mark, start.length) : -1
  const end = closing === -1 ? value.length : closing
  const mapped = map(value.slice(start.length, end))
  return mapped === undefined ? value : start + mapped + value.slice(end)
}

/** The value of a header, its name in lower case, with the URLs in it mapped. */
export const mapReferences = (name: string, value: string, map: MapReference): string => {
  switch (name) {
    case 'link':
      return mapLinkValue(value, map)
    case 'refresh':
      return mapRefresh(value, map)
    case 'location':
    case 'content-location':
      return map(value) ?? value
    default:
      return value
  }
}

/** Whether a root may be followed by this character: `/v1` is not the root of `/v10`. */
export const endsRoot = (after: string | undefined): boolean =>
  after === undefined || after === '/' || after === '?' || after === '#'

const isBelow = (path: string, root: string): boolean => path.startsWith(root) && endsRoot(path[root.length])

const dotSegment = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/** With its dot segments resolved, as clients do before they use it (RFC 3986 §5.2.4). */
const withoutDotSegments = (path: string): string => {
  const end = path.search(/[?#]/)
  const pathname = end === -1 ? path : path.slice(0, end)
  return dotSegment.test(pathname)
    ? new URL(`http://h${pathname}`).pathname + path.slice(pathname.length)
    : path
}

/** `//host` would name a host (RFC 3986 §4.2); browsers skip tabs and read a backslash as a slash. */
const asReference = (path: string): string => (/^\/[/\\\t]/.test(path) ? `/.${path}` : path)

export type PublicLinksOptions = {
  /** Origins by which the upstream may know itself. */
  readonly targets: readonly string[]
  /** Host and port by which clients know the service, as the upstream receives them in X-Forwarded-Host or Host. */
  readonly publicHost: string
  /** The URL for clients; it ends with `mount`. */
  readonly publicRoot: string
  /** As `mount`: '' for the root. */
  readonly basePath: string
  readonly mount: string
}

const schemeAndAuthority = /^(https?:)?\/\/([^/?#\\@]*)(?=[/?#]|$)/i

/** Host and port in one spelling, without the scheme's own port; undefined: the text is no authority. */
const hostIn = (scheme: string, authority: string): string | undefined => {
  const url = `${scheme}//${authority}`
  return authority !== '' && URL.canParse(url) ? new URL(url).host : undefined
}

/**
 * URLs of an upstream as its clients reach them, in the form in which they are sent: absolute, without scheme, as a path or relative.
 * Other hosts, and paths that are not below `basePath`, stay.
 */
export const createPublicLinks = (options: PublicLinksOptions) => {
  const { targets, publicHost, publicRoot, basePath, mount } = options
  const { protocol, host, origin } = new URL(publicRoot)
  /** The origin for clients by that of the upstream, without scheme: many upstreams do not know the scheme of their clients. */
  const origins = new Map([
    ...targets.map((target) => [new URL(target).host, origin] as const),
    [publicHost, `${protocol}//${publicHost}`] as const,
    [host, origin] as const,
  ])
  const publicHosts: ReadonlySet<string> = new Set([publicHost, host])
  const isMountInside = mount.length > basePath.length && isBelow(mount, basePath)

  const behindMount = (path: string): string | undefined => {
    if (!isBelow(path, basePath)) return undefined
    const mapped = mount + path.slice(basePath.length)
    return mapped.startsWith('/') ? mapped : `/${mapped}`
  }

  /** Some upstreams write their paths with the mount: what is below it already stays. */
  const publicPath = (written: string): string | undefined => {
    const path = withoutDotSegments(written)
    return isMountInside && isBelow(path, mount) ? path : behindMount(path)
  }

  const absolute = (reference: string, start: string, scheme: string | undefined, authority: string) => {
    const effectiveScheme = scheme?.toLowerCase() ?? protocol
    const named = hostIn(effectiveScheme, authority)
    const origin = named === undefined ? undefined : origins.get(named)
    const path = publicPath(reference.slice(start.length))
    if (named === undefined || origin === undefined || path === undefined) return undefined
    const shown = origin.slice(protocol.length)
    if (scheme === undefined) return shown + path
    // A client is never sent from https back to http on its own host.
    return (
      (publicHosts.has(named) && effectiveScheme === 'https:' ? effectiveScheme : protocol) + shown + path
    )
  }

  /** Paths climb to the root, and clients may ask for a mount without its slash: both sides may read such a reference differently. */
  const relative = (reference: string, path: string): string | undefined => {
    const isRoot = path === '/' && mount !== ''
    if (/^(?:[?#]|$)/.test(reference) || !(isRoot || /(?:\.|%2e){2}/i.test(reference))) return undefined
    const atUpstream = `http://h${basePath}${path}`
    if (!URL.canParse(reference, atUpstream)) return undefined
    const { pathname, search, hash } = new URL(reference, atUpstream)
    const publicForm = behindMount(pathname)
    if (publicForm === undefined) return undefined
    const read = new URL(reference, `http://h${isRoot ? mount : mount + path}`).pathname
    return read === publicForm ? undefined : asReference(publicForm + search + hash)
  }

  const mapped = (reference: string, path: string): string | undefined => {
    if (reference.length > maxUrlLength) return undefined
    const [start, scheme, authority = ''] = schemeAndAuthority.exec(reference) ?? []
    if (start !== undefined) return absolute(reference, start, scheme, authority)
    if (/^(?:[a-z][a-z0-9+.-]*:|[/\\][/\\\t])/i.test(reference)) return undefined
    if (!reference.startsWith('/')) return relative(reference, path)
    const shown = publicPath(reference)
    return shown === undefined ? undefined : asReference(shown)
  }

  /** The headers of the response to `path`, a path below the mount; the same lines where nothing changes. */
  return (lines: HeaderLines, path: string): HeaderLines => {
    let changed: string[] | undefined
    let referencesLeft = maxReferences
    const map = (reference: string): string | undefined =>
      referencesLeft-- > 0 ? mapped(reference, path) : undefined
    for (let i = 0; i < lines.length; i += 2) {
      const value = lines[i + 1] as string
      const shown = mapReferences((lines[i] as string).toLowerCase(), value, map)
      if (shown === value) continue
      changed ??= [...lines]
      changed[i + 1] = shown
    }
    return changed ?? lines
  }
}

export type PublicLinks = ReturnType<typeof createPublicLinks>
