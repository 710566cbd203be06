import { isAscii, isUtf8 } from 'node:buffer'
import { type HeaderLines, hasHeader, headerValue, headerValues } from '../http/headers/header-lines.ts'
import { essence } from '../http/headers/media-type.ts'
import { bareItem, readList } from '../http/headers/structured-fields.ts'
import { parsedJson } from '../http/json-text.ts'
import type { ResponseHead } from '../http/message.ts'
import { contentText } from '../http/response-text.ts'
import { ownText } from '../http/retained.ts'
import type { Readability } from './cache-read.ts'

const longestIdentifier = 128

/** `0005` and `5` are one item. */
const canonicalIdentifier = (id: string): string =>
  id.startsWith('0') && /^\d+$/.test(id) ? id.replace(/^0+(?=\d)/, '') : id

const itemName = (prefix: string, collection: string, id: string): string | undefined =>
  id.length > longestIdentifier ? undefined : `${prefix}/${collection}/${canonicalIdentifier(id)}`

/** On responses whose list from the companion is complete. */
export const describedTag = (service: string): string => `${service}/described`

/** The spelling of tags. All begin with the name of the service, so that no service reaches another's. */
export const createTagNames = (service: string) => ({
  /** On every stored response of the service. */
  all: `${service}/all`,
  /** On responses whose dependencies are unknown: every write reaches them. */
  unknownDependencies: `${service}/unknown`,
  /** On responses with a property that shows more than its item: every write reaches them, except to another post. */
  site: `${service}/site`,
  /** On responses with a property that shows what its item links to. */
  linked: `${service}/linked`,
  /** On those that link to this item, or show it. */
  linkedTo: (collection: string, id: string) => itemName(`${service}/linked`, collection, id),
  /** On responses stored for one credential. */
  callers: `${service}/callers`,
  embedded: `${service}/embedded`,
  /** On responses that embed something unknown. */
  opaque: `${service}/opaque`,
  /** On responses with dynamic content. */
  dynamic: `${service}/dynamic`,
  /** On content that renders only items of one collection. */
  dynamicOf: (collection: string) => `${service}/dynamic/${collection}`,
  /** On every response with rendered content. */
  rendered: `${service}/rendered`,
  /** On every response of a collection. */
  any: (collection: string) => `${service}/any/${collection}`,
  list: (collection: string) => `${service}/list/${collection}`,
  /** A complete list of the items with that value. */
  filtered: (collection: string, property: string, value: number) =>
    `${service}/list/${collection}/${property}=${value}`,
  /** A list under that filter, whatever its value. */
  filteredBy: (collection: string, property: string) => `${service}/list/${collection}/${property}`,
  /** A list under a filter of which only a part is known: the rest of its items is unknown. */
  unsure: (collection: string) => `${service}/unsure/${collection}`,
  /** A response that depends on texts, or whose items are unknown. */
  text: (collection: string) => `${service}/text/${collection}`,
  /** A response that depends on the time of the last change, or whose items are unknown. */
  modified: (collection: string) => `${service}/modified/${collection}`,
  /** A list that may show non-public items. */
  inner: (collection: string) => `${service}/inner/${collection}`,
  /** The same for one status, or `any`. */
  innerOf: (collection: string, status: string) => `${service}/inner/${collection}/${status}`,
  /** A list that may depend on more of its items than their texts, dates and statuses. */
  related: (collection: string) => `${service}/related/${collection}`,
  /** Undefined if the identifier is too long for the index; use `any` instead. */
  item: (collection: string, id: string) => itemName(`${service}/item`, collection, id),
  revisionsOf: (collection: string, id: string) => itemName(`${service}/revisions`, collection, id),
  autosavesOf: (collection: string, id: string) => itemName(`${service}/autosaves`, collection, id),
  /** On responses that embed an item, or were requested with `_embed`. */
  embedding: (collection: string, id: string) => itemName(`${service}/embedding`, collection, id),
  shownBy: (collection: string, id: string) => itemName(`${service}/shown`, collection, id),
  /** The same if they show its name or sort by it. */
  nameShownBy: (collection: string, id: string) => itemName(`${service}/name`, collection, id),
  /** On responses that may name any item of the collection. */
  shownBySome: (collection: string) => `${service}/shown/${collection}`,
  nameShownBySome: (collection: string) => `${service}/name/${collection}`,
  upstream: (name: string) => `${service}/upstream/${name}`,
  /** On responses with more tags from the upstream than are stored: every invalidation by such a tag reaches them. */
  moreUpstream: `${service}/more-upstream`,
  /** An id or a listed type that the companion names. */
  companion: (kind: string, id: string) => `${service}/companion/${kind}/${id}`,
  /** On responses whose list from the companion is incomplete: every reported change reaches them. */
  companionUnknown: `${service}/companion`,
  described: describedTag(service),
  /** On all others: every change that no table lists reaches them. */
  undescribed: `${service}/undescribed`,
  /**
   * The tag by which a write reaches a response that is described completely, instead of one of the table; undefined for a tag that
   * both kinds of responses have. A write that the companion has reported does not need it.
   */
  inDescribed: (tag: string): string | undefined =>
    isOfBoth(service, tag) ? undefined : `${service}/described${tag.slice(service.length)}`,
})

export type TagNames = ReturnType<typeof createTagNames>

