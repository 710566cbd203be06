import type { Clock } from '../../clock.ts'
import type { GatewayError } from '../../errors.ts'
import { type GatewayResponse, knownMethods } from '../../http/message.ts'
import { asGatewayError, errorAnswer } from '../error-answer.ts'
import type { ExchangeEvent, PipelineEvent } from '../events.ts'
import { type Phase, type Received, whenAnswered } from '../exchange.ts'
import type { ExchangeWatch } from '../phase-options.ts'

/** Outermost, for the access log and traces; only in the list when one of them is configured. */
export const observe = (options: {
  readonly clock: Clock
  readonly watches: readonly ExchangeWatch[]
}): Phase<Received> => ({
  name: 'observe',
  run: (exchange, next) => {
    const began = options.clock.monotonic()
    for (const watch of options.watches) watch.begin(exchange)
    return whenAnswered(next(exchange), (response) => {
      const durationMs = options.clock.monotonic() - began
      for (const watch of options.watches)
        watch.end(exchange, { head: response, content: response.content, durationMs })
      return response
    })
  },
})

/** Counts every response once, and adds the request id and Via (RFC 9110 §7.6.3). */
export const stamp = (options: {
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}): Phase<Received> => {
  const { clock, report } = options

  const stamped = (exchange: Received, began: number, response: GatewayResponse): GatewayResponse => {
    const { record, request } = exchange
    const { status, fields, content, text, headText } = response
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
    const stampedFields = [...fields, 'Via', '1.1 trellis', 'X-Request-Id', exchange.id]
    return {
      status,
      fields: stampedFields,
      content,
      text,
      headText:
        headText?.of === fields
          ? {
              of: stampedFields,
              text: `${headText.text}Via: 1.1 trellis\r\nX-Request-Id: ${exchange.id}\r\n`,
            }
          : undefined,
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
