import type { Clock } from '../../clock.ts'
import { type GatewayResponse, knownMethods } from '../../http/message.ts'
import type { ExchangeEvent } from '../events.ts'
import type { Phase, Received } from '../exchange.ts'

/** Counts every response once, and adds the request id and Via (RFC 9110 §7.6.3). */
export const stamp = (options: {
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}): Phase<Received> => {
  const { clock, report } = options

  const stamped = (exchange: Received, began: number, response: GatewayResponse): GatewayResponse => {
    const { record, request } = exchange
    const { status, fields, content, text } = response
    report({
      kind: 'exchange-finished',
      id: exchange.id,
      invalidated: record.invalidated,
      service: exchange.service.name,
      route: record.route,
      method: knownMethods.has(request.method) ? request.method : '_OTHER',
      status,
      cache: record.cache,
      durationSeconds: (clock.monotonic() - began) / 1000,
      upstreamSeconds: record.upstreamMs / 1000,
      ageSeconds: record.ageSeconds,
      trace: record.trace?.sampled === true ? { id: record.trace.traceId, epochMs: clock.now() } : undefined,
      origin: exchange.origin,
    })
    return {
      status,
      fields: [...fields, 'Via', '1.1 trellis', 'X-Request-Id', exchange.id],
      content,
      text,
    }
  }

  return {
    name: 'stamp',
    run: (exchange, next) => {
      const began = clock.monotonic()
      const answer = next(exchange)
      // Without a function for each exchange: most answers are there at once.
      return answer instanceof Promise
        ? answer.then((response) => stamped(exchange, began, response))
        : stamped(exchange, began, answer)
    },
  }
}
