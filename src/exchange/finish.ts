import { pipeline, type Readable } from 'node:stream'
import { takesUncodedOnly } from '../cache/cache-read.ts'
import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { addCount } from '../http/bounds/counts.ts'
import {
  isConditional,
  parseEntityTagList,
  preconditionResponse,
  tagOfCoded,
} from '../http/conditional/preconditions.ts'
import {
  acceptedForms,
  codedHeaders,
  compress as compressed,
  createCoder,
  mayBeCoded,
  prefersHtml,
  type StreamCoding,
  withVaryByCoding,
} from '../http/content-coding.ts'
import { notForDownstream, variesBy, withoutDownstreamHeaders } from '../http/headers/caching-headers.ts'
import { mayHaveRights } from '../http/headers/credential-headers.ts'
import {
  type HeaderLines,
  headerValue,
  type RequestHeaders,
  requestHeader,
  withHeader,
  withoutHeaders,
} from '../http/headers/header-lines.ts'
import { memoize } from '../http/memo.ts'
import {
  type GatewayRequest,
  type GatewayResponse,
  type ResponseOrPromise,
  whenKnown,
  withAdded,
} from '../http/message.ts'
import { isGet, isGetOrHead, isHead, methodName } from '../http/methods.ts'
import type { AnyOrigin } from '../service/connection.ts'
import type { ErrorShape, Invalid, RefusedRequest } from '../service/contract.ts'
import { type ErrorPage, errorPagePolicy, plainErrorPage } from '../service/error-page.ts'
import { methodOverrideHeader } from '../service/method-override.ts'
import { problemShape } from '../service/problem.ts'
import type { ExchangeEvent, PipelineEvent } from './events.ts'
import type { MatchedContext, RequestContext, Service, ValidatedContext } from './exchange.ts'

/** A response that the gateway makes itself, complete with its framing. */
const madeResponse = (
  status: number,
  contentType: string,
  text: string,
  headers: readonly string[],
): GatewayResponse => {
  const content = Buffer.from(text)
  return {
    status,
    headers: ['Content-Type', contentType, 'Content-Length', String(content.length), ...headers],
    content,
  }
}

const asGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })

const errorHeaders = (error: GatewayError): string[] => {
  const headers = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...error.headers]
  if (error.retryAfterSeconds !== undefined) headers.push('Retry-After', String(error.retryAfterSeconds))
  // The rest of the content was not read; the bytes behind it must not be parsed as a request.
  if (error.code === 'content_too_large' || error.code === 'request_timeout') {
    headers.push('Connection', 'close')
  }
  return headers
}

/** The page of the service where a browser asks for one; undefined: the client gets JSON. */
const pageFor = (shape: ErrorShape, headers: RequestHeaders): ErrorPage | undefined => {
  const accept = shape.page === undefined ? undefined : requestHeader(headers, 'accept')
  return accept !== undefined && prefersHtml(accept) ? shape.page : undefined
}

const unknownService: ErrorShape = { ...problemShape, page: plainErrorPage }

type AskedHeaders = {
  /** Of the request; none where there is no request that could be read. */
  readonly headers: RequestHeaders
  readonly id: string
}

/** Makes a response of an error, in the format of the service; undefined: the service is unknown. */
export const errorResponse = (
  service: Pick<Service, 'contract' | 'address'> | undefined,
  error: GatewayError,
  { headers, id }: AskedHeaders,
): GatewayResponse => {
  const shape = service?.contract.errors ?? unknownService
  const page = pageFor(shape, headers)
  const { status } = error.facts
  const serviceHeaders = service === undefined ? [] : shape.headers(service.address.publicRoot)
  if (page !== undefined)
    return madeResponse(status, 'text/html; charset=utf-8', page(error, id), [
      ...['Content-Security-Policy', errorPagePolicy, 'Vary', 'Accept'],
      ...serviceHeaders,
      ...errorHeaders(error),
    ])
  const body = error.body ?? shape.body(error)
  const contentType = shape.contentTypeFor?.(headers) ?? shape.contentType
  return madeResponse(status, contentType, shape.text(body), [...serviceHeaders, ...errorHeaders(error)])
}

