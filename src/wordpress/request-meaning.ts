import { queryParameters } from '../http/form-text.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { isNamedByPost, isPost } from '../http/methods.ts'
import type { RequestMeaning } from '../service/contract.ts'
import { methodOverrideHeader } from '../service/route-request.ts'
import { methodParameter, routeParameter, splitPhpName } from './arguments/php-query.ts'
import { noRouteOverride } from './arguments/site-errors.ts'

/** What the query puts in place of the method and the route; an array is no method. */
type Overrides = { readonly route: boolean; readonly method: string | 'array' | undefined }

const none: Overrides = { route: false, method: undefined }

/** Without an escape or one of these words a query cannot contain either name. */
const mayOverride = (query: string): boolean =>
  query.includes('%') || query.includes('method') || query.includes('route')

const queryOverrides = (query: string): Overrides => {
  if (!mayOverride(query)) return none
  let route = false
  let method: Overrides['method']
  for (const [decodedName, value] of queryParameters(query)) {
    const { name, indexes } = splitPhpName(decodedName) ?? { name: '', indexes: [] }
    if (name === routeParameter) route = true
    // The last one wins in PHP.
    if (name === methodParameter) method = indexes.length === 0 ? value : 'array'
  }
  return { route, method }
}

const refused = (detail: string): RequestMeaning => ({ kind: 'refused', detail })

const methodOverride = refused(
  'A method may only be overridden on POST, with PUT, PATCH or DELETE, by X-HTTP-Method-Override or _method.',
)
const routeOverride = refused(noRouteOverride)

/**
 * The method that WordPress takes a request for: `_method` of the query comes before the header, and a form's means nothing.
 * Refused on all methods but POST (docs/decisions/0003-requests-that-mean-something-else.md).
 */
export const requestMeaning = (method: string, query: string, fields: RequestHeaders): RequestMeaning => {
  const inQuery = queryOverrides(query)
  if (inQuery.route) return routeOverride
  const override = inQuery.method ?? requestHeader(fields, methodOverrideHeader)
  if (override === undefined) return { kind: 'method', method }
  const named = override.toUpperCase()
  if (named === method) return { kind: 'method', method }
  if (!isPost(method) || !isNamedByPost(named)) return methodOverride
  return { kind: 'method', method: named }
}
