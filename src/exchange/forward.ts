import { Readable } from 'node:stream'
import type { ByteBudget } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { withTraceHeaders } from '../http/headers/forwardable-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { type GatewayResponse, type ResponseOrPromise, whenKnown } from '../http/message.ts'
import { isOptions } from '../http/methods.ts'
import type { ContentInspector } from '../service/contract.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import { shed } from './admit/overload.ts'
import { checkedContent, readContent } from './admit/request-content.ts'
import { codingsToPass } from './forward/accepted-codings.ts'
import { nextMaxForwards } from './forward/max-forwards.ts'
import type { Outgoing } from './forward/outgoing.ts'
import { sentHeaders } from './forward/sent-headers.ts'
import { hasTagCondition, ownConditions, tagConditions } from './forward/tag-conditions.ts'
import { publicInterim, publicResponse, translatedContent } from './forward/translate.ts'
import type { ForwardingFacts, ShedOptions } from './ports.ts'
import type { ValidatedContext } from './request-context.ts'
import { upstreamTarget } from './service.ts'
import { inSpan, type OpenSpans } from './spans.ts'

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

const toUpstream = (
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
    progress: record.writeProgress,
    attempted: record.trace?.attempted,
  }
  return context.forwardItem === undefined
    ? service.upstream.request(forwarded)
    : context.forwardItem(forwarded)
}

/** A small content is read before the request takes a slot of the upstream, so that a slow client holds none, and nothing of a refused one is sent. */
const forwardWhenRead = async (
  budget: ByteBudget,
  outgoing: Outgoing,
  headers: string[],
  content: Readable,
): Promise<GatewayResponse> => {
  const { request, client } = outgoing.context
  const reservation = budget('request-body', client.address)
  try {
    const read = await readContent(content, smallBytes, request.signal, reservation)
    return await toUpstream(outgoing, headers, read)
  } finally {
    reservation.release()
  }
}

const forwardTranslated = (
  { budget, forwarding }: ForwardDeps,
  outgoing: Outgoing,
  translated: ValidatedContext['content'],
): Promise<GatewayResponse> => {
  const { context } = outgoing
  const headers = allHeaders(outgoing, forwarding)
  if (!(translated instanceof Readable)) return toUpstream(outgoing, headers, translated)
  const content = framedContent(context, translated, inspectorFor(context), headers)
  return isSmall(context.request.headers)
    ? forwardWhenRead(budget, outgoing, headers, content)
    : toUpstream(outgoing, headers, content)
}

/** Sends the request to the upstream, which queues, tries and retries it. Names and URLs become the upstream's, and public again in the response. */
export const forward = (deps: ForwardDeps, outgoing: Outgoing): ResponseOrPromise => {
  const { context: requestContext } = outgoing
  shed(requestContext, outgoing.effect, deps.overload)
  const response = whenKnown(translatedContent(requestContext), (content) =>
    inSpan(
      deps.spans,
      requestContext,
      'upstream',
      () => forwardTranslated(deps, outgoing, content),
      (head) => head,
    ),
  )
  return whenKnown(response, (known) => publicResponse(requestContext, known))
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
