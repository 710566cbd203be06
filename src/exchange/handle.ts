import { forwardedStatus } from '../cache/cache-read.ts'
import type { BypassReason } from '../cache/decide-caching.ts'
import { unlimited } from '../http/bounds.ts'
import { type Answer, type FieldLines, type GatewayResponse, withAdded } from '../http/message.ts'
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
import { asKeyed, inSpan, type Outgoing, type Ready, type Received } from './exchange.ts'
import {
  type CompressResponse,
  conditional,
  type FinishContext,
  failure,
  finish,
  permit,
  refusal,
} from './finish.ts'
import { type ForwardContext, forward, passedOn } from './forward.ts'
import { answerList } from './list-of-requests.ts'
import { lastRecipient } from './max-forwards.ts'
import type { CacheContext, ExchangeWatch } from './ports.ts'
import { readThrough } from './read.ts'
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
export const handle = async (context: HandleContext, exchange: Received): Promise<GatewayResponse> => {
  const began = context.clock.monotonic()
  for (const watch of context.watches) watch.begin(exchange)
  let answer: Answer
  try {
    answer = await answered(context, exchange)
  } catch (error) {
    answer = failure(context, exchange, error)
  }
  answer = permit(exchange, answer)
  const response = finish(context, exchange, began, answer instanceof Promise ? await answer : answer)
  const durationMs = context.clock.monotonic() - began
  for (const watch of context.watches)
    watch.end(exchange, { head: response, content: response.content, durationMs })
  return response
}

const answered = async (context: HandleContext, exchange: Received): Promise<GatewayResponse> => {
  const { request, client } = exchange
  // Who asks, for which route, and how often: what is refused before a body is read.
  const authenticated = authenticate(exchange, context.report) // 401, 403
  if (authenticated instanceof Promise) await authenticated
  const matched = match(exchange) // 404, 405, 400
  const limits = exchange.origin === 'verify' ? undefined : context.limits
  const counted = limits && countRequest(matched, limits) // 429
  const limitFields = counted instanceof Promise ? await counted : counted
  authorize(matched, context.report) // 401

  // What is read of the body is counted until the response is there, or the head of one that streams.
  const reservation =
    request.content === undefined ? unlimited : context.budget('request-body', client.address)
  try {
    const validated = inSpan(
      context.spans,
      exchange,
      'validate',
      () => validate(matched, reservation, context.report), // 400, 413, 415
      (valid) => ('response' in valid ? valid.response : undefined),
    )
    const ready = validated instanceof Promise ? await validated : validated
    if ('response' in ready)
      return withLimits(refusal(context, exchange, ready.code, ready.response), limitFields)
    const answer = act(context, ready, decisionOf(ready))
    const response = answer instanceof Promise ? await answer : answer
    const coded = context.compress?.(ready, response) ?? response
    const encoded = coded instanceof Promise ? await coded : coded
    return withLimits(conditional(ready, encoded, context.clock), limitFields) // 304, 412
  } finally {
    reservation.release()
  }
}

const withLimits = (response: GatewayResponse, fields: FieldLines | undefined): GatewayResponse =>
  fields === undefined ? response : withAdded(response, fields)

/** What to do with the request; nothing else decides it. */
const decisionOf = (exchange: Ready): Decision => {
  const { documents, batch } = exchange.service.local
  return (
    ownOf(exchange.matching, { documents: documents !== undefined, batch: batch !== undefined }) ??
    forwardingOf(exchange)
  )
}

const forwardingOf = ({
  origin,
  generation,
  service,
  method,
  request,
  content,
  identity,
  sensitive,
  policy,
  meaning,
}: Ready): Decision => {
  const decision = decide(service.contract, policy, {
    method,
    fields: request.fields,
    hasContent: content !== undefined,
    effect: meaning?.effect,
    isUpgrade: request.upgrade !== undefined,
    sensitive,
    identity,
    sharesRoutes: () => generation.sharesRoutes(service),
  })
  // What is stored is compared with what the upstream says now.
  return origin === 'verify' && decision.kind === 'read' ? { kind: 'pass', reason: undefined } : decision
}

const reportBypass = (
  { report }: HandleContext,
  { service, record }: Ready,
  detail: BypassReason | undefined,
): void => {
  if (detail !== undefined) report({ kind: 'bypassed', service: service.name, route: record.route, detail })
}

/** Does what was decided. What a read or a write says of the cache is in `Cache-Status`. */
const act = (context: HandleContext, exchange: Ready, decision: Decision): Answer => {
  const { record } = exchange
  const send = (outgoing: Outgoing): Promise<GatewayResponse> => forward(context, outgoing)
  const inCache = (run: () => Answer): Answer =>
    inSpan(context.spans, exchange, 'cache', run, (response) => response)
  switch (decision.kind) {
    case 'own':
      return answerLocally(context, exchange, decision)
    case 'read':
      if (exchange.meaning?.parts !== undefined)
        return answerList(context.budget, exchange, exchange.meaning.parts, (item) => handle(context, item))
      return inCache(() => readThrough(context, asKeyed(exchange), decision.caching, send))
    case 'pass': {
      const own = lastRecipient(exchange)
      if (own !== undefined) return own
      record.cache = 'bypass'
      reportBypass(context, exchange, decision.reason)
      return inCache(async () => {
        const response = await send(passedOn(exchange))
        const { reason } = decision
        return reason === undefined ? response : withStatus(response, { reason: 'bypass', detail: reason })
      })
    }
    case 'write':
      record.cache = 'bypass'
      reportBypass(context, exchange, decision.sensitive)
      return inCache(async () => {
        const response = await write(context, exchange, send)
        const { sensitive } = decision
        if (sensitive !== undefined) return withStatus(response, { reason: 'bypass', detail: sensitive })
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

/** Index, OPTIONS and batch. Each item of a batch is an exchange of its own. */
const answerLocally = async (
  context: HandleContext,
  exchange: Ready,
  { what, row }: Extract<Decision, { readonly kind: 'own' }>,
): Promise<GatewayResponse> => {
  const { documents, batch } = exchange.service.local
  if (what === 'batch') {
    if (context.overload?.admits('batch') === false) throw overloaded(context.overload)
    if (batch !== undefined) return batch(exchange, (item) => handle(context, item))
  } else if (documents !== undefined) {
    return what === 'index'
      ? documents.index(exchange, row)
      : documents.options(exchange, row, () => act(context, exchange, forwardingOf(exchange)))
  }
  return act(context, exchange, forwardingOf(exchange))
}