/** The same for a request that does not reach `handle`, which adds the id to all others. */
export const earlyErrorResponse = (
  service: Pick<Service, 'contract' | 'address'> | undefined,
  error: GatewayError,
  request: AskedHeaders,
): GatewayResponse => withAdded(errorResponse(service, error, request), ['X-Request-Id', request.id])

/**
 * Does its refusal follow from the target alone? Without content, and without headers that validation or the response read, every
 * client is refused alike.
 */
export const isRefusedByTargetAlone = ({ method, headers, content }: GatewayRequest): boolean =>
  isGet(method) &&
  content === undefined &&
  headers['content-type'] === undefined &&
  headers[methodOverrideHeader] === undefined &&
  !mayHaveRights(headers)

/** A refusal whose body a validator has already made in the service's shape. */
export const refusalResponse = (
  {
    service,
    ...request
  }: Omit<RefusedRequest, 'publicRoot'> & {
    readonly service: Pick<Service, 'contract' | 'address'>
  },
  invalid: Invalid,
): GatewayResponse => {
  const { errors } = service.contract
  const { contentType, headers } = errors.refusal(
    { ...request, publicRoot: service.address.publicRoot },
    invalid,
  )
  return madeResponse(invalid.status, contentType, errors.text(invalid.body), headers)
}

const allowOrigin = 'access-control-allow-origin'

/** One of the headers without the others is another policy: a shop allows its methods to all, but names the origins. */
const policyHeaders = [allowOrigin, 'access-control-allow-methods', 'access-control-allow-credentials']

