import type { Found } from '../contracts/finding.ts'
import { type FieldLines, fieldValue } from '../http/fields.ts'

/** Typed arguments of a request, as the validator filled them in. */
export type TaggedArguments = Readonly<Record<string, unknown>>

/** A complete response that is about to be kept. */
export type TaggedResponse = {
  readonly status: number
  readonly fields: FieldLines
  readonly content: Buffer
}

/** What came back from a write; `content` undefined where it was streamed on unread. */
export type WriteResponse = {
  readonly status: number
  readonly fields: FieldLines
  readonly content: Buffer | undefined
}

/** Names what a stored response shows and what a write can have changed. Pure; throws on no input. */
export type Tagger = {
  /** `found` undefined: a path that no row lists. */
  storedTags(found: Found | undefined, args: TaggedArguments, response: TaggedResponse): readonly string[]
  /** Carried besides by what is kept for one caller alone; undefined where no write changes what a caller may see. */
  readonly callers: string | undefined
  /**
   * Carried besides by answers to requests with parameters that the row does not declare: by those a plugin may show anything, so
   * every write reaches them. undefined where every write reaches every answer.
   */
  readonly undeclared: string | undefined
  /** Could a row have given this? What could not is not kept for other readers. */
  isReadable(response: TaggedResponse): boolean
  /**
   * `response` undefined: the outcome is unknown, and then everything that may have changed counts as changed.
   * `shown`: contents that carry a tag and show the state right before the write; without it that state is unknown.
   */
  writtenTags(
    found: Found | undefined,
    given: Given,
    method: string,
    response: WriteResponse | undefined,
    shown?: Shown,
  ): readonly string[]
}

/** Names of the arguments to which a write gives a value; undefined when not all of them are known. */
export type Given = () => readonly string[] | undefined

/** Contents of stored responses that carry a tag, some of them if there are many. */
export type Shown = (tag: string) => readonly Buffer[]

/** The request that was not safe: where it went, as its upstream knows itself. */
export type UnsafeRequest = {
  /** Path and query as they are keyed. */
  readonly target: string
  /** Absolute URL that the upstream takes the request for; its origin bounds what may be invalidated. */
  readonly url: string
  /** Absolute URLs in front of every target, by which clients and the upstream know the service; `url` begins with one. */
  readonly roots: readonly string[]
  /** RFC 9111 §4.4 spares what is stored when the answer is an error; without this a 5xx counts as an unknown outcome. */
  readonly sparedByServerError?: boolean
}

/** Path and query behind one of the roots; another origin could otherwise empty this one's cache (RFC 9111 §4.4). */
const behind = (roots: readonly string[], url: URL): string | undefined => {
  const root = roots.find(
    (one) => url.href === one || url.href.startsWith(`${one}/`) || url.href.startsWith(`${one}?`),
  )
  if (root === undefined) return undefined
  url.hash = ''
  const target = url.href.slice(root.length)
  return target.startsWith('/') ? target : `/${target}`
}

/** The target that a Location or Content-Location names, when it is one of this service. */
export const namedTarget = (value: string | undefined, { url, roots }: UnsafeRequest): string | undefined =>
  value !== undefined && URL.canParse(value, url) ? behind(roots, new URL(value, url)) : undefined

/**
 * Targets that an unsafe request invalidates (RFC 9111 §4.4): its own, and what Location and Content-Location name on
 * the same origin; none when the answer is an error, its own when there is no answer.
 */
export const unsafeTargets = (
  request: UnsafeRequest,
  response: WriteResponse | undefined,
): readonly string[] => {
  if (response === undefined) return [request.target]
  const spared = request.sparedByServerError === true ? 600 : 500
  if (response.status < 200 || (response.status > 399 && response.status < spared)) return []
  const named = ['location', 'content-location'].flatMap(
    (name) => namedTarget(fieldValue(response.fields, name), request) ?? [],
  )
  return [...new Set([request.target, ...named])]
}
