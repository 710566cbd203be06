import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { isNamedByPost, isPost } from '../http/methods.ts'
import type { RequestMeaning } from './contract.ts'

/** The header in which a POST names the method that it means, for networks that let no other methods pass. */
export const methodOverrideHeader = 'x-http-method-override'

const namedIn = (method: string, headers: RequestHeaders): string | undefined =>
  isPost(method) ? requestHeader(headers, methodOverrideHeader)?.toUpperCase() : undefined

/** Of a service of which nothing is known: a POST counts as the method that its header names, in case the upstream reads it. */
export const meaningByHeader = (method: string, _query: string, headers: RequestHeaders): RequestMeaning => {
  const named = namedIn(method, headers)
  return { kind: 'method', method: named !== undefined && isNamedByPost(named) ? named : method }
}

/** Of a described service: the operation that is checked is the one that the method of the request names. */
export const meaningByMethod = (method: string, _query: string, headers: RequestHeaders): RequestMeaning => {
  const named = namedIn(method, headers)
  return named === undefined || named === method
    ? { kind: 'method', method }
    : { kind: 'refused', detail: 'Send the method itself: X-HTTP-Method-Override is not accepted here.' }
}
