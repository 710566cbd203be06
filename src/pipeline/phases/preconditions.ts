import type { Clock } from '../../clock.ts'
import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../../http/conditional/preconditions.ts'
import { type Phase, type Ready, whenAnswered } from '../exchange.ts'

/**
 * The client's preconditions (RFC 9110 §13), on complete responses to reads. A response that streams, and one of an open service
 * that bypassed the cache, is left as it is: the upstream got the preconditions itself. The cache has evaluated them already.
 */
export const preconditions = (options: { readonly clock: Clock }): Phase<Ready> => ({
  name: 'preconditions',
  run: (exchange, next) => {
    const { method, request, record, service } = exchange
    if ((method !== 'GET' && method !== 'HEAD') || !isConditional(request.fields)) return next(exchange)
    return whenAnswered(next(exchange), (response) => {
      if (!Buffer.isBuffer(response.content)) return response
      if (service.contract === 'open' && record.cache === 'bypass') return response
      switch (evaluatePreconditions(request.fields, method, response, options.clock.now())) {
        case 'proceed':
          return response
        case 'not-modified':
          return { ...notModified(response), content: undefined }
        case 'failed':
          return { ...preconditionFailed(response), content: undefined }
      }
    })
  },
})
