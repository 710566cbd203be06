import type { Clock } from '../../clock.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import type { ExchangeEvent } from '../events.ts'
import type { Received } from '../exchange.ts'
import type { Phase } from '../phase.ts'

const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

/** Outermost: every answer is counted once and leaves with its request id and Via (RFC 9110 §7.6.3). */
export const stamp = (options: {
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}): Phase<Received> => ({
  name: 'stamp',
  run: (exchange, next) => {
    const began = options.clock.monotonic()

    const finish = (status: number): void => {
      const { record, service, request, origin } = exchange
      options.report({
        kind: 'exchange-finished',
        service: service.name,
        route: record.route,
        method: knownMethods.has(request.method) ? request.method : '_OTHER',
        status,
        cache: record.cache,
        durationSeconds: (options.clock.monotonic() - began) / 1000,
        upstreamSeconds: record.upstreamMs / 1000,
        origin,
      })
    }
    const stamped = <Head extends ResponseHead>(head: Head): Head => {
      finish(head.status)
      return { ...head, fields: [...head.fields, 'Via', '1.1 trellis', 'X-Request-Id', exchange.id] }
    }

    return whenAnswered(next(exchange), (outcome) =>
      outcome.kind === 'response'
        ? stamped(outcome)
        : reshaped(outcome, stamped, (response: GatewayResponse) => stamped(response)),
    )
  },
})
