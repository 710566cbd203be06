import { forwardedCacheStatus } from '../cache/cache-read.ts'
import type { BypassReason } from '../cache/decide-caching.ts'
import { unlimited } from '../http/bounds/byte-budget.ts'
import { type GatewayResponse, type ResponseOrPromise, whenKnown, withAdded } from '../http/message.ts'
import { type Decision, decide, ownOf } from '../service/decide.ts'
import { authenticate, authorize, authorizeContent } from './admit/authorize.ts'
import { match } from './admit/match.ts'
import { shedBatch } from './admit/overload.ts'
import { countRequest, type RateLimitOptions } from './admit/rate-limits.ts'
import { validate } from './admit/validate.ts'
import type { CompressResponse } from './compression.ts'
import { conditional } from './finish/conditional.ts'
import { type FinishDeps, failure, finish, refusal } from './finish/finish.ts'
import { addCorsHeaders } from './finish/own-cors-headers.ts'
import { lastRecipient } from './forward/max-forwards.ts'
import type { Outgoing } from './forward/outgoing.ts'
import { type ForwardDeps, forward, passedOn } from './forward.ts'
import type { CacheDeps, ExchangeWatch } from './ports.ts'
import { buildReading, recordRefusal } from './read/build-reading.ts'
import { responseList } from './read/list-of-requests.ts'
import { readThrough } from './read.ts'
import { asKeyed, type HandleBatch, type RequestContext, type ValidatedContext } from './request-context.ts'
import { inSpan } from './spans.ts'
import { noticeTasks } from './write/scheduled-tasks.ts'
import { write } from './write.ts'

/** All that a configuration snapshot handles its requests with. */
export type HandleDeps = FinishDeps &
  CacheDeps &
  ForwardDeps & {
    /** Of a service with a batch route. */
    readonly batchOf: (service: string) => HandleBatch | undefined
    readonly limits: RateLimitOptions | undefined
    readonly compress: CompressResponse | undefined
    /** The access log and traces. */
    readonly watches: readonly ExchangeWatch[]
  }

/** The response to a request of a client, or to an item of a batch; never rejects. docs/request-path.md walks through it. */
export const handle = async (deps: HandleDeps, requestContext: RequestContext): Promise<GatewayResponse> => {
  const began = deps.clock.monotonic()
  for (const watch of deps.watches) watch.begin(requestContext)
  let reply: ResponseOrPromise
  try {
    reply = await responded(deps, requestContext)
  } catch (error) {
    reply = failure(deps, requestContext, error)
  }
  if (requestContext.record.code !== undefined) recordRefusal(deps, requestContext)
  reply = addCorsHeaders(requestContext, reply)
  const response = finish(deps, requestContext, began, reply instanceof Promise ? await reply : reply)
  const durationMs = deps.clock.monotonic() - began
  for (const watch of deps.watches)
    watch.end(requestContext, { head: response, content: response.content, durationMs })
  return response
}

const responded = async (deps: HandleDeps, requestContext: RequestContext): Promise<GatewayResponse> => {
  const { request, client } = requestContext
  // Who asks, for which route, and how often: what is refused before a body is read.
  const authenticated = authenticate(requestContext, deps.report) // 401, 403, 503
  if (authenticated instanceof Promise) await authenticated
  const matched = match(requestContext) // 404, 405, 400
  const limits = requestContext.origin === 'verify' ? undefined : deps.limits
  const counted = limits && countRequest(matched, limits) // 429
  if (counted instanceof Promise) await counted
  authorize(matched, deps.report) // 401

  // What is read of the body is counted until the response is there, or the head of one that streams.
  const reservation = request.content === undefined ? unlimited : deps.budget('request-body', client.address)
  try {
    const validating = inSpan(
      deps.spans,
      requestContext,
      'validate',
      () => validate(matched, reservation, deps.report), // 400, 413, 415, 503
      (valid) => ('response' in valid ? valid.response : undefined),
    )
    const validated = validating instanceof Promise ? await validating : validating
    if ('response' in validated) return refusal(deps, requestContext, validated.code, validated.response)
    authorizeContent(validated, deps.report) // 401
    const reply = act(deps, validated, decisionOf(deps, validated))
    const response = reply instanceof Promise ? await reply : reply
    const coded = deps.compress?.(validated, response) ?? response
    const encoded = coded instanceof Promise ? await coded : coded
    return conditional(validated, encoded, deps.clock) // 304, 412
  } finally {
    reservation.release()
  }
}

