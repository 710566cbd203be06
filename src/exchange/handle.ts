import { forwardedStatus } from '../cache/cache-read.ts'
import type { BypassReason } from '../cache/decide-caching.ts'
import { unlimited } from '../http/bounds.ts'
import { type GatewayResponse, type HeaderLines, type ResponseOrPromise, withAdded } from '../http/message.ts'
import { type Decision, decide, ownOf } from '../service/decide.ts'
import {
  authenticate,
  authorize,
  countRequest,
  match,
  overloaded,
  type RateLimitOptions,
  validate,
} from './admit.ts'
import { asKeyed, inSpan, type Outgoing, type RequestContext, type ValidatedContext } from './exchange.ts'
import {
  addCorsHeaders,
  type CompressResponse,
  conditional,
  type FinishContext,
  failure,
  finish,
  refusal,
} from './finish.ts'
import { type ForwardContext, forward, passedOn } from './forward.ts'
import { responseList } from './list-of-requests.ts'
import { lastRecipient } from './max-forwards.ts'
import type { CacheContext, ExchangeWatch } from './ports.ts'
import { readThrough } from './read.ts'
import { noticeTasks } from './write/scheduled-tasks.ts'
import { write } from './write.ts'

/** What one configuration handles its requests with. */
export type HandleContext = FinishContext &
  CacheContext &
  ForwardContext & {
    readonly limits: RateLimitOptions | undefined
    readonly compress: CompressResponse | undefined
    /** The access log and traces. */
    readonly watches: readonly ExchangeWatch[]
  }

/** The response to a request of a client, or to an item of a batch; never rejects. docs/request-path.md walks through it. */
export const handle = async (
  context: HandleContext,
  requestContext: RequestContext,
): Promise<GatewayResponse> => {
  const began = context.clock.monotonic()
  for (const watch of context.watches) watch.begin(requestContext)
  let reply: ResponseOrPromise
  try {
    reply = await responded(context, requestContext)
  } catch (error) {
    reply = failure(context, requestContext, error)
  }
  reply = addCorsHeaders(requestContext, reply)
  const response = finish(context, requestContext, began, reply instanceof Promise ? await reply : reply)
  const durationMs = context.clock.monotonic() - began
  for (const watch of context.watches)
    watch.end(requestContext, { head: response, content: response.content, durationMs })
  return response
}

const responded = async (
  context: HandleContext,
  requestContext: RequestContext,
): Promise<GatewayResponse> => {
  const { request, client } = requestContext
  // Who asks, for which route, and how often: what is refused before a body is read.
  const authenticated = authenticate(requestContext, context.report) // 401, 403
  if (authenticated instanceof Promise) await authenticated
  const matched = match(requestContext) // 404, 405, 400
  const limits = requestContext.origin === 'verify' ? undefined : context.limits
  const counted = limits && countRequest(matched, limits) // 429
  const limitHeaders = counted instanceof Promise ? await counted : counted
  authorize(matched, context.report) // 401

  // What is read of the body is counted until the response is there, or the head of one that streams.
  const reservation =
    request.content === undefined ? unlimited : context.budget('request-body', client.address)
  try {
    const validated = inSpan(
      context.spans,
      requestContext,
      'validate',
      () => validate(matched, reservation, context.report), // 400, 413, 415
      (valid) => ('response' in valid ? valid.response : undefined),
    )
    const ready = validated instanceof Promise ? await validated : validated
    if ('response' in ready)
      return withLimits(refusal(context, requestContext, ready.code, ready.response), limitHeaders)
    const reply = act(context, ready, decisionOf(ready))
    const response = reply instanceof Promise ? await reply : reply
    const coded = context.compress?.(ready, response) ?? response
    const encoded = coded instanceof Promise ? await coded : coded
    return withLimits(conditional(ready, encoded, context.clock), limitHeaders) // 304, 412
  } finally {
    reservation.release()
  }
}

const withLimits = (response: GatewayResponse, headers: HeaderLines | undefined): GatewayResponse =>
  headers === undefined ? response : withAdded(response, headers)

