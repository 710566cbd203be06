import { type RequestFields, requestField } from '../http/fields.ts'
import { foldPhpName } from '../http/php-names.ts'

/** Why a request is refused: its query or a header field would give it another method or route in WordPress. */
export type MeaningRefusal = 'method-override' | 'route-override'

/** What a request to a WordPress-like service means (docs/decisions/0003-requests-that-mean-something-else.md). */
export type RequestMeaning =
  | { readonly kind: 'method'; readonly method: string }
  | { readonly kind: 'refused'; readonly reason: MeaningRefusal }

/** The methods that @wordpress/api-fetch sends as POST with an override. */
const overridable: ReadonlySet<string> = new Set(['PUT', 'PATCH', 'DELETE'])

type Overrides = { readonly route: boolean; readonly method: string | undefined }

const none: Overrides = { route: false, method: undefined }

/** Without an escape or one of these words a query cannot contain either name. */
const mayOverride = (query: string): boolean =>
  query.includes('%') || query.includes('method') || query.includes('route')

const queryOverrides = (query: string): Overrides => {
  if (query === '' || !mayOverride(query)) return none
  let route = false
  let method: string | undefined
  for (const [name, value] of new URLSearchParams(query)) {
    const folded = foldPhpName(name)
    if (folded === 'rest_route') route = true
    // The last one wins in PHP.
    if (folded === '_method') method = value
  }
  return { route, method }
}

/** The method that the request means: overrides are accepted on POST and refused on all other methods. */
export const requestMeaning = (method: string, query: string, fields: RequestFields): RequestMeaning => {
  const inQuery = queryOverrides(query)
  if (inQuery.route) return { kind: 'refused', reason: 'route-override' }
  const override = inQuery.method ?? requestField(fields, 'x-http-method-override')
  if (override === undefined) return { kind: 'method', method }
  const meant = override.toUpperCase()
  if (meant === method) return { kind: 'method', method }
  if (method !== 'POST' || !overridable.has(meant)) return { kind: 'refused', reason: 'method-override' }
  return { kind: 'method', method: meant }
}