/** What to do with the request. `write` finds out later which writes change nothing: the contract may have to read their content. */
const decisionOf = (deps: HandleDeps, context: ValidatedContext): Decision => {
  const { documents, name } = context.service
  return (
    ownOf(context.matching, {
      documents: documents !== undefined,
      batch: deps.batchOf(name) !== undefined,
    }) ?? forwardingOf(context)
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
  { report }: HandleDeps,
  { service, record }: ValidatedContext,
  detail: BypassReason | undefined,
): void => {
  if (detail !== undefined) report({ kind: 'bypassed', service: service.name, route: record.route, detail })
}

/** Does what was decided. What a read or a write says of the cache is in `Cache-Status`. */
const act = (deps: HandleDeps, requestContext: ValidatedContext, decision: Decision): ResponseOrPromise => {
  const { record } = requestContext
  const forwardOutgoing = (outgoing: Outgoing): ResponseOrPromise =>
    whenKnown(forward(deps, outgoing), (response) => {
      if (outgoing.effect !== 'write') noticeTasks(deps, requestContext, response)
      return response
    })
  const inCache = (run: () => ResponseOrPromise): ResponseOrPromise =>
    inSpan(deps.spans, requestContext, 'cache', run, (response) => response)
  if (decision.kind !== 'read') buildReading(deps, requestContext, '')?.usedUnknown()
  switch (decision.kind) {
    case 'own':
      return respondLocally(deps, requestContext, decision)
    case 'read':
      if (requestContext.meaning?.parts !== undefined)
        return responseList(deps.budget, requestContext, requestContext.meaning.parts, (item) =>
          handle(deps, item),
        )
      return inCache(() => readThrough(deps, asKeyed(requestContext), decision.caching, forwardOutgoing))
    case 'pass': {
      const own = lastRecipient(requestContext)
      if (own !== undefined) return own
      record.cache = 'bypass'
      reportBypass(deps, requestContext, decision.reason)
      return inCache(() =>
        whenKnown(forwardOutgoing(passedOn(requestContext)), (response) => {
          const { reason } = decision
          return reason === undefined
            ? response
            : withCacheStatus(response, { reason: 'bypass', detail: reason })
        }),
      )
    }
    case 'write':
      record.cache = 'bypass'
      reportBypass(deps, requestContext, decision.uncacheable)
      return inCache(async () => {
        const response = await write(deps, requestContext, forwardOutgoing)
        const { uncacheable } = decision
        if (uncacheable !== undefined)
          return withCacheStatus(response, { reason: 'bypass', detail: uncacheable })
        // A write of which more is known says why it dropped less than everything.
        const detail = record.writeKind === 'unclassified' ? undefined : record.writeKind
        return withCacheStatus(response, { reason: 'method', detail })
      })
  }
}

const withCacheStatus = (
  response: GatewayResponse,
  forwarded: Parameters<typeof forwardedCacheStatus>[0],
): GatewayResponse => withAdded(response, ['Cache-Status', forwardedCacheStatus(forwarded)])

/** Index, OPTIONS and batch. Each item of a batch is a request of its own. */
const respondLocally = async (
  deps: HandleDeps,
  requestContext: ValidatedContext,
  { what, row }: Extract<Decision, { readonly kind: 'own' }>,
): Promise<GatewayResponse> => {
  const { documents, name } = requestContext.service
  if (what === 'batch') {
    shedBatch(deps.overload)
    const handleBatch = deps.batchOf(name)
    if (handleBatch !== undefined) return handleBatch(requestContext, (item) => handle(deps, item))
  } else if (documents !== undefined) {
    return what === 'index'
      ? documents.index(requestContext, row)
      : documents.options(requestContext, row, () => act(deps, requestContext, forwardingOf(requestContext)))
  }
  return act(deps, requestContext, forwardingOf(requestContext))
}
