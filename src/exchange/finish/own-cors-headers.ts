import { type AnyOrigin, corsForOwnResponse, plainOrigin } from '../../http/headers/cors.ts'
import { type GatewayResponse, type ResponseOrPromise, whenKnown } from '../../http/message.ts'
import type { MatchedContext, RequestContext } from '../request-context.ts'

/** An error, or a response for which neither the cache nor the upstream was asked. */
const isMadeHere = ({ record }: RequestContext): boolean =>
  record.code !== undefined || (record.cache === 'none' && record.target === undefined)

/** While a process refuses because it or its upstream cannot do more, nothing is asked in addition. */
const mayAsk = (status: number): boolean => status < 500 && status !== 429

const policyFor = (
  { service, request, path, matching }: RequestContext & Partial<MatchedContext>,
  status: number,
): AnyOrigin | undefined | Promise<AnyOrigin | undefined> => {
  const { contract } = service
  const { anyOrigins } = service.responses
  const routeMatch = matching ?? contract.find(request.method, path)
  // Where there is no route, the index speaks for the site.
  if (!('row' in routeMatch))
    return routeMatch.kind === 'refused' || contract.unlisted === 'refuse' ? anyOrigins?.site() : undefined
  return mayAsk(status)
    ? anyOrigins?.askRoute(routeMatch.row, routeMatch.path)
    : anyOrigins?.route(routeMatch.row)
}

/** Pages of other origins may read a response of the gateway itself where they may read those of the upstream. */
export const addCorsHeaders = (context: RequestContext, response: GatewayResponse): ResponseOrPromise => {
  if (context.service.responses.anyOrigins === undefined || context.origin !== 'client') return response
  if (!isMadeHere(context)) return response
  const origin = plainOrigin(context.request.headers)
  if (origin === undefined) return corsForOwnResponse(response, undefined, undefined)
  return whenKnown(policyFor(context, response.status), (policy) =>
    corsForOwnResponse(response, policy, origin),
  )
}
