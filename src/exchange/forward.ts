import { pipeline, Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import type { ByteBudget } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { withUncodedTags } from '../http/conditional/preconditions.ts'
import { acceptedForms, forwardedCodings } from '../http/content-coding.ts'
import {
  forwardableHeader,
  forwardableHeaders,
  isUnusualName,
  namedAway,
  withTraceHeaders,
} from '../http/headers/forwardable-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { PublicLinks } from '../http/headers/links.ts'
import { memoize } from '../http/memo.ts'
import type { GatewayResponse, Interim, ResponseHead } from '../http/message.ts'
import { isHead, isOptions, isPost } from '../http/methods.ts'
import type { ContentMapper, Translation } from '../service/connection.ts'
import type { ContentInspector } from '../service/contract.ts'
import { methodOverrideHeader } from '../service/method-override.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import { checkedContent, readContent, type ShedOptions, shed } from './admit.ts'
import {
  inSpan,
  type MatchedContext,
  type OpenSpans,
  type Outgoing,
  upstreamTarget,
  type ValidatedContext,
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
  const mapper = translation.fromUpstreamContent(response.headers)
  const headers = translation.fromUpstreamHeaders(response.headers)
  return mapper === undefined || response.content === undefined
    ? { ...response, headers }
    : { ...response, headers, content: mappedContent(response.content, mapper) }
}

const withPublicLinks = <Head extends ResponseHead>(head: Head, links: PublicLinks, path: string): Head => {
  const headers = links(head.headers, path)
  return headers === head.headers ? head : { ...head, headers }
}

/** In the upstream's names. */
const translatedContent = ({
  service,
  content,
  request,
}: ValidatedContext): ValidatedContext['content'] | Promise<Buffer> => {
  const { translation } = service.address
  return translation === undefined || !Buffer.isBuffer(content)
    ? content
    : translation.toUpstreamContent(content, requestHeader(request.headers, 'content-type'))
}

/** In public names, with public URLs. */
const publicResponse = (
  { service, matching }: ValidatedContext,
  response: GatewayResponse,
): GatewayResponse => {
  const { translation, links } = service.address
  if (translation !== undefined) return translatedResponse(response, translation)
  return links === undefined ? response : withPublicLinks(response, links, matching.path)
}

export type ForwardDeps = {
  readonly forwarding: ForwardingFacts
  /** Bounds the bytes that are held for requests in flight. */
  readonly budget: ByteBudget
  readonly overload: ShedOptions | undefined
  readonly spans: OpenSpans | undefined
}

/** With the validators that the cache adds, and the trace that the request belongs to. */
const allHeaders = (
  { context, stripped, extraHeaders, acceptEncoding }: Outgoing,
  facts: ForwardingFacts,
): string[] => {
  const lines = sentHeaders(context, stripped, facts)
  lines.push('accept-encoding', acceptEncoding)
  for (const name of Object.keys(extraHeaders)) lines.push(name, extraHeaders[name] as string)
  return withTraceHeaders(lines, context.record.trace)
}

/** A stream is framed as the client framed it: by its length, which `validate` has checked, or by chunks, which are counted. */
const framedContent = (
  { request, service }: ValidatedContext,
  content: Readable,
  inspector: ContentInspector | undefined,
  headers: string[],
): Readable => {
  const length = requestHeader(request.headers, 'content-length')
  if (length !== undefined) headers.push('content-length', length)
  return length === undefined || inspector !== undefined
    ? checkedContent(content, service.limits.uploadBytes, inspector)
    : content
}

const inspectorFor = ({ service, request, matching }: ValidatedContext): ContentInspector | undefined =>
  service.contract.inspectContent?.(
    request.method,
    request.headers,
    matching.kind === 'found' ? matching : undefined,
  )

const smallBytes = 16 * 1024

const isSmall = (headers: RequestHeaders): boolean =>
  Number(requestHeader(headers, 'content-length') ?? Number.POSITIVE_INFINITY) <= smallBytes

const publicInterim = ({ request, service, matching }: ValidatedContext): Interim | undefined => {
  const { interim } = request
  const { links } = service.address
  if (interim === undefined || links === undefined) return interim
  return (head) => interim(withPublicLinks(head, links, matching.path))
}

const send = (
  { context, effect, background, signal }: Outgoing,
  headers: string[],
  content: ValidatedContext['content'],
): Promise<GatewayResponse> => {
  const { service, request, record } = context
  const forwarded: ForwardRequest = {
    // As it came: a server in front of the upstream may let no other method pass, and PHP reads a form of POST alone.
    method: request.method,
    effect,
    target: upstreamTarget(service.address, context.matching.path, context.query),
    host: service.address.hostHeader,
    headers,
    content,
    signal,
    // A write is not sent when its client has disconnected; a read may have other clients.
    withdraw: effect === 'write' ? request.signal : undefined,
    clientAddress: background ? '' : addressGroup(context.client.address),
    // Links in the upstream's names are of no use to a client.
    interim: service.address.translation === undefined ? publicInterim(context) : undefined,
    upgrade: request.upgrade,
    record,
    progress: record.life,
    attempted: record.trace?.attempted,
  }
  return context.send === undefined ? service.upstream.forward(forwarded) : context.send(forwarded)
}

/** A small content is read before the request takes a slot of the upstream, so that a slow client holds none, and nothing of a refused one is sent. */
const sendWhenRead = async (
  budget: ByteBudget,
  outgoing: Outgoing,
  headers: string[],
  content: Readable,
): Promise<GatewayResponse> => {
  const { request, client } = outgoing.context
  const reservation = budget('request-body', client.address)
  try {
    const read = await readContent(content, smallBytes, request.signal, reservation)
    return await send(outgoing, headers, read)
  } finally {
    reservation.release()
  }
}

const sendTranslated = (
  { budget, forwarding }: ForwardDeps,
  outgoing: Outgoing,
  translated: ValidatedContext['content'],
): Promise<GatewayResponse> => {
  const { context } = outgoing
  const headers = allHeaders(outgoing, forwarding)
  if (!(translated instanceof Readable)) return send(outgoing, headers, translated)
  const content = framedContent(context, translated, inspectorFor(context), headers)
  return isSmall(context.request.headers)
    ? sendWhenRead(budget, outgoing, headers, content)
    : send(outgoing, headers, content)
}

/** Sends the request to the upstream, which queues, tries and retries it. Names and URLs become the upstream's, and public again in the response. */
export const forward = async (deps: ForwardDeps, outgoing: Outgoing): Promise<GatewayResponse> => {
  const { context: requestContext } = outgoing
  shed(requestContext, deps.overload)
  const content = await translatedContent(requestContext)
  const response = await inSpan(
    deps.spans,
    requestContext,
    'upstream',
    () => sendTranslated(deps, outgoing, content),
    (head) => head,
  )
  return publicResponse(requestContext, response)
}

const nothing: ReadonlySet<string> = new Set()
const maxForwards: ReadonlySet<string> = new Set(['max-forwards'])

/** The request as it came. With a condition that names a form made here, the tag of the upstream is sent too. */
export const passedOn = (context: ValidatedContext): Outgoing => {
  const { request } = context
  const isConditioned = hasTagCondition(request.headers)
  return {
    context,
    effect: 'pass',
    extraHeaders: isConditioned ? ownConditions(request.headers) : nextMaxForwards(context),
    stripped: isConditioned ? tagConditions : isOptions(context.method) ? maxForwards : nothing,
    acceptEncoding: codingsToPass(context),
    background: context.origin === 'verify',
    signal: request.signal,
  }
}

type Known = Pick<MatchedContext, 'id' | 'client' | 'request' | 'service' | 'identity' | 'matching'>

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Headers that the gateway writes in place of the client's: Via, Forwarded (RFC 7239) and X-Forwarded-* from the connection and the configuration. */
const written: Readonly<Record<string, (context: Known, facts: ForwardingFacts) => string>> = {
  via: ({ request }, { via }) => {
    const before = requestHeader(request.headers, 'via')
    return before === undefined ? `1.1 ${via}` : `${before}, 1.1 ${via}`
  },
  forwarded: ({ client, service }) =>
    `for=${quoted(client.address)};proto=${client.protocol};host="${service.address.publicHost}"`,
  'x-forwarded-for': ({ client }) => client.address,
  'x-forwarded-proto': ({ client }) => client.protocol,
  'x-forwarded-host': ({ service }) => service.address.publicHost,
  'x-request-id': ({ id }) => id,
}

const writtenHeaders = Object.entries(written)

const declaredHeader = (
  { request: { headers } }: Known,
  name: string,
  stripped: ReadonlySet<string>,
): string | undefined =>
  stripped.has(name) || namedAway(headers).has(name) ? undefined : requestHeader(headers, name)

const headersOf = ({ matching }: Known): readonly string[] =>
  (matching.kind === 'found' && matching.endpoint.headers) || []

/** The name that many upstreams read as this one: `account-id` for `account_id`. */
const twinOf = (name: string): string => name.replaceAll(/[._]/g, '-')

/** The key of a stored response has only the headers that its own operation declares: others are not sent, nor is the twin of a claim. */
const declaredNames = (context: Known): ReadonlySet<string> => {
  const names = [...context.service.contract.declaredHeaders, ...headersOf(context).filter(isUnusualName)]
  return new Set(names.filter((name) => context.service.access?.claimHeaders.includes(twinOf(name)) !== true))
}

/** The response is keyed by the declared one. */
const twinsOf = (context: Known, declared: ReadonlySet<string>): readonly string[] => {
  const headers = headersOf(context)
  return [...declared].map(twinOf).filter((name) => !headers.includes(name))
}

/** With the headers that `access` keeps from the upstream: API keys, and what clients send in place of claims. */
const allStripped = (
  context: Known,
  declared: ReadonlySet<string>,
  stripped: ReadonlySet<string>,
): ReadonlySet<string> => {
  const { access } = context.service
  return access === undefined && declared.size === 0
    ? stripped
    : new Set([...stripped, ...(access?.stripped ?? []), ...twinsOf(context, declared)])
}

/** Of a POST alone, which counts as the method that it names: no other request may turn into a write at the upstream. */
const sentOverride = ({ request, service }: Known): string | undefined =>
  isPost(request.method) && service.contract.sendsMethodOverride
    ? requestHeader(request.headers, methodOverrideHeader)
    : undefined

/** The headers of a request to the upstream, as lines: the client's, and those that the gateway writes, claims among them. Throws loop_detected. */
const sentHeaders = (context: Known, stripped: ReadonlySet<string>, facts: ForwardingFacts): string[] => {
  const { identity, request } = context
  const { headers } = request
  if (requestHeader(headers, 'via')?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  const declared = declaredNames(context)
  const lines = forwardableHeaders(headers, allStripped(context, declared, stripped))
  for (const name of declared) {
    const value = declaredHeader(context, name, stripped)
    if (value !== undefined) lines.push(name, value)
  }
  const override = sentOverride(context)
  if (override !== undefined) lines.push(methodOverrideHeader, override)
  for (const [name, valueFor] of writtenHeaders) lines.push(name, valueFor(context, facts))
  if (identity !== undefined) for (const [name, value] of identity.headers) lines.push(name, value)
  return lines
}

/** The value with which `sentHeaders` sends one header, undefined when it does not; without making the others. */
export const createSentHeader = (
  context: Known,
  stripped: ReadonlySet<string>,
  facts: ForwardingFacts,
): ((name: string) => string | undefined) => {
  const { headers } = context.request
  const declared = declaredNames(context)
  const unsent = { named: namedAway(headers), stripped: allStripped(context, declared, stripped) }
  return (name) =>
    Object.hasOwn(written, name)
      ? written[name]?.(context, facts)
      : (context.identity?.headers.get(name) ??
        (declared.has(name)
          ? declaredHeader(context, name, unsent.stripped)
          : forwardableHeader(headers, name, unsent)))
}

/** `Accept-Encoding` for a response that the gateway reads or rewrites. */
export const uncoded = 'identity'

const passed = memoize(forwardedCodings, 64)

/** Codings that a stored response is decoded from, once for all clients. */
const decodable = ['br', 'gzip'] as const

const stored = memoize((value) => {
  const { codings } = acceptedForms(value, decodable)
  return codings.length === 0 ? uncoded : codings.join(', ')
}, 64)

const acceptedBy = ({ request, service }: ValidatedContext): string | undefined =>
  // Names and URLs are translated in uncoded contents only.
  service.address.translation === undefined ? requestHeader(request.headers, 'accept-encoding') : undefined

/** `Accept-Encoding` for a response to this client alone, as the upstream sends it. */
export const codingsToPass = (context: ValidatedContext): string => {
  const accepted = acceptedBy(context)
  return accepted === undefined ? uncoded : passed(accepted)
}

/**
 * `Accept-Encoding` for a response that may be stored. The client accepts what is asked for: it gets the response unchanged where
 * that is not stored. Parts and lengths are those of the uncoded form.
 */
export const codingsToStore = (
  context: ValidatedContext,
  added: Readonly<Record<string, string>>,
): string => {
  const { method, request } = context
  const isPartial = request.headers['range'] !== undefined || added['range'] !== undefined
  const accepted = isHead(method) || isPartial ? undefined : acceptedBy(context)
  return accepted === undefined ? uncoded : stored(accepted)
}

/** Request headers that `ownConditions` replaces. */
export const tagConditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

const hasTagCondition = (headers: RequestHeaders): boolean =>
  headers['if-none-match'] !== undefined || headers['if-match'] !== undefined

/** Entity tags of content codings are made by the gateway: the upstream cannot compare them, so its own tags are added. */
export const ownConditions = (headers: RequestHeaders): Readonly<Record<string, string>> => {
  const match = requestHeader(headers, 'if-match')
  const noneMatch = requestHeader(headers, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}
