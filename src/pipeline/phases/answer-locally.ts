import type { GatewayResponse } from '../../http/message.ts'
import { permitted, plainOrigin } from '../any-origin.ts'
import type { Phase, Ready } from '../exchange.ts'
import { overloaded, type ShedOptions } from '../phase-options.ts'

/** As the upstream would: where it lets every origin read, pages may read its index here too. */
const indexFor = (
  { service, request: { fields }, method }: Ready,
  answer: GatewayResponse | Promise<GatewayResponse>,
): GatewayResponse | Promise<GatewayResponse> => {
  if (!service.allowsAnyOrigin()) return answer
  const origin = plainOrigin(fields)
  const withOrigin = (response: GatewayResponse): GatewayResponse => {
    const varying = { ...response, fields: [...response.fields, 'Vary', 'Origin'] }
    return origin === undefined ? varying : permitted(varying, origin, method)
  }
  return answer instanceof Promise ? answer.then(withOrigin) : withOrigin(answer)
}

/** Rows that the gateway answers itself: discovery document, namespace indexes, OPTIONS, and the batch, whose items re-enter the list. */
export const answerLocally = (overload: ShedOptions | undefined): Phase<Ready> => ({
  name: 'answer-locally',
  run: (exchange, next) => {
    const { matching, service } = exchange
    const { local } = service
    if (local === undefined || matching.kind === 'unlisted') return next(exchange)
    if (matching.kind === 'options') return local.options(exchange, matching.row, () => next(exchange))
    switch (matching.row.handledBy) {
      case 'discovery':
        return indexFor(exchange, local.index(exchange, matching.row))
      case 'batch':
        if (overload?.admits('batch') === false) throw overloaded(overload)
        return local.batch(exchange)
      case 'upstream':
        return next(exchange)
    }
  },
})
