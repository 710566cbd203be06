import type { Found } from '../contracts/row.ts'
import type { SiteChange } from '../contracts/site/changes.ts'
import { type FieldLines, fieldValue, type ResponseHead } from '../http/message.ts'
import { createTagNames } from './tags/tag-names.ts'

/** The typed arguments of a request, from the validator. */
export type TaggedArguments = Readonly<Record<string, unknown>>

/** The tag of stored responses that the upstream of the service has given its own name. */
export const upstreamTagName = (service: string, name: string): string =>
  createTagNames(service).upstream(name)

/** A complete response that may be stored. */
export type TaggedResponse = ResponseHead & {
  readonly content: Buffer
}

/** The response to a write; `content` is undefined if it was streamed. */
export type WriteResponse = {
  readonly status: number
  readonly fields: FieldLines
  readonly content: Buffer | undefined
  /** Path below the service that Location names, in its canonical form, where tags depend on it. */
  readonly created?: string | undefined
}

/** Decides which tags a stored response has and which tags a write invalidates. Pure; throws for no input. */
export type Tagger = {
  /** `found` is undefined for a path without a row. */
  storedTags(found: Found | undefined, args: TaggedArguments, response: TaggedResponse): readonly string[]
  /** Added to responses that are stored for one credential; undefined if no write changes the rights of a caller. */
  readonly callers: string | undefined
  /**
   * Added to responses to requests with undeclared parameters: a plugin may show anything in them, so every write invalidates them.
   * Undefined if every write invalidates every response.
   */
  readonly undeclared: string | undefined
  /** Is it a response that the row can give? Otherwise it is not stored for other clients. */
  isReadable(response: TaggedResponse): boolean
  /**
   * `response` is undefined if the outcome is unknown; then everything that may have changed counts as changed. `shown`: stored
   * contents with a tag, which show the data right before the write; undefined if that is unknown. `isReported`: the companion has
   * reported the changes of this write, and what they reach is dropped.
   */
  writtenTags(
    found: Found | undefined,
    given: Given,
    method: string,
    response: WriteResponse | undefined,
    shown?: Shown,
    isReported?: boolean,
  ): readonly string[]
  /** On every stored response; undefined where only targets and tags of the upstream distinguish responses. */
  readonly everything: string | undefined
  /** Tags that changes behind the gateway reach; undefined when they may reach every response of the service. */
  changedTags(changes: readonly SiteChange[]): readonly string[] | undefined
}

/** Names of the arguments that a write sets; undefined if not all of them are known. */
export type Given = () => readonly string[] | undefined

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
  /** An error response invalidates nothing (RFC 9111 §4.4). Otherwise a 5xx counts as an unknown outcome. */
  readonly sparedByServerError?: boolean
}

/** A path behind a root or a mount, which may be empty, as a target. */
export const asTarget = (path: string): string => (path.startsWith('/') ? path : `/${path}`)

/** Path and query after one of the roots. Other origins must not invalidate this one (RFC 9111 §4.4). */
const behind = (roots: readonly string[], url: URL): string | undefined => {
  const root = roots.find(
    (one) => url.href === one || url.href.startsWith(`${one}/`) || url.href.startsWith(`${one}?`),
  )
  if (root === undefined) return undefined
  url.hash = ''
  return asTarget(url.href.slice(root.length))
}

/** The target in a Location or Content-Location, if it belongs to this service. */
export const namedTarget = (
  value: string | undefined,
  { url, roots }: Pick<UnsafeRequest, 'url' | 'roots'>,
): string | undefined =>
  value !== undefined && URL.canParse(value, url) ? behind(roots, new URL(value, url)) : undefined

/**
 * Public paths that an unsafe request invalidates (RFC 9111 §4.4): its own, and those of Location and Content-Location on the same
 * origin, read as URLs of the upstream and as URLs for clients; none after an error response, its own without a response.
 */
export const unsafePaths = (
  request: UnsafeRequest,
  response: WriteResponse | undefined,
): readonly string[] => {
  const { mount, publicRoot, target } = request
  if (response === undefined) return [mount + target]
  const spared = request.sparedByServerError === true ? 600 : 500
  if (response.status < 200 || (response.status > 399 && response.status < spared)) return []
  const forClients = {
    url: publicRoot + target,
    roots: [publicRoot.slice(0, publicRoot.length - mount.length)],
  }
  const named = ['location', 'content-location'].flatMap((name) => {
    const value = fieldValue(response.fields, name)
    const own = namedTarget(value, request)
    return [own === undefined ? [] : mount + own, namedTarget(value, forClients) ?? []].flat()
  })
  return [...new Set([mount + target, ...named])]
}
