import { pipeline, Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import { addressGroup, type ByteBudget } from '../http/bounds.ts'
import { withUncodedTags } from '../http/conditional/preconditions.ts'
import { acceptedForms, forwardedCodings } from '../http/content-coding.ts'
import {
  forwardableField,
  forwardableFields,
  isUnusualName,
  namedAway,
  withTraceFields,
} from '../http/forwardable-fields.ts'
import type { PublicLinks } from '../http/links.ts'
import { remembered } from '../http/memo.ts'
import {
  type GatewayResponse,
  type Interim,
  type RequestFields,
  type ResponseHead,
  requestField,
} from '../http/message.ts'
import { isHead, isOptions, isPost } from '../http/methods.ts'
import type { ContentMapper, Translation } from '../service/announced.ts'
import type { ContentInspector } from '../service/contract.ts'
import { methodOverrideHeader } from '../service/method-override.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import { checkedContent, readContent, type ShedOptions, shed } from './admit.ts'
import {
  inSpan,
  type Matched,
  type OpenSpans,
  type Outgoing,
  type Ready,
  upstreamTarget,
} from './exchange.ts'
import { nextMaxForwards } from './max-forwards.ts'
import type { ForwardingFacts } from './ports.ts'

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

/** In the upstream's names. */
const translatedContent = ({ service, content, request }: Ready): Ready['content'] | Promise<Buffer> => {
  const { translation } = service.address
  return translation === undefined || !Buffer.isBuffer(content)
    ? content
    : translation.toUpstreamContent(content, requestField(request.fields, 'content-type'))
}

/** In public names, with public URLs. */
const publicResponse = ({ service, matching }: Ready, response: GatewayResponse): GatewayResponse => {
  const { translation, links } = service.address
  if (translation !== undefined) return translatedResponse(response, translation)
  return links === undefined ? response : withPublicLinks(response, links, matching.path)
}

export type ForwardContext = {
  readonly forwarding: ForwardingFacts
  /** Bounds the bytes that are held for requests in flight. */
  readonly budget: ByteBudget
  readonly overload: ShedOptions | undefined
  readonly spans: OpenSpans | undefined
}

/** With the validators that the cache adds, and the trace that the request belongs to. */
const allFields = (
  { exchange, withheld, extraFields, acceptEncoding }: Outgoing,
  facts: ForwardingFacts,
): string[] => {
  const lines = sentFields(exchange, withheld, facts)
  lines.push('accept-encoding', acceptEncoding)
  for (const name of Object.keys(extraFields)) lines.push(name, extraFields[name] as string)
  return withTraceFields(lines, exchange.record.trace)
}

/** A stream is framed as the client framed it: by its length, which `validate` has checked, or by chunks, which are counted. */
const framedContent = (
  { request, service }: Ready,
  content: Readable,
  inspector: ContentInspector | undefined,
  fields: string[],
): Readable => {
  const length = requestField(request.fields, 'content-length')
  if (length !== undefined) fields.push('content-length', length)
  return length === undefined || inspector !== undefined
    ? checkedContent(content, service.limits.uploadBytes, inspector)
    : content
}

const inspectorFor = ({ service, request, matching }: Ready): ContentInspector | undefined =>
  service.contract.inspectContent?.(
    request.method,
    request.fields,
    matching.kind === 'found' ? matching : undefined,
  )

const smallBytes = 16 * 1024

const isSmall = (fields: RequestFields): boolean =>
  Number(requestField(fields, 'content-length') ?? Number.POSITIVE_INFINITY) <= smallBytes

const publicInterim = ({ request, service, matching }: Ready): Interim | undefined => {
  const { interim } = request
  const { links } = service.address
  if (interim === undefined || links === undefined) return interim
  return (head) => interim(withPublicLinks(head, links, matching.path))
}

const send = (
  { exchange, effect, background, signal }: Outgoing,
  fields: string[],
  content: Ready['content'],
): Promise<GatewayResponse> => {
  const { service, request, record } = exchange
  const forwarded: ForwardRequest = {
    // As it came: a server in front of the upstream may let no other method pass, and PHP reads a form of POST alone.
    method: request.method,
    effect,
    target: upstreamTarget(service.address, exchange.matching.path, exchange.query),
    host: service.address.hostField,
    fields,
    content,
    signal,
    // A write is not sent when its client has disconnected; a read may have other clients.
    withdraw: effect === 'write' ? request.signal : undefined,
    clientAddress: background ? '' : addressGroup(exchange.client.address),
    // Links in the upstream's names are of no use to a client.
    interim: service.address.translation === undefined ? publicInterim(exchange) : undefined,
    upgrade: request.upgrade,
    record,
    progress: record.write,
    attempted: record.trace?.attempted,
  }
  return exchange.send === undefined ? service.upstream.forward(forwarded) : exchange.send(forwarded)
}

/** A small content is read before the request takes a slot of the upstream, so that a slow client holds none, and nothing of a refused one is sent. */
const sendWhenRead = async (
  budget: ByteBudget,
  outgoing: Outgoing,
  fields: string[],
  content: Readable,
): Promise<GatewayResponse> => {
  const { request, client } = outgoing.exchange
  const reservation = budget('request-body', client.address)
  try {
    const read = await readContent(content, smallBytes, request.signal, reservation)
    return await send(outgoing, fields, read)
  } finally {
    reservation.release()
  }
}

const sendTranslated = (
  { budget, forwarding }: ForwardContext,
  outgoing: Outgoing,
  translated: Ready['content'],
): Promise<GatewayResponse> => {
  const { exchange } = outgoing
  const fields = allFields(outgoing, forwarding)
  if (!(translated instanceof Readable)) return send(outgoing, fields, translated)
  const content = framedContent(exchange, translated, inspectorFor(exchange), fields)
  return isSmall(exchange.request.fields)
    ? sendWhenRead(budget, outgoing, fields, content)
    : send(outgoing, fields, content)
}

/** Sends the request to the upstream, which queues, tries and retries it. Names and URLs become the upstream's, and public again in the response. */
export const forward = async (context: ForwardContext, outgoing: Outgoing): Promise<GatewayResponse> => {
  const { exchange } = outgoing
  shed(exchange, context.overload)
  const content = await translatedContent(exchange)
  const response = await inSpan(
    context.spans,
    exchange,
    'upstream',
    () => sendTranslated(context, outgoing, content),
    (head) => head,
  )
  return publicResponse(exchange, response)
}

const nothing: ReadonlySet<string> = new Set()
const maxForwards: ReadonlySet<string> = new Set(['max-forwards'])

/** The request as it came. With a condition that names a form made here, the tag of the upstream is sent too. */
export const passedOn = (exchange: Ready): Outgoing => {
  const { request } = exchange
  const isConditioned = hasTagCondition(request.fields)
  return {
    exchange,
    effect: 'pass',
    extraFields: isConditioned ? ownConditions(request.fields) : nextMaxForwards(exchange),
    withheld: isConditioned ? tagConditions : isOptions(exchange.method) ? maxForwards : nothing,
    acceptEncoding: codingsToPass(exchange),
    background: exchange.origin === 'verify',
    signal: request.signal,
  }
}

type Known = Pick<Matched, 'id' | 'client' | 'request' | 'service' | 'identity' | 'matching'>

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Fields that the gateway writes in place of the client's: Via, Forwarded (RFC 7239) and X-Forwarded-* from the connection and the configuration. */
const written: Readonly<Record<string, (exchange: Known, facts: ForwardingFacts) => string>> = {
  via: ({ request }, { via }) => {
    const before = requestField(request.fields, 'via')
    return before === undefined ? `1.1 ${via}` : `${before}, 1.1 ${via}`
  },
  forwarded: ({ client, service }) =>
    `for=${quoted(client.address)};proto=${client.protocol};host="${service.address.publicHost}"`,
  'x-forwarded-for': ({ client }) => client.address,
  'x-forwarded-proto': ({ client }) => client.protocol,
  'x-forwarded-host': ({ service }) => service.address.publicHost,
  'x-request-id': ({ id }) => id,
}

const writtenFields = Object.entries(written)

const declaredField = (
  { request: { fields } }: Known,
  name: string,
  withheld: ReadonlySet<string>,
): string | undefined =>
  withheld.has(name) || namedAway(fields).has(name) ? undefined : requestField(fields, name)

const headersOf = ({ matching }: Known): readonly string[] =>
  (matching.kind === 'found' && matching.endpoint.headers) || []

/** The name that many upstreams read as this one: `account-id` for `account_id`. */
const twinOf = (name: string): string => name.replaceAll(/[._]/g, '-')

/** The key of a stored response has only the fields that its own operation declares: others are not sent, nor is the twin of a claim. */
const declaredNames = (exchange: Known): ReadonlySet<string> => {
  const names = [...exchange.service.contract.declaredFields, ...headersOf(exchange).filter(isUnusualName)]
  return new Set(names.filter((name) => exchange.service.access?.claimFields.includes(twinOf(name)) !== true))
}

/** The response is keyed by the declared one. */
const twinsOf = (exchange: Known, declared: ReadonlySet<string>): readonly string[] => {
  const headers = headersOf(exchange)
  return [...declared].map(twinOf).filter((name) => !headers.includes(name))
}

/** With the fields that `access` keeps from the upstream: API keys, and what clients send in place of claims. */
const allWithheld = (
  exchange: Known,
  declared: ReadonlySet<string>,
  withheld: ReadonlySet<string>,
): ReadonlySet<string> => {
  const { access } = exchange.service
  return access === undefined && declared.size === 0
    ? withheld
    : new Set([...withheld, ...(access?.withheld ?? []), ...twinsOf(exchange, declared)])
}

/** Of a POST alone, which counts as the method that it names: no other request may turn into a write at the upstream. */
const sentOverride = ({ request, service }: Known): string | undefined =>
  isPost(request.method) && service.contract.sendsMethodOverride
    ? requestField(request.fields, methodOverrideHeader)
    : undefined

/** The fields of a request to the upstream, as lines: the client's, and those that the gateway writes, claims among them. Throws loop_detected. */
const sentFields = (exchange: Known, withheld: ReadonlySet<string>, facts: ForwardingFacts): string[] => {
  const { identity, request } = exchange
  const { fields } = request
  if (requestField(fields, 'via')?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  const declared = declaredNames(exchange)
  const lines = forwardableFields(fields, allWithheld(exchange, declared, withheld))
  for (const name of declared) {
    const value = declaredField(exchange, name, withheld)
    if (value !== undefined) lines.push(name, value)
  }
  const override = sentOverride(exchange)
  if (override !== undefined) lines.push(methodOverrideHeader, override)
  for (const [name, valueFor] of writtenFields) lines.push(name, valueFor(exchange, facts))
  if (identity !== undefined) for (const [name, value] of identity.fields) lines.push(name, value)
  return lines
}

/** The value with which `sentFields` sends one field, undefined when it does not; without making the others. */
export const createSentField = (
  exchange: Known,
  withheld: ReadonlySet<string>,
  facts: ForwardingFacts,
): ((name: string) => string | undefined) => {
  const { fields } = exchange.request
  const declared = declaredNames(exchange)
  const unsent = { named: namedAway(fields), withheld: allWithheld(exchange, declared, withheld) }
  return (name) =>
    Object.hasOwn(written, name)
      ? written[name]?.(exchange, facts)
      : (exchange.identity?.fields.get(name) ??
        (declared.has(name)
          ? declaredField(exchange, name, unsent.withheld)
          : forwardableField(fields, name, unsent)))
}

/** `Accept-Encoding` for a response that the gateway reads or rewrites. */
export const uncoded = 'identity'

const passed = remembered(forwardedCodings, 64)

/** Codings that a stored response is decoded from, once for all clients. */
const decodable = ['br', 'gzip'] as const

const stored = remembered((value) => {
  const { codings } = acceptedForms(value, decodable)
  return codings.length === 0 ? uncoded : codings.join(', ')
}, 64)

const acceptedBy = ({ request, service }: Ready): string | undefined =>
  // Names and URLs are translated in uncoded contents only.
  service.address.translation === undefined ? requestField(request.fields, 'accept-encoding') : undefined

/** `Accept-Encoding` for a response to this client alone, as the upstream sends it. */
export const codingsToPass = (exchange: Ready): string => {
  const accepted = acceptedBy(exchange)
  return accepted === undefined ? uncoded : passed(accepted)
}

/**
 * `Accept-Encoding` for a response that may be stored. The client accepts what is asked for: it gets the response unchanged where
 * that is not stored. Parts and lengths are those of the uncoded form.
 */
export const codingsToStore = (exchange: Ready, added: Readonly<Record<string, string>>): string => {
  const { method, request } = exchange
  const isPartial = request.fields['range'] !== undefined || added['range'] !== undefined
  const accepted = isHead(method) || isPartial ? undefined : acceptedBy(exchange)
  return accepted === undefined ? uncoded : stored(accepted)
}

/** Request fields that `ownConditions` replaces. */
export const tagConditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

const hasTagCondition = (fields: RequestFields): boolean =>
  fields['if-none-match'] !== undefined || fields['if-match'] !== undefined

/** Entity tags of content codings are made by the gateway: the upstream cannot compare them, so its own tags are added. */
export const ownConditions = (fields: RequestFields): Readonly<Record<string, string>> => {
  const match = requestField(fields, 'if-match')
  const noneMatch = requestField(fields, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}
