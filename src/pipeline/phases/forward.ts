import { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import type { Row } from '../../contracts/row.ts'
import { GatewayError } from '../../errors.ts'
import { addressGroup } from '../../http/address-group.ts'
import type { ByteBudget } from '../../http/byte-budget.ts'
import { type RequestFields, requestField } from '../../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import { withTraceFields } from '../../http/trace-context.ts'
import { neverSent, toGatewayError } from '../../upstream/failure.ts'
import type { Next, Phase, Translated } from '../exchange.ts'
import { type ForwardingFacts, sentFields } from '../reads/forwarding-fields.ts'
import { boundedContent, readContent } from '../reads/read-content.ts'
import type { Service } from '../service.ts'

/**
 * Content that nobody reads here, and a write that no row describes: what the phases do to the answer they do to its head
 * alone, so that it streams from the first byte on (docs/decisions/0013).
 */
const handsOver = ({ mayHandOver, service, matching, content, method }: Translated): boolean => {
  if (!mayHandOver || method === 'GET' || method === 'HEAD') return false
  if (service.contract === 'open' || matching.kind === 'unlisted') return true
  if (!(content instanceof Readable)) return false
  return matching.kind !== 'found' || !tellsWhatItMade(service, matching.row)
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

/** Content that says it is no longer is read before it takes a slot of the upstream, so that a slow client holds none. */
const smallBytes = 16 * 1024

const isSmall = (fields: RequestFields): boolean =>
  Number(requestField(fields, 'content-length') ?? Number.POSITIVE_INFINITY) <= smallBytes

const shape = (head: ResponseHead): ResponseHead => head

const failed = (cause: unknown): never => {
  throw cause instanceof GatewayError ? cause : toGatewayError(cause)
}

/** With the validators that the cache adds, and the trace that the request belongs to. */
const allFields = (exchange: Translated, facts: ForwardingFacts): string[] => {
  const { withheld, extraFields, record } = exchange
  const sent = sentFields(exchange, withheld, facts)
  for (const name of Object.keys(extraFields)) sent.push(name, extraFields[name] as string)
  return withTraceFields(sent, record.trace)
}

/** The innermost phase: queue, breaker, retry budget and attempts are the upstream room's business. */
export const forward = (options: {
  readonly clock: Clock
  readonly facts: ForwardingFacts
  readonly budget: ByteBudget
}): Phase<Translated, never> => ({
  name: 'forward',
  run: (exchange, _next: Next<never>) => {
    const { service, request, method, record } = exchange
    const fields = allFields(exchange, options.facts)
    const isRead = method === 'GET' || method === 'HEAD'
    // Links in the upstream's names are of no use to a client.
    const interim = service.translation === undefined ? request.interim : undefined

    const content = sentContent(exchange, fields)
    const began = options.clock.monotonic()
    const upstreamEnded = (): void => {
      record.upstreamMs += options.clock.monotonic() - began
    }
    const send = (sent: Buffer | Readable | undefined): Promise<GatewayResponse> =>
      service.upstream
        .forward({
          method,
          target: exchange.upstreamTarget,
          fields,
          content: sent,
          signal: exchange.signal,
          // A write is carried out though its client has gone, but not begun; a read may have other readers.
          withdraw: isRead ? undefined : request.signal,
          ...(exchange.background ? {} : { clientAddress: addressGroup(exchange.client.address) }),
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
    const ask = (): Promise<GatewayResponse> => {
      if (!(content instanceof Readable) || !isSmall(request.fields)) return send(content)
      const room = options.budget('request-body', exchange.client.address)
      return readContent(content, smallBytes, request.signal, room)
        .then(send, (error: Error) => {
          throw neverSent(error)
        })
        .finally(() => room.release())
    }
    return handsOver(exchange) ? { kind: 'hand-over', forward: ask, shape, failed } : ask()
  },
})
