import type { GatewayError } from '../../errors.ts'
import type { Answer, GatewayResponse, Outcome } from '../../http/message.ts'
import { asGatewayError, errorAnswer } from '../error-answer.ts'
import type { PipelineEvent } from '../events.ts'
import type { Phase, Received } from '../exchange.ts'

/** Turns whatever was thrown behind it into an answer in the service's shape, and tells of it once. */
export const recover = (options: {
  /** `exchange` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, exchange: Received) => void
  readonly report: (event: PipelineEvent) => void
}): Phase<Received> => {
  const answered = (exchange: Received, thrown: unknown): GatewayResponse => {
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
    return errorAnswer(service, error)
  }
  const guarded = (exchange: Received, outcome: Outcome): Outcome => {
    if (outcome.kind === 'response') return outcome
    const failed = async (cause: unknown): Promise<GatewayResponse> => {
      try {
        return await outcome.failed(cause)
      } catch (thrown) {
        return answered(exchange, thrown)
      }
    }
    return { ...outcome, failed }
  }
  return {
    name: 'recover',
    run: (exchange, next) => {
      let answer: Answer
      try {
        answer = next(exchange)
      } catch (thrown) {
        return answered(exchange, thrown)
      }
      return answer instanceof Promise
        ? answer.then(
            (outcome) => guarded(exchange, outcome),
            (thrown: unknown) => answered(exchange, thrown),
          )
        : guarded(exchange, answer)
    },
  }
}
