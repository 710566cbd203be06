import { requestField } from '../../http/message.ts'
import type { Contract, RequestMeaning } from '../../service/contract.ts'
import { foldPhpName } from './php-names.ts'

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

const refused = (detail: string): RequestMeaning => ({ kind: 'refused', detail })

const methodOverride = refused(
  'A method may only be overridden on POST, with PUT, PATCH or DELETE, by X-HTTP-Method-Override or _method.',
)
const routeOverride = refused('The parameter rest_route is not accepted here.')

/**
 * Overrides are accepted on POST and refused on all other methods
 * (docs/decisions/0003-requests-that-mean-something-else.md).
 */
export const requestMeaning: Contract['meaning'] = (method, query, fields) => {
  const inQuery = queryOverrides(query)
  if (inQuery.route) return routeOverride
  const override = inQuery.method ?? requestField(fields, 'x-http-method-override')
  if (override === undefined) return { kind: 'method', method }
  const meant = override.toUpperCase()
  if (meant === method) return { kind: 'method', method }
  if (method !== 'POST' || !overridable.has(meant)) return methodOverride
  return { kind: 'method', method: meant }
}
