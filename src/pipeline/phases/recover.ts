import type { GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { asGatewayError, errorAnswer } from '../error-answer.ts'
import type { PipelineEvent } from '../events.ts'
import type { Phase, Received } from '../exchange.ts'

/** Turns every error of the phases behind it into a response in the service's format, and reports it once. */
export const recover = (options: {
  /** `exchange` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, exchange: Received) => void
  readonly report: (event: PipelineEvent) => void
}): Phase<Received> => {
  const answered = (exchange: Received, thrown: unknown): GatewayResponse => {
    const error = asGatewayError(thrown)
    const { id, service, record, origin } = exchange
    record.code = error.code
    options.report({
      kind: 'request-refused',
      id,
      service: service.name,
      route: record.route,
      code: error.code,
      status: error.facts.status,
      origin,
    })
    options.failed(error, exchange)
    return errorAnswer(service, error)
  }
  return {
    name: 'recover',
    run: (exchange, next) => {
      try {
        const answer = next(exchange)
        return answer instanceof Promise
          ? answer.catch((thrown: unknown) => answered(exchange, thrown))
          : answer
      } catch (thrown) {
        return answered(exchange, thrown)
      }
    },
  }
}
