import type { Clock } from '../../clock.ts'
import { isConditional, preconditionResponse } from '../../http/conditional/preconditions.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { isGetOrHead } from '../../http/methods.ts'
import type { ValidatedContext } from '../request-context.ts'

/**
 * The client's preconditions (RFC 9110 §13), on complete responses to reads. A response that streams, and one of a service
 * without routes that bypassed the cache, is left as it is: the upstream got the preconditions itself. The cache has evaluated them for what
 * it stores; they are evaluated here for documents of the gateway, for what is not stored, and again for a form that was compressed since,
 * which has a tag of its own.
 */
export const conditional = (
  { method, request, record, service }: ValidatedContext,
  response: GatewayResponse,
  clock: Clock,
): GatewayResponse => {
  if (!isGetOrHead(method) || !isConditional(request.headers)) return response
  if (!Buffer.isBuffer(response.content)) return response
  if (!service.contract.hasRoutes && record.cache === 'bypass') return response
  return preconditionResponse({ method, headers: request.headers }, response, clock.now()) ?? response
}