/** As browsers write it; what the upstream would clean before it answers it is left to the upstream. */
const plain = /^(?:null|https?:\/\/[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?(?::\d{1,5})?)$/

/** The Origin of a request, when the permission for it can be written without asking. */
export const plainOrigin = (headers: RequestHeaders): string | undefined => {
  const origin = headers['origin']
  return typeof origin === 'string' && plain.test(origin) ? origin : undefined
}

/** The lines with the permission for one origin; no header of them is sent twice. */
const withPermission = (
  lines: HeaderLines,
  { isRepeated, others }: AnyOrigin,
  origin: string,
): HeaderLines => {
  if (policyHeaders.some((name) => headerValue(lines, name) !== undefined)) return lines
  const withCorsHeaders = [...lines, 'Access-Control-Allow-Origin', isRepeated ? origin : '*']
  for (let i = 0; i < others.length; i += 2) {
    const name = others[i] as string
    if (headerValue(lines, name) === undefined) withCorsHeaders.push(name, others[i + 1] as string)
  }
  return withCorsHeaders
}

/** A response of the upstream to a request without Origin, for one origin. HEAD alone gets no Vary without an Origin. */
export const withCorsHeaders = <Response extends GatewayResponse>(
  response: Response,
  policy: AnyOrigin,
  origin: string,
  method: string,
): Response => {
  const varies = variesBy(response.headers, 'origin')
  if (!varies && !isHead(method)) return response
  const headers = withPermission(response.headers, policy, origin)
  return {
    ...response,
    headers: varies || headers === response.headers ? headers : [...headers, 'Vary', 'Origin'],
  }
}

/** A response that the gateway made, with what the upstream would have allowed. */
export const corsForOwnResponse = (
  response: GatewayResponse,
  policy: AnyOrigin | undefined,
  origin: string | undefined,
): GatewayResponse => {
  const vary = headerValue(response.headers, 'vary')
  const headers = variesBy(response.headers, 'origin')
    ? response.headers
    : withHeader(response.headers, 'Vary', vary === undefined ? 'Origin' : `Origin, ${vary}`)
  return {
    ...response,
    headers: policy === undefined || origin === undefined ? headers : withPermission(headers, policy, origin),
  }
}

export type FinishDeps = {
  readonly clock: Clock
  /** For each request once; `report` gets all other events. */
  readonly finished: (event: ExchangeEvent) => void
  readonly report: (event: PipelineEvent) => void
  /** `context` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, context: RequestContext) => void
}

/**
 * The client's preconditions (RFC 9110 §13), on complete responses to reads. A response that streams, and one of a service
 * without routes that bypassed the cache, is left as it is: the upstream got the preconditions itself. The cache has evaluated them already.
 */
export const conditional = (
  { method, request, record, service }: ValidatedContext,
  response: GatewayResponse,
  clock: Clock,
): GatewayResponse => {
  if (!isGetOrHead(method) || !isConditional(request.headers)) return response
  if (!Buffer.isBuffer(response.content)) return response
  if (!service.contract.hasRoutes && record.cache === 'bypass') return response
  return preconditionResponse({ method, headers: request.headers }, response, clock.now()) ?? response
}

const refused = (
  { id, service, record, origin }: RequestContext,
  code: string,
  status: number,
): PipelineEvent => {
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

/** An error, or a response for which neither the cache nor the upstream was asked. */
const isMadeHere = ({ record }: RequestContext): boolean =>
  record.code !== undefined || (record.cache === 'none' && record.target === undefined)

/** While a process refuses because it or its upstream cannot do more, nothing is asked in addition. */
const mayAsk = (status: number): boolean => status < 500 && status !== 429

const policyFor = (
  { service, request, path, matching }: RequestContext & Partial<MatchedContext>,
  status: number,
): AnyOrigin | undefined | Promise<AnyOrigin | undefined> => {
  const { contract } = service
  const { anyOrigins } = service.responses
  const routeMatch = matching ?? contract.find(request.method, path)
  // Where there is no route, the index speaks for the site.
  if (!('row' in routeMatch))
    return routeMatch.kind === 'refused' || contract.unlisted === 'refuse' ? anyOrigins?.site() : undefined
  return mayAsk(status)
    ? anyOrigins?.askRoute(routeMatch.row, routeMatch.path)
    : anyOrigins?.route(routeMatch.row)
}

/** Pages of other origins may read a response of the gateway itself where they may read those of the upstream. */
export const addCorsHeaders = (context: RequestContext, response: GatewayResponse): ResponseOrPromise => {
  if (context.service.responses.anyOrigins === undefined || context.origin !== 'client') return response
  if (!isMadeHere(context)) return response
  const origin = plainOrigin(context.request.headers)
  if (origin === undefined) return corsForOwnResponse(response, undefined, undefined)
  return whenKnown(policyFor(context, response.status), (policy) =>
    corsForOwnResponse(response, policy, origin),
  )
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

/** Counts the request, and adds the request id and Via (RFC 9110 §7.6.3). */
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
  return withAdded(forDownstream(context, response), ['Via', '1.1 trellis', 'X-Request-Id', id])
}

export type CompressOptions = {
  /** Best first. */
  readonly codings: readonly StreamCoding[]
  /** Shorter contents are left as they are. */
  readonly minBytes: number
}

/** Responses that are compressed at once; each has a window of up to 256 KiB and some tables. Beyond that they are sent uncompressed. */
const maxAtOnce = 64

/** Takes a slot; gives the function that gives it back, to be called once, or undefined when none is free. */
type TakeSlot = (address: string) => (() => void) | undefined

/**
 * Clients that read slowly hold slots for long. A client may hold half of those that others do not hold, as in upstream/send/slots.ts: n
 * such clients get one part in n + 1 each, and one part stays free.
 */
const createCompressionSlots = (): TakeSlot => {
  const byClient = new Map<string, number>()
  let slotsInUse = 0
  const count = (client: string, by: 1 | -1): void => {
    slotsInUse += by
    addCount(byClient, client, by)
  }
  return (address) => {
    const client = addressGroup(address)
    if ((byClient.get(client) ?? 0) >= maxAtOnce - slotsInUse) return undefined
    count(client, 1)
    return () => count(client, -1)
  }
}

/** Longest time that the coder keeps what it has received, however fast more arrives: a page appears while it is made. */
const flushAfterMs = 20

const codedStream = (content: Readable, coding: StreamCoding, done: () => void): Readable => {
  const { stream, flush } = createCoder(coding)
  let timer: NodeJS.Timeout | undefined
  const flushUnsent = (): void => {
    timer = undefined
    if (!stream.destroyed && !stream.writableEnded) flush()
  }
  stream.once('close', () => {
    clearTimeout(timer)
    done()
  })
  // An error on either side ends both; the reader of the coded stream sees it.
  pipeline(content, stream, () => {})
  content.on('data', () => {
    timer ??= setTimeout(flushUnsent, flushAfterMs)
  })
  return stream
}

const lengthOf = ({ content, headers }: GatewayResponse): number => {
  if (Buffer.isBuffer(content)) return content.length
  return Number(headerValue(headers, 'content-length') ?? Number.POSITIVE_INFINITY)
}

const lengthHeader: ReadonlySet<string> = new Set(['content-length'])

/** A 304 has the tag and the Vary of the form that the client has (RFC 9110 §15.4.5): the upstream has the uncoded one only. */
const withHeadersOfForm = (
  response: GatewayResponse,
  requestHeaders: RequestHeaders,
  codings: readonly StreamCoding[],
): GatewayResponse => {
  const list = requestHeader(requestHeaders, 'if-none-match')
  const tag = headerValue(response.headers, 'etag')
  if (list === undefined || tag === undefined) return response
  const listedTags = parseEntityTagList(list)
  if (listedTags === '*' || listedTags.some(({ opaque }) => opaque === tag)) return response
  const form = codings
    .map((coding) => tagOfCoded(tag, coding))
    .find((formTag) => listedTags.some(({ opaque }) => opaque === formTag))
  if (form === undefined) return response
  return { ...response, headers: withVaryByCoding(withHeader(response.headers, 'ETag', form)) }
}

export type CompressResponse = (context: ValidatedContext, response: GatewayResponse) => ResponseOrPromise

/**
 * Compresses uncompressed responses for clients that accept a coding: responses that are not stored, and streams that are being
 * stored. A hit has its coding already. Before preconditions are evaluated, which then see the entity tag that the client sees.
 */
export const createCompression = (options: CompressOptions): CompressResponse => {
  const accepted = memoize((value) => acceptedForms(value, options.codings), 64)
  const takeSlot = createCompressionSlots()

  const inCoding = (
    response: GatewayResponse,
    headers: HeaderLines,
    coding: StreamCoding,
    done: () => void,
  ): ResponseOrPromise => {
    const { status, content } = response
    if (!Buffer.isBuffer(content)) {
      return {
        status,
        headers: codedHeaders(headers, coding),
        content: codedStream(content as Readable, coding, done),
      }
    }
    const uncoded = { status, headers, content }
    return compressed(content, coding)
      .then((shorter) =>
        shorter === undefined
          ? uncoded
          : {
              status,
              headers: [...codedHeaders(headers, coding), 'Content-Length', String(shorter.length)],
              content: shorter,
            },
      )
      .catch(() => uncoded)
      .finally(done)
  }

  const isCompressible = (request: GatewayRequest, response: GatewayResponse): boolean =>
    (response.content !== undefined || isHead(request.method)) &&
    response.status !== 206 &&
    lengthOf(response) >= options.minBytes &&
    !takesUncodedOnly(request.headers) &&
    mayBeCoded(response)

  const forClient = (
    { request, client, record }: ValidatedContext,
    response: GatewayResponse,
  ): ResponseOrPromise => {
    if (record.cache === 'hit') return response
    if (response.status === 304) return withHeadersOfForm(response, request.headers, options.codings)
    if (!isCompressible(request, response)) return response
    const { status, content } = response
    const headers = withVaryByCoding(response.headers)
    const [coding] = accepted(requestHeader(request.headers, 'accept-encoding') ?? '').codings
    if (coding === undefined) return { status, headers, content }
    // The length must be that of GET (RFC 9110 §8.6), which only compressing would show.
    if (isHead(request.method)) return { status, headers: withoutHeaders(headers, lengthHeader), content }
    const done = takeSlot(client.address)
    return done === undefined ? { status, headers, content } : inCoding(response, headers, coding, done)
  }

  return (context, response) => {
    const { service, request } = context
    return request.headers['accept-encoding'] === undefined || !service.responses.compresses
      ? response
      : forClient(context, response)
  }
}
