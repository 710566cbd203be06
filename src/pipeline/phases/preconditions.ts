import type { Clock } from '../../clock.ts'
import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../../http/conditional/preconditions.ts'
import { whenAnswered } from '../answering.ts'
import type { Phase, Ready } from '../exchange.ts'

/**
 * The client's If-None-Match and friends (RFC 9110 §13), on complete answers to reads. Answers that stream, and those of an
 * open service that went past the cache, are the upstream's own, which got the preconditions itself; what the cache
 * answered has been through it already.
 */
export const preconditions = (options: { readonly clock: Clock }): Phase<Ready> => ({
  name: 'preconditions',
  run: (exchange, next) => {
    const { method, request, record, service } = exchange
    if ((method !== 'GET' && method !== 'HEAD') || !isConditional(request.fields)) return next(exchange)
    return whenAnswered(next(exchange), (outcome) => {
      if (outcome.kind !== 'response' || !Buffer.isBuffer(outcome.content)) return outcome
      if (service.contract === 'open' && record.cache === 'bypass') return outcome
      switch (evaluatePreconditions(request.fields, method, outcome, options.clock.now())) {
        case 'proceed':
          return outcome
        case 'not-modified':
          return { kind: 'response', ...notModified(outcome), content: undefined }
        case 'failed':
          return { kind: 'response', ...preconditionFailed(outcome), content: undefined }
      }
    })
  },
})
