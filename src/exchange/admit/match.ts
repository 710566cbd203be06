import { GatewayError } from '../../errors.ts'
import { isGetOrHead } from '../../http/methods.ts'
import { methodOverrideHeader, type Routing, routeOf } from '../../service/route-request.ts'
import type { RecalledTarget } from '../../service/target-memo.ts'
import { isRefusedByTargetAlone } from '../error-response.ts'
import { asMatched, type MatchedContext, type RequestContext } from '../request-context.ts'

const outsideTarget = /[^\x21-\x7e]|#/

/** A GET that was seen before, unless a header or the content gives this one another meaning. */
const recall = ({ service, request }: RequestContext): RecalledTarget | undefined => {
  const { method, headers } = request
  if (!isGetOrHead(method) || headers[methodOverrideHeader] !== undefined) return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

const routed = ({ service, request, path, query, checked }: RequestContext): Routing => {
  const { contract } = service
  const { method, headers } = request
  const routeRequest = { method, path, query, headers }
  if (checked?.service !== service) return routeOf(contract, routeRequest)
  // The check of its batch has found the row already.
  return routeOf(contract, routeRequest, (meantMethod, at) =>
    meantMethod === method ? checked.matching : contract.find(meantMethod, at),
  )
}

/** Finds the row that the request concerns, and the method that it means; throws 404, 405 or 400. */
export const match = (context: RequestContext): MatchedContext => {
  const { record, request } = context
  const recalled = recall(context)
  if (recalled !== undefined) {
    const { matching } = recalled
    record.route = matching.row.template
    return asMatched(context, request.method, matching, recalled)
  }
  // RFC 3986 §2, RFC 9112 §3.2: nothing but visible ASCII, and no fragment. node:http accepts both, and servers read them in different ways.
  if (outsideTarget.test(request.target))
    throw new GatewayError('malformed_request', { detail: 'The URL has bytes that must be percent-encoded.' })
  const route = routed(context)
  if (route.kind === 'refused') {
    if (route.row !== undefined) record.route = route.row.template
    throw route.error
  }
  const { method, matching } = route
  record.route = matching.kind === 'unlisted' ? 'unlisted' : matching.row.template
  return asMatched(context, method, matching, recalled)
}
