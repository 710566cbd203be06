import { fieldValue } from '../http/fields.ts'
import type { WriteResponse } from './tagger.ts'

/** The request that was not safe: where it went, as its upstream knows itself. */
export type UnsafeRequest = {
  /** Path and query as they are keyed. */
  readonly target: string
  /** Absolute URL that the upstream takes the request for; its origin bounds what may be invalidated. */
  readonly url: string
  /** RFC 9111 §4.4 spares what is stored when the answer is an error; without this a 5xx counts as an unknown outcome. */
  readonly sparedByServerError?: boolean
}

const targetOf = (url: URL): string => url.pathname + url.search

const named = (value: string | undefined, base: URL): readonly string[] => {
  if (value === undefined || !URL.canParse(value, base.href)) return []
  const url = new URL(value, base)
  // Another origin could otherwise empty this one's cache (RFC 9111 §4.4).
  return url.origin === base.origin ? [targetOf(url)] : []
}

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
  if (!URL.canParse(request.url)) return [request.target]
  const base = new URL(request.url)
  return [
    ...new Set([
      request.target,
      ...named(fieldValue(response.fields, 'location'), base),
      ...named(fieldValue(response.fields, 'content-location'), base),
    ]),
  ]
}
