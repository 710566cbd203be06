import { Readable } from 'node:stream'
import { addressGroup } from '../../http/bounds/address-group.ts'
import type { ByteBudget } from '../../http/bounds/byte-budget.ts'
import { type RequestFields, requestField } from '../../http/fields.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { withTraceFields } from '../../http/trace-context.ts'
import { neverSent } from '../../upstream/failure.ts'
import type { ForwardRequest } from '../../upstream/forward-request.ts'
import type { Next, Phase, Translated } from '../exchange.ts'
import { type ForwardingFacts, sentFields } from '../reads/forwarding-fields.ts'
import { boundedContent, readContent } from '../reads/read-content.ts'

type ForwardOptions = {
  readonly facts: ForwardingFacts
  readonly budget: ByteBudget
}

/** With the validators that the cache adds, and the trace that the request belongs to. */
const allFields = (exchange: Translated, facts: ForwardingFacts): string[] => {
  const { withheld, extraFields, record } = exchange
  const sent = sentFields(exchange, withheld, facts)
  sent.push('accept-encoding', exchange.acceptEncoding)
  for (const name of Object.keys(extraFields)) sent.push(name, extraFields[name] as string)
  return withTraceFields(sent, record.trace)
}

/** A stream is framed as the client framed it: by its length, which `validate` has checked, or by chunks, which are counted. */
const sentContent = (exchange: Translated, fields: string[]): Buffer | Readable | undefined => {
  const { upstreamContent, request, service } = exchange
  if (!(upstreamContent instanceof Readable)) return upstreamContent
  const length = requestField(request.fields, 'content-length')
  if (length === undefined) return boundedContent(upstreamContent, service.uploadBytes)
  fields.push('content-length', length)
  return upstreamContent
}

const smallBytes = 16 * 1024

const isSmall = (fields: RequestFields): boolean =>
  Number(requestField(fields, 'content-length') ?? Number.POSITIVE_INFINITY) <= smallBytes

const send = (
  exchange: Translated,
  fields: string[],
  content: Buffer | Readable | undefined,
): Promise<GatewayResponse> => {
  const { service, request, method, record } = exchange
  const isRead = method === 'GET' || method === 'HEAD'
  const forwarded: ForwardRequest = {
    method,
    target: exchange.upstreamTarget,
    host: service.hostField,
    fields,
    content,
    signal: exchange.signal,
    // A write is not begun when its client has gone; a read may have other readers.
    withdraw: isRead ? undefined : request.signal,
    clientAddress: exchange.background ? '' : addressGroup(exchange.client.address),
    // Links in the upstream's names are of no use to a client.
    interim: service.translation === undefined ? request.interim : undefined,
    upgrade: request.upgrade,
    record,
    attempted: record.trace?.attempted,
  }
  return exchange.send === undefined ? service.upstream.forward(forwarded) : exchange.send(forwarded)
}

/** A small content is read before the request takes a slot of the upstream, so that a slow client holds none. */
const sendWhenRead = async (
  options: ForwardOptions,
  exchange: Translated,
  fields: string[],
  content: Readable,
): Promise<GatewayResponse> => {
  const { request, client } = exchange
  const reservation = options.budget('request-body', client.address)
  try {
    const read = await readContent(content, smallBytes, request.signal, reservation).catch((error: Error) => {
      throw neverSent(error)
    })
    return await send(exchange, fields, read)
  } finally {
    reservation.release()
  }
}

/** Innermost: sends the request to the upstream, which queues, tries and retries it. */
export const forward = (options: ForwardOptions): Phase<Translated, never> => ({
  name: 'forward',
  run: (exchange, _next: Next<never>) => {
    const fields = allFields(exchange, options.facts)
    const content = sentContent(exchange, fields)
    return content instanceof Readable && isSmall(exchange.request.fields)
      ? sendWhenRead(options, exchange, fields, content)
      : send(exchange, fields, content)
  },
})
