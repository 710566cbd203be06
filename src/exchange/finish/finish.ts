import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import { notForDownstream, withoutDownstreamHeaders } from '../../http/headers/caching-headers.ts'
import { type GatewayResponse, withAdded } from '../../http/message.ts'
import { methodName } from '../../http/methods.ts'
import { errorResponse } from '../error-response.ts'
import type { ExchangeEvent, ExchangeFinishedEvent } from '../events.ts'
import type { RequestContext } from '../request-context.ts'

const asGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })

export type FinishDeps = {
  readonly clock: Clock
  /** For each request once; `report` gets all other events. */
  readonly finished: (event: ExchangeFinishedEvent) => void
  readonly report: (event: ExchangeEvent) => void
  /** `context` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, context: RequestContext) => void
}

const refused = (
  { id, service, record, origin }: RequestContext,
  code: string,
  status: number,
): ExchangeEvent => {
  record.code = code
  return { kind: 'request-refused', id, service: service.name, route: record.route, code, status, origin }
}

export const refusal = (
  { report }: Pick<FinishDeps, 'report'>,
  context: RequestContext,
  code: string,
  response: GatewayResponse,
): GatewayResponse => {
  report(refused(context, code, response.status))
  return response
}

/** Turns an error into a response in the service's format, and reports it. */
export const failure = (
  deps: FinishDeps,
  requestContext: RequestContext,
  thrown: unknown,
): GatewayResponse => {
  const error = asGatewayError(thrown)
  deps.report(refused(requestContext, error.code, error.facts.status))
  deps.failed(error, requestContext)
  const { id, origin, request } = requestContext
  // An item of a batch is part of a JSON document.
  return errorResponse(requestContext.service, error, {
    id,
    headers: origin === 'client' ? request.headers : {},
  })
}

/** Caches in front of the gateway store nothing of which its lines do not say so; an item of a batch has no such lines. */
const forDownstream = (
  { service, record, origin }: RequestContext,
  response: GatewayResponse,
): GatewayResponse => {
  if (service.responses.downstream === undefined) return response
  if (origin === 'batch') return withoutDownstreamHeaders(response)
  return record.isForDownstream ? response : notForDownstream(response)
}

/** Counts the request, and adds Via (RFC 9110 §7.6.3), the request id, and what is left of its limits. */
export const finish = (
  { clock, finished }: FinishDeps,
  context: RequestContext,
  began: number,
  response: GatewayResponse,
): GatewayResponse => {
  const { id, service, request, record, origin } = context
  if (origin === 'verify') return response
  finished({
    kind: 'exchange-finished',
    id,
    invalidated: record.invalidated,
    writeKind: record.writeKind,
    service: service.name,
    route: record.route,
    method: methodName(request.method),
    status: response.status,
    cache: record.cache,
    durationSeconds: (clock.monotonic() - began) / 1000,
    upstreamSeconds: record.upstreamMs / 1000,
    ageSeconds: record.ageSeconds,
    trace: record.trace?.sampled === true ? { id: record.trace.traceId, epochMs: clock.now() } : undefined,
    origin,
  })
  const added = ['Via', '1.1 trellis', 'X-Request-Id', id]
  if (record.limitHeaders !== undefined) added.push(...record.limitHeaders)
  return withAdded(forDownstream(context, response), added)
}
