import type { Clock } from '../../clock.ts'
import {
  type GatewayResponse,
  knownMethods,
  type Outcome,
  type ResponseHead,
  type ShapedHead,
} from '../../http/message.ts'
import { reshaped } from '../answering.ts'
import type { ExchangeEvent } from '../events.ts'
import type { Phase, Received } from '../exchange.ts'

/** Outermost: every answer is counted once and leaves with its request id and Via (RFC 9110 §7.6.3). */
export const stamp = (options: {
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}): Phase<Received> => {
  const { clock, report } = options

  const finish = ({ record, service, request, origin }: Received, began: number, status: number): void =>
    report({
      kind: 'exchange-finished',
      service: service.name,
      route: record.route,
      method: knownMethods.has(request.method) ? request.method : '_OTHER',
      status,
      cache: record.cache,
      durationSeconds: (clock.monotonic() - began) / 1000,
      upstreamSeconds: record.upstreamMs / 1000,
      ageSeconds: record.ageSeconds,
      trace: record.trace?.sampled === true ? { id: record.trace.traceId, epochMs: clock.now() } : undefined,
      origin,
    })
  const stampedFields = ({ fields }: ResponseHead, id: string): string[] => [
    ...fields,
    'Via',
    '1.1 trellis',
    'X-Request-Id',
    id,
  ]
  const stamped = (exchange: Received, began: number, response: GatewayResponse): GatewayResponse => {
    finish(exchange, began, response.status)
    const { status, content, text } = response
    return { kind: 'response', status, fields: stampedFields(response, exchange.id), content, text }
  }
  const settled = (exchange: Received, began: number, outcome: Outcome): Outcome => {
    if (outcome.kind === 'response') return stamped(exchange, began, outcome)
    const shaped = (head: ShapedHead): ShapedHead => {
      finish(exchange, began, head.status)
      return { ...head, fields: stampedFields(head, exchange.id) }
    }
    return reshaped(outcome, shaped, (response) => stamped(exchange, began, response))
  }

  return {
    name: 'stamp',
    run: (exchange, next) => {
      const began = clock.monotonic()
      const answer = next(exchange)
      // Without a function for each exchange: most answers are there at once.
      return answer instanceof Promise
        ? answer.then((outcome) => settled(exchange, began, outcome))
        : settled(exchange, began, answer)
    },
  }
}
