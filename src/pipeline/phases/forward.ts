import { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import { endToEndFields, forwardableFields } from '../../http/hop-by-hop.ts'
import type { HandOver } from '../../http/message.ts'
import { toGatewayError } from '../../upstream/failure.ts'
import type { Translated } from '../exchange.ts'
import { type ForwardingFacts, forwardingFields } from '../forwarding-fields.ts'
import type { Next, Phase } from '../phase.ts'

/**
 * Content that nobody reads here flows through @fastify/http-proxy, both ways, with backpressure.
 * It sends no content on GET and HEAD, so those that have one stay here.
 */
const handsOver = ({ mayHandOver, service, matching, content, method }: Translated): boolean => {
  if (!mayHandOver) return false
  if (content instanceof Readable) return method !== 'GET' && method !== 'HEAD'
  return service.contract === 'open' || matching.kind === 'unlisted'
}

const without = (fields: Record<string, string>, withheld: ReadonlySet<string>): Record<string, string> => {
  for (const name of withheld) delete fields[name]
  return fields
}

/** The innermost phase: queue, breaker, retry budget and attempts are the upstream room's business. */
export const forward = (options: {
  readonly clock: Clock
  readonly facts: ForwardingFacts
}): Phase<Translated, never> => ({
  name: 'forward',
  run: (exchange, _next: Next<never>) => {
    const { service, request, method, record } = exchange
    const forwarded = forwardingFields(exchange, options.facts)
    const fields = without(
      forwardableFields(request.fields, { forwarded, acceptEncoding: 'identity' }),
      exchange.withheld,
    )
    Object.assign(fields, exchange.extraFields)
    // Links in the upstream's names are of no use to a client.
    const interim = service.translation === undefined ? request.interim : undefined

    if (handsOver(exchange)) {
      const began = options.clock.monotonic()
      const handOver: HandOver = {
        kind: 'hand-over',
        service: service.name,
        upstreamTarget: exchange.upstreamTarget,
        method,
        fields,
        signal: exchange.signal,
        interim,
        shape: (head) => {
          record.upstreamMs += options.clock.monotonic() - began
          return { ...head, fields: endToEndFields(head.fields) }
        },
        failed: (cause) => {
          record.upstreamMs += options.clock.monotonic() - began
          throw cause instanceof GatewayError ? cause : toGatewayError(cause)
        },
      }
      return handOver
    }
    const began = options.clock.monotonic()
    return service.upstream
      .forward({
        method,
        target: exchange.upstreamTarget,
        fields,
        content: exchange.upstreamContent,
        signal: exchange.signal,
        flow: exchange.client.address,
        interim,
      })
      .finally(() => {
        record.upstreamMs += options.clock.monotonic() - began
      })
  },
})