/** On responses of both kinds, described completely or not. */
const isOfBoth = (service: string, tag: string): boolean =>
  ['all', 'callers', 'more-upstream', 'undescribed'].some((name) => tag === `${service}/${name}`) ||
  ['upstream', 'companion'].some((name) => tag.startsWith(`${service}/${name}/`))

/** The names for the tags of the table on responses that are described completely. */
export const namesInDescribed = (service: string): TagNames => {
  const names = createTagNames(service)
  const { all, callers, upstream, moreUpstream, companion, companionUnknown, described } = names
  const shared = { all, callers, upstream, moreUpstream, companion, companionUnknown, described }
  return { ...createTagNames(`${service}/described`), ...shared }
}

/** Headers with tags of the upstream, and their separators. */
const tagHeaders: readonly { readonly name: string; readonly separator: RegExp }[] = [
  { name: 'surrogate-key', separator: /\s+/ },
  { name: 'cache-tag', separator: /[\s,]+/ },
  { name: 'xkey', separator: /[\s,]+/ },
]

/** An upstream may send thousands; each costs an index entry. */
const maxTags = 128
const longestTag = 128

const groupsIn = (headers: HeaderLines, name: string): readonly string[] => {
  const value = headerValue(headers, name)
  const members = value === undefined ? [] : (readList(value) ?? [])
  return members.map(bareItem).filter((item) => typeof item === 'string')
}

const taggingHeaders: ReadonlySet<string> = new Set([...tagHeaders.map(({ name }) => name), 'cache-groups'])

const none: readonly string[] = []

/**
 * Tags for those in the headers of a response, including Cache-Groups (RFC 9875). A response with more tags than the index takes, or
 * with a longer one, gets a tag that every invalidation by a tag of the upstream reaches.
 */
export const upstreamTags = (names: TagNames, headers: HeaderLines): readonly string[] => {
  // Most responses have none.
  if (!hasHeader(headers, taggingHeaders)) return none
  const allTags = new Set([
    ...tagHeaders.flatMap(({ name, separator }) =>
      headerValues(headers, name).flatMap((line) => line.split(separator)),
    ),
    ...groupsIn(headers, 'cache-groups'),
  ])
  allTags.delete('')
  const fittingTags = [...allTags].filter((tag) => tag.length <= longestTag).slice(0, maxTags)
  const tags = fittingTags.map((tag) => names.upstream(ownText(tag)))
  return fittingTags.length < allTags.size ? [...tags, names.moreUpstream] : tags
}

/** Tags for groups that the response to a write invalidates (RFC 9875 §3); the size of its head bounds them. */
export const invalidatedGroups = (names: TagNames, headers: HeaderLines): readonly string[] => {
  const groups = new Set(groupsIn(headers, 'cache-group-invalidation'))
  groups.delete('')
  return groups.size === 0 ? none : [...[...groups].map(names.upstream), names.moreUpstream]
}

/** The typed arguments of a request, from the validator. */
export type TaggedArguments = Readonly<Record<string, unknown>>

/** The tag of stored responses that the upstream of the service has given its own name. */
export const upstreamTagName = (service: string, name: string): string =>
  createTagNames(service).upstream(name)

export type TaggedResponse = ResponseHead & {
  readonly content: Buffer
}

/** The response to a write; `content` is undefined if it was streamed. */
export type WriteResponse = {
  readonly status: number
  readonly headers: HeaderLines
  readonly content: Buffer | undefined
  /** Path below the service that Location names, in its canonical form, where tags depend on it. */
  readonly created?: string | undefined
}

/** Contents of stored responses with a tag; only some of them if there are many. */
export type Shown = (tag: string) => readonly Buffer[]

/** The tags that a purge by one reaches: one of the upstream also reaches responses with more tags than are stored. */
export const tagsReachedBy = (tag: string): readonly string[] => {
  const [, service] = /^([^/]+)\/upstream\//.exec(tag) ?? []
  return service === undefined ? [tag] : [tag, createTagNames(service).moreUpstream]
}

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

let last: { readonly content: Buffer; readonly parsed: unknown } | undefined

/**
 * The value of a JSON content; undefined for any other. Parsed once for two callers: a response that may be stored needs its tags
 * and a readability check in the same turn. The second caller gets the result of the first, which is then released.
 */
export const parsedContent = (content: Buffer): unknown => {
  if (last?.content === content) {
    const { parsed } = last
    last = undefined
    return parsed
  }
  const parsed = parsedJson(isAscii(content) ? contentText(content).latin1 : content.toString('utf8'))
  last = { content, parsed }
  return parsed
}

/** Longer contents are not checked: reading them would delay all requests. */
const longestRead = 2 * 1024 * 1024

const parses = (content: Buffer): boolean => {
  if (content.length > longestRead) return true
  return isUtf8(content) && parsedContent(content) !== undefined
}

/**
 * Can a JSON row give this response? Error pages with status 200, truncated JSON, JSON after a warning, and content codings that
 * were not requested are forwarded but not stored.
 */
export const jsonReadability = (
  { status, headers }: ResponseHead,
  content: Buffer | undefined,
): Readability => {
  if (status === 204 || status === 206) return 'readable'
  const coding = headerValue(headers, 'content-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') return 'unreadable'
  const type = essence(headerValue(headers, 'content-type'))
  if (type === 'text/html') return 'unreadable'
  if (type !== 'application/json' && !type.endsWith('+json')) return 'readable'
  if (content === undefined) return 'unknown'
  return parses(content) ? 'readable' : 'unreadable'
}
