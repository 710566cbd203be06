import { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import { endToEndFields, forwardableFields } from '../../http/hop-by-hop.ts'
import type { HandOver } from '../../http/message.ts'
import { setTraceFields } from '../../http/trace-context.ts'
import { toGatewayError } from '../../upstream/failure.ts'
import type { Translated } from '../exchange.ts'
import { type ForwardingFacts, forwardingFields } from '../forwarding-fields.ts'
import type { Next, Phase } from '../phase.ts'

/**
 * Content that nobody reads here flows up through @fastify/http-proxy, with backpressure; and a write that no row describes
 * goes the same way, so that its answer streams from the first byte on. A read has nothing to send up: the upstream room
 * carries it, and its answer streams all the same (docs/decisions/0013).
 */
const handsOver = ({ mayHandOver, service, matching, content, method }: Translated): boolean => {
  if (!mayHandOver || method === 'GET' || method === 'HEAD') return false
  return content instanceof Readable || service.contract === 'open' || matching.kind === 'unlisted'
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
    setTraceFields(fields, record.trace)
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
        // A write is carried out though its client has gone, but not begun; a read may have other readers.
        withdraw: method === 'GET' || method === 'HEAD' ? undefined : request.signal,
        flow: exchange.client.address,
        interim,
        attempted: record.trace?.attempted,
      })
      .then(
        (response) => {
          record.upstreamMs += options.clock.monotonic() - began
          return response
        },
        (error: unknown) => {
          record.upstreamMs += options.clock.monotonic() - began
          throw error
        },
      )
  },
})
