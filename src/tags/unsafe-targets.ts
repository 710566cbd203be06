import { fieldValue } from '../http/fields.ts'
import type { WriteResponse } from './tagger.ts'

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