/** What to do with the request; nothing else decides it. */
const decisionOf = (context: ValidatedContext): Decision => {
  const { documents, batch } = context.service.local
  return (
    ownOf(context.matching, { documents: documents !== undefined, batch: batch !== undefined }) ??
    forwardingOf(context)
  )
}

const forwardingOf = ({
  origin,
  snapshot,
  service,
  method,
  request,
  content,
  identity,
  uncacheable,
  policy,
  meaning,
}: ValidatedContext): Decision => {
  const decision = decide(service.contract, policy, {
    method,
    headers: request.headers,
    hasContent: content !== undefined,
    effect: meaning?.effect,
    isUpgrade: request.upgrade !== undefined,
    uncacheable,
    identity,
    sharesRoutes: () => snapshot.sharesRoutes(service),
  })
  // What is stored is compared with what the upstream says now.
  return origin === 'verify' && decision.kind === 'read' ? { kind: 'pass', reason: undefined } : decision
}

const reportBypass = (
  { report }: HandleContext,
  { service, record }: ValidatedContext,
  detail: BypassReason | undefined,
): void => {
  if (detail !== undefined) report({ kind: 'bypassed', service: service.name, route: record.route, detail })
}

/** Does what was decided. What a read or a write says of the cache is in `Cache-Status`. */
const act = (
  context: HandleContext,
  requestContext: ValidatedContext,
  decision: Decision,
): ResponseOrPromise => {
  const { record } = requestContext
  const send = async (outgoing: Outgoing): Promise<GatewayResponse> => {
    const response = await forward(context, outgoing)
    if (outgoing.effect !== 'write') noticeTasks(context, requestContext, response)
    return response
  }
  const inCache = (run: () => ResponseOrPromise): ResponseOrPromise =>
    inSpan(context.spans, requestContext, 'cache', run, (response) => response)
  switch (decision.kind) {
    case 'own':
      return respondLocally(context, requestContext, decision)
    case 'read':
      if (requestContext.meaning?.parts !== undefined)
        return responseList(context.budget, requestContext, requestContext.meaning.parts, (item) =>
          handle(context, item),
        )
      return inCache(() => readThrough(context, asKeyed(requestContext), decision.caching, send))
    case 'pass': {
      const own = lastRecipient(requestContext)
      if (own !== undefined) return own
      record.cache = 'bypass'
      reportBypass(context, requestContext, decision.reason)
      return inCache(async () => {
        const response = await send(passedOn(requestContext))
        const { reason } = decision
        return reason === undefined ? response : withStatus(response, { reason: 'bypass', detail: reason })
      })
    }
    case 'write':
      record.cache = 'bypass'
      reportBypass(context, requestContext, decision.uncacheable)
      return inCache(async () => {
        const response = await write(context, requestContext, send)
        const { uncacheable } = decision
        if (uncacheable !== undefined) return withStatus(response, { reason: 'bypass', detail: uncacheable })
        // A write of which more is known says why it dropped less than everything.
        const detail = record.writeKind === 'unknown' ? undefined : record.writeKind
        return withStatus(response, { reason: 'method', detail })
      })
  }
}

const withStatus = (
  response: GatewayResponse,
  forwarded: Parameters<typeof forwardedStatus>[0],
): GatewayResponse => withAdded(response, ['Cache-Status', forwardedStatus(forwarded)])

/** Index, OPTIONS and batch. Each item of a batch is a request of its own. */
const respondLocally = async (
  context: HandleContext,
  requestContext: ValidatedContext,
  { what, row }: Extract<Decision, { readonly kind: 'own' }>,
): Promise<GatewayResponse> => {
  const { documents, batch } = requestContext.service.local
  if (what === 'batch') {
    if (context.overload?.admits('batch') === false) throw overloaded(context.overload)
    if (batch !== undefined) return batch(requestContext, (item) => handle(context, item))
  } else if (documents !== undefined) {
    return what === 'index'
      ? documents.index(requestContext, row)
      : documents.options(requestContext, row, () =>
          act(context, requestContext, forwardingOf(requestContext)),
        )
  }
  return act(context, requestContext, forwardingOf(requestContext))
}
