import { pipeline, Readable } from 'node:stream'
import { addressGroup, type ByteBudget } from '../../http/bounds.ts'
import { withTraceFields } from '../../http/forwardable-fields.ts'
import type { PublicLinks } from '../../http/links.ts'
import {
  type GatewayResponse,
  type Interim,
  type RequestFields,
  type ResponseHead,
  requestField,
  whenKnown,
} from '../../http/message.ts'
import type { ContentMapper, Translation } from '../../service/announced.ts'
import { neverSent } from '../../upstream/failure.ts'
import type { ForwardRequest } from '../../upstream/messages.ts'
import {
  asTranslated,
  type Next,
  type Outgoing,
  type Phase,
  type Translated,
  upstreamTarget,
} from '../exchange.ts'
import { boundedContent, type ForwardingFacts, isActingRead, readContent, sentFields } from '../reads.ts'

const mappedContent = (content: Buffer | Readable, mapper: ContentMapper): Buffer | Readable => {
  if (Buffer.isBuffer(content)) return mapper.whole(content)
  const mapped = mapper.transform()
  // An error on either side ends both; the reader of the mapped stream sees it.
  pipeline(content, mapped, () => {})
  return mapped
}

const translatedResponse = (response: GatewayResponse, translation: Translation): GatewayResponse => {
  const mapper = translation.fromUpstreamContent(response.fields)
  const fields = translation.fromUpstreamFields(response.fields)
  return mapper === undefined || response.content === undefined
    ? { ...response, fields }
    : { ...response, fields, content: mappedContent(response.content, mapper) }
}

const withPublicLinks = <Head extends ResponseHead>(head: Head, links: PublicLinks, path: string): Head => {
  const fields = links(head.fields, path)
  return fields === head.fields ? head : { ...head, fields }
}

/** Public names and URLs become the upstream's in the request, and public again in the response: once for each stored response. */
export const translate = (): Phase<Outgoing, Translated> => ({
  name: 'translate',
  run: (exchange, next) => {
    const { service, matching, query, content, request } = exchange
    const { translation, links } = service
    const target = upstreamTarget(service, matching.path, query)
    if (translation === undefined) {
      const answer = next(asTranslated(exchange, target, content))
      if (links === undefined) return answer
      return whenKnown(answer, (response) => withPublicLinks(response, links, matching.path))
    }
    const upstreamContent = Buffer.isBuffer(content)
      ? translation.toUpstreamContent(content, requestField(request.fields, 'content-type'))
      : content
    const response = whenKnown(upstreamContent, (mapped) => next(asTranslated(exchange, target, mapped)))
    return whenKnown(response, (known) => translatedResponse(known, translation))
  },
})

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

const publicInterim = ({ request, service, matching }: Translated): Interim | undefined => {
  const { interim } = request
  const { links } = service
  if (interim === undefined || links === undefined) return interim
  return (head) => interim(withPublicLinks(head, links, matching.path))
}

const send = (
  exchange: Translated,
  fields: string[],
  content: Buffer | Readable | undefined,
): Promise<GatewayResponse> => {
  const { service, request, method, record } = exchange
  const isRead = method === 'GET' || method === 'HEAD'
  const forwarded: ForwardRequest = {
    method,
    isWrite: exchange.policy.effect === 'writes' || isActingRead(exchange),
    target: exchange.upstreamTarget,
    host: service.hostField,
    fields,
    content,
    signal: exchange.signal,
    // A write is not sent when its client has disconnected; a read may have other clients.
    withdraw: isRead ? undefined : request.signal,
    clientAddress: exchange.background ? '' : addressGroup(exchange.client.address),
    // Links in the upstream's names are of no use to a client.
    interim: service.translation === undefined ? publicInterim(exchange) : undefined,
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
