import { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import type { Row } from '../../contracts/row.ts'
import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import { forwardableFields } from '../../http/hop-by-hop.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import { withTraceFields } from '../../http/trace-context.ts'
import { toGatewayError } from '../../upstream/failure.ts'
import { boundedContent } from '../bounded-content.ts'
import type { Translated } from '../exchange.ts'
import { type ForwardingFacts, forwardingFields } from '../forwarding-fields.ts'
import type { Next, Phase } from '../phase.ts'
import type { Service } from '../service.ts'

/**
 * Content that nobody reads here, and a write that no row describes: what the phases do to the answer they do to its head
 * alone, so that it streams from the first byte on (docs/decisions/0013).
 */
const handsOver = ({ mayHandOver, service, matching, content, method }: Translated): boolean => {
  if (!mayHandOver || method === 'GET' || method === 'HEAD') return false
  if (service.contract === 'open' || matching.kind !== 'found') return true
  return content instanceof Readable && !tellsWhatItMade(service, matching.row)
}

/** The answer to an upload names the new item and what it belongs to, which bounds what has to be dropped. */
const tellsWhatItMade = ({ contract }: Service, { kind }: Row): boolean =>
  contract === 'site' && kind === 'collection'

/** A stream is framed as the client framed it: by its length, which was held against the bound, or by chunks, which are counted. */
const sentContent = (exchange: Translated, fields: string[]): Buffer | Readable | undefined => {
  const { upstreamContent, request, service } = exchange
  if (!(upstreamContent instanceof Readable)) return upstreamContent
  const length = requestField(request.fields, 'content-length')
  if (length === undefined) return boundedContent(upstreamContent, service.uploadBytes)
  fields.push('content-length', length)
  return upstreamContent
}

const shape = (head: ResponseHead): ResponseHead => head

const failed = (cause: unknown): never => {
  throw cause instanceof GatewayError ? cause : toGatewayError(cause)
}

/** The client's fields, and in place of what is withheld or rebuilt the gateway's own. Stored content must be uncoded. */
const sentFields = (exchange: Translated, facts: ForwardingFacts): string[] => {
  const { request, withheld, extraFields, record } = exchange
  const sent = forwardableFields(request.fields, withheld)
  sent.push('accept-encoding', 'identity', ...forwardingFields(exchange, facts))
  for (const name of Object.keys(extraFields)) sent.push(name, extraFields[name] as string)
  return withTraceFields(sent, record.trace)
}

/** The innermost phase: queue, breaker, retry budget and attempts are the upstream room's business. */
export const forward = (options: {
  readonly clock: Clock
  readonly facts: ForwardingFacts
}): Phase<Translated, never> => ({
  name: 'forward',
  run: (exchange, _next: Next<never>) => {
    const { service, request, method, record } = exchange
    const fields = sentFields(exchange, options.facts)
    const isRead = method === 'GET' || method === 'HEAD'
    // Links in the upstream's names are of no use to a client.
    const interim = service.translation === undefined ? request.interim : undefined

    const content = sentContent(exchange, fields)
    const began = options.clock.monotonic()
    const upstreamEnded = (): void => {
      record.upstreamMs += options.clock.monotonic() - began
    }
    const ask = (): Promise<GatewayResponse> =>
      service.upstream
        .forward({
          method,
          target: exchange.upstreamTarget,
          fields,
          content,
          signal: exchange.signal,
          // A write is carried out though its client has gone, but not begun; a read may have other readers.
          withdraw: isRead ? undefined : request.signal,
          flow: exchange.client.address,
          interim,
          attempted: record.trace?.attempted,
        })
        .then(
          (response) => {
            upstreamEnded()
            return response
          },
          (error: unknown) => {
            upstreamEnded()
            throw error
          },
        )
    return handsOver(exchange) ? { kind: 'hand-over', forward: ask, shape, failed } : ask()
  },
})
