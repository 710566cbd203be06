import { GatewayError } from '../errors.ts'
import { isPreflight } from '../http/headers/cors.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { isNamedByPost, isPost } from '../http/methods.ts'
import type { Contract, RequestMeaning } from './contract.ts'
import type { RouteMatch, Row } from './row.ts'

export type Incoming = {
  readonly method: string
  /** Relative to the mount, as written. */
  readonly path: string
  /** As written, without `?`. */
  readonly query: string
  readonly headers: RequestHeaders
}

/** What a path matches; the other matches are refused. */
export type Matching = Exclude<RouteMatch, { kind: 'refused' | 'wrong-method' }>

type RefusedRouting = {
  readonly kind: 'refused'
  /** Where a row has the path. */
  readonly row: Row | undefined
  /** For an operator. */
  readonly reason: string
  /** For the client. */
  readonly error: GatewayError
}

export type Routing =
  | {
      readonly kind: 'matched'
      /** The method that the request means. */
      readonly method: string
      readonly matching: Matching
    }
  | RefusedRouting

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

const wrongMethod = (contract: Contract, row: Row): RefusedRouting => {
  const methods = new Set(row.endpoints.flatMap((endpoint) => endpoint.methods))
  const error = contract.wrongMethod(row)
  return {
    kind: 'refused',
    row,
    error,
    reason: `${error.facts.status}: the path takes ${[...methods].join(', ')}`,
  }
}

const refused = (reason: string, error: GatewayError): RefusedRouting => ({
  kind: 'refused',
  row: undefined,
  reason,
  error,
})

/** The method that a request means, and the row that its path is of. */
export const routeOf = (
  contract: Contract,
  { method: written, path, query, headers }: Incoming,
  find: Contract['find'] = contract.find,
): Routing => {
  const meaning = contract.methodMeant(written, query, headers)
  if (meaning.kind === 'refused') {
    const { detail } = meaning
    return refused(detail, new GatewayError('ambiguous_request', { detail }))
  }
  const { method } = meaning
  const routeMatch = find(method, path)
  switch (routeMatch.kind) {
    case 'refused': {
      const detail = `Path refused: ${routeMatch.reason}.`
      return refused(`path: ${routeMatch.reason}`, new GatewayError('ambiguous_request', { detail }))
    }
    case 'wrong-method':
      return wrongMethod(contract, routeMatch.row)
    case 'unlisted':
      return contract.unlisted === 'refuse'
        ? refused('404', new GatewayError('no_route'))
        : { kind: 'matched', method, matching: routeMatch }
    case 'options':
      return contract.options === 'refused' && !isPreflight(method, headers)
        ? wrongMethod(contract, routeMatch.row)
        : { kind: 'matched', method, matching: routeMatch }
    case 'found':
      return { kind: 'matched', method, matching: routeMatch }
  }
}
