import type { GatewayError } from '../../errors.ts'
import type { Answer, Outcome } from '../../http/message.ts'
import { whenAnswered } from '../answering.ts'
import { asGatewayError, errorAnswer } from '../error-answer.ts'
import type { PipelineEvent } from '../events.ts'
import type { Received } from '../exchange.ts'
import type { Phase } from '../phase.ts'

/** Turns whatever was thrown behind it into an answer in the service's shape, and tells of it once. */
export const recover = (options: {
  /** `exchange` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, exchange: Received) => void
  readonly report: (event: PipelineEvent) => void
}): Phase<Received> => ({
  name: 'recover',
  run: (exchange, next) => {
    const answered = (thrown: unknown) => {
      const error = asGatewayError(thrown)
      const { id, service, record } = exchange
      options.report({
        kind: 'request-refused',
        id,
        service: service.name,
        route: record.route,
        code: error.code,
      })
      options.failed(error, exchange)
      return errorAnswer(exchange.service.contract, error)
    }
    const guarded = (outcome: Outcome): Outcome =>
      outcome.kind === 'response'
        ? outcome
        : {
            ...outcome,
            failed: async (cause) => {
              try {
                return await outcome.failed(cause)
              } catch (thrown) {
                return answered(thrown)
              }
            },
          }

    let answer: Answer
    try {
      answer = next(exchange)
    } catch (thrown) {
      return answered(thrown)
    }
    return answer instanceof Promise
      ? answer.then(guarded, (thrown: unknown) => answered(thrown))
      : whenAnswered(answer, guarded)
  },
})
