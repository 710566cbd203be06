import { pipeline, type Readable } from 'node:stream'
import { takesUncodedOnly } from '../cache/cache-read.ts'
import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { addCount, addressGroup } from '../http/bounds.ts'
import { notForReceivers, variesBy, withoutReceiverFields } from '../http/caching-fields.ts'
import {
  isConditional,
  parseEntityTagList,
  preconditionResponse,
  tagOfCoded,
} from '../http/conditional/preconditions.ts'
import {
  acceptedForms,
  codedFields,
  compress as compressed,
  createCoder,
  mayBeCoded,
  prefersHtml,
  type StreamCoding,
  withVaryByCoding,
} from '../http/content-coding.ts'
import { mayHaveRights } from '../http/credential-fields.ts'
import { remembered } from '../http/memo.ts'
import {
  type Answer,
  type FieldLines,
  fieldValue,
  type GatewayRequest,
  type GatewayResponse,
  methodName,
  type RequestFields,
  requestField,
  whenKnown,
  withAdded,
  withField,
  withoutFields,
} from '../http/message.ts'
import { isGet, isGetOrHead, isHead } from '../http/methods.ts'
import type { AnyOrigin } from '../service/announced.ts'
import type { ErrorShape, Invalid, RefusedRequest } from '../service/contract.ts'
import { type ErrorPage, errorPagePolicy, plainErrorPage } from '../service/error-page.ts'
import { methodOverrideHeader } from '../service/method-override.ts'
import { problemShape } from '../service/problem.ts'
import type { ExchangeEvent, PipelineEvent } from './events.ts'
import type { Matched, Ready, Received, Service } from './exchange.ts'

/** An answer that the gateway makes itself, complete with its framing. */
const madeAnswer = (
  status: number,
  contentType: string,
  text: string,
  fields: readonly string[],
): GatewayResponse => {
  const content = Buffer.from(text)
  return {
    status,
    fields: ['Content-Type', contentType, 'Content-Length', String(content.length), ...fields],
    content,
  }
}

const asGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })

const errorFields = (error: GatewayError): string[] => {
  const fields = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...error.fields]
  if (error.retryAfterSeconds !== undefined) fields.push('Retry-After', String(error.retryAfterSeconds))
  // The rest of the content was not read; the bytes behind it must not be parsed as a request.
  if (error.code === 'content_too_large' || error.code === 'request_timeout') {
    fields.push('Connection', 'close')
  }
  return fields
}

/** The page of the service where a browser asks for one; undefined: the client gets JSON. */
const pageFor = (shape: ErrorShape, fields: RequestFields): ErrorPage | undefined => {
  const accept = shape.page === undefined ? undefined : requestField(fields, 'accept')
  return accept !== undefined && prefersHtml(accept) ? shape.page : undefined
}

const unknownService: ErrorShape = { ...problemShape, page: plainErrorPage }

type AskedFields = {
  /** Of the request; none where there is no request that could be read. */
  readonly fields: RequestFields
  readonly id: string
}

/** Makes a response of an error, in the format of the service; undefined: the service is unknown. */
export const errorAnswer = (
  service: Pick<Service, 'contract' | 'address'> | undefined,
  error: GatewayError,
  { fields, id }: AskedFields,
): GatewayResponse => {
  const shape = service?.contract.errors ?? unknownService
  const page = pageFor(shape, fields)
  const { status } = error.facts
  const serviceFields = service === undefined ? [] : shape.fields(service.address.publicRoot)
  if (page !== undefined)
    return madeAnswer(status, 'text/html; charset=utf-8', page(error, id), [
      ...['Content-Security-Policy', errorPagePolicy, 'Vary', 'Accept'],
      ...serviceFields,
      ...errorFields(error),
    ])
  const body = error.body ?? shape.body(error)
  const contentType = shape.contentTypeFor?.(fields) ?? shape.contentType
  return madeAnswer(status, contentType, shape.text(body), [...serviceFields, ...errorFields(error)])
}

/** The same for a request that does not reach `handle`, which adds the id to all others. */
export const earlyErrorAnswer = (
  service: Pick<Service, 'contract' | 'address'> | undefined,
  error: GatewayError,
  request: AskedFields,
): GatewayResponse => withAdded(errorAnswer(service, error, request), ['X-Request-Id', request.id])

/**
 * Does its refusal follow from the target alone? Without content, and without fields that validation or the response read, every
 * client is refused alike.
 */
export const isRefusedByTargetAlone = ({ method, fields, content }: GatewayRequest): boolean =>
  isGet(method) &&
  content === undefined &&
  fields['content-type'] === undefined &&
  fields[methodOverrideHeader] === undefined &&
  !mayHaveRights(fields)

/** A refusal whose body a validator has already made in the service's shape. */
export const refusalAnswer = (
  {
    service,
    ...request
  }: Omit<RefusedRequest, 'publicRoot'> & {
    readonly service: Pick<Service, 'contract' | 'address'>
  },
  invalid: Invalid,
): GatewayResponse => {
  const { errors } = service.contract
  const { contentType, fields } = errors.refusal(
    { ...request, publicRoot: service.address.publicRoot },
    invalid,
  )
  return madeAnswer(invalid.status, contentType, errors.text(invalid.body), fields)
}

const allowOrigin = 'access-control-allow-origin'

/** One of the fields without the others is another policy: a shop allows its methods to all, but names the origins. */
const policyFields = [allowOrigin, 'access-control-allow-methods', 'access-control-allow-credentials']

/** As browsers write it; what the upstream would clean before it answers it is left to the upstream. */
const plain = /^(?:null|https?:\/\/[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?(?::\d{1,5})?)$/

/** The Origin of a request, when the permission for it can be written without asking. */
export const plainOrigin = (fields: RequestFields): string | undefined => {
  const origin = fields['origin']
  return typeof origin === 'string' && plain.test(origin) ? origin : undefined
}

/** The lines with the permission for one origin; no field of them is sent twice. */
const withPermission = (lines: FieldLines, { isRepeated, others }: AnyOrigin, origin: string): FieldLines => {
  if (policyFields.some((name) => fieldValue(lines, name) !== undefined)) return lines
  const permitted = [...lines, 'Access-Control-Allow-Origin', isRepeated ? origin : '*']
  for (let i = 0; i < others.length; i += 2) {
    const name = others[i] as string
    if (fieldValue(lines, name) === undefined) permitted.push(name, others[i + 1] as string)
  }
  return permitted
}

/** A response of the upstream to a request without Origin, for one origin. HEAD alone gets no Vary without an Origin. */
export const permitted = <Response extends GatewayResponse>(
  response: Response,
  policy: AnyOrigin,
  origin: string,
  method: string,
): Response => {
  const varies = variesBy(response.fields, 'origin')
  if (!varies && !isHead(method)) return response
  const fields = withPermission(response.fields, policy, origin)
  return {
    ...response,
    fields: varies || fields === response.fields ? fields : [...fields, 'Vary', 'Origin'],
  }
}

/** A response that the gateway made, with what the upstream would have allowed. */
export const ownAnswerFor = (
  response: GatewayResponse,
  policy: AnyOrigin | undefined,
  origin: string | undefined,
): GatewayResponse => {
  const vary = fieldValue(response.fields, 'vary')
  const fields = variesBy(response.fields, 'origin')
    ? response.fields
    : withField(response.fields, 'Vary', vary === undefined ? 'Origin' : `Origin, ${vary}`)
  return {
    ...response,
    fields: policy === undefined || origin === undefined ? fields : withPermission(fields, policy, origin),
  }
}

export type FinishContext = {
  readonly clock: Clock
  /** For each exchange once; `report` gets all other events. */
  readonly finished: (event: ExchangeEvent) => void
  readonly report: (event: PipelineEvent) => void
  /** `exchange` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, exchange: Received) => void
}

/**
 * The client's preconditions (RFC 9110 §13), on complete responses to reads. A response that streams, and one of a service
 * without routes that bypassed the cache, is left as it is: the upstream got the preconditions itself. The cache has evaluated them already.
 */
export const conditional = (
  { method, request, record, service }: Ready,
  response: GatewayResponse,
  clock: Clock,
): GatewayResponse => {
  if (!isGetOrHead(method) || !isConditional(request.fields)) return response
  if (!Buffer.isBuffer(response.content)) return response
  if (!service.contract.hasRoutes && record.cache === 'bypass') return response
  return preconditionResponse({ method, fields: request.fields }, response, clock.now()) ?? response
}

const refused = ({ id, service, record, origin }: Received, code: string, status: number): PipelineEvent => {
  record.code = code
  return { kind: 'request-refused', id, service: service.name, route: record.route, code, status, origin }
}

export const refusal = (
  { report }: Pick<FinishContext, 'report'>,
  exchange: Received,
  code: string,
  response: GatewayResponse,
): GatewayResponse => {
  report(refused(exchange, code, response.status))
  return response
}

/** Turns an error into a response in the service's format, and reports it. */
export const failure = (context: FinishContext, exchange: Received, thrown: unknown): GatewayResponse => {
  const error = asGatewayError(thrown)
  context.report(refused(exchange, error.code, error.facts.status))
  context.failed(error, exchange)
  const { id, origin, request } = exchange
  // An item of a batch is part of a JSON document.
  return errorAnswer(exchange.service, error, { id, fields: origin === 'client' ? request.fields : {} })
}

/** An error, or a response for which neither the cache nor the upstream was asked. */
const isMadeHere = ({ record }: Received): boolean =>
  record.code !== undefined || (record.cache === 'none' && record.target === undefined)

/** While a process refuses because it or its upstream cannot do more, nothing is asked in addition. */
const mayAsk = (status: number): boolean => status < 500 && status !== 429

const policyFor = (
  { service, request, path, matching }: Received & Partial<Matched>,
  status: number,
): AnyOrigin | undefined | Promise<AnyOrigin | undefined> => {
  const { contract } = service
  const { anyOrigins } = service.responses
  const finding = matching ?? contract.find(request.method, path)
  // Where there is no route, the index speaks for the site.
  if (!('row' in finding))
    return finding.kind === 'refused' || contract.unlisted === 'refuse' ? anyOrigins?.site() : undefined
  return mayAsk(status) ? anyOrigins?.askRoute(finding.row, finding.path) : anyOrigins?.route(finding.row)
}

/** Pages of other origins may read a response of the gateway itself where they may read those of the upstream. */
export const permit = (exchange: Received, response: GatewayResponse): Answer => {
  if (exchange.service.responses.anyOrigins === undefined || exchange.origin !== 'client') return response
  if (!isMadeHere(exchange)) return response
  const origin = plainOrigin(exchange.request.fields)
  if (origin === undefined) return ownAnswerFor(response, undefined, undefined)
  return whenKnown(policyFor(exchange, response.status), (policy) => ownAnswerFor(response, policy, origin))
}

/** Caches in front of the gateway store nothing of which its lines do not say so; an item of a batch has no such lines. */
const forReceivers = ({ service, record, origin }: Received, response: GatewayResponse): GatewayResponse => {
  if (service.responses.downstream === undefined) return response
  if (origin === 'batch') return withoutReceiverFields(response)
  return record.isForReceivers ? response : notForReceivers(response)
}

/** Counts the exchange, and adds the request id and Via (RFC 9110 §7.6.3). */
export const finish = (
  { clock, finished }: FinishContext,
  exchange: Received,
  began: number,
  response: GatewayResponse,
): GatewayResponse => {
  const { id, service, request, record, origin } = exchange
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
  return withAdded(forReceivers(exchange, response), ['Via', '1.1 trellis', 'X-Request-Id', id])
}

export type CompressOptions = {
  /** Best first. */
  readonly codings: readonly StreamCoding[]
  /** Shorter contents are left as they are. */
  readonly minBytes: number
}

/** Responses that are compressed at once; each has a window of up to 256 KiB and some tables. Beyond that they are sent uncompressed. */
const mostAtOnce = 64

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
    if ((byClient.get(client) ?? 0) >= mostAtOnce - slotsInUse) return undefined
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

const lengthOf = ({ content, fields }: GatewayResponse): number => {
  if (Buffer.isBuffer(content)) return content.length
  return Number(fieldValue(fields, 'content-length') ?? Number.POSITIVE_INFINITY)
}

const lengthField: ReadonlySet<string> = new Set(['content-length'])

/** A 304 has the tag and the Vary of the form that the client has (RFC 9110 §15.4.5): the upstream has the uncoded one only. */
const withFieldsOfForm = (
  response: GatewayResponse,
  requestFields: RequestFields,
  codings: readonly StreamCoding[],
): GatewayResponse => {
  const list = requestField(requestFields, 'if-none-match')
  const tag = fieldValue(response.fields, 'etag')
  if (list === undefined || tag === undefined) return response
  const listedTags = parseEntityTagList(list)
  if (listedTags === '*' || listedTags.some(({ opaque }) => opaque === tag)) return response
  const form = codings
    .map((coding) => tagOfCoded(tag, coding))
    .find((formTag) => listedTags.some(({ opaque }) => opaque === formTag))
  if (form === undefined) return response
  return { ...response, fields: withVaryByCoding(withField(response.fields, 'ETag', form)) }
}

export type CompressResponse = (exchange: Ready, response: GatewayResponse) => Answer

/**
 * Compresses uncompressed responses for clients that accept a coding: responses that are not stored, and streams that are being
 * stored. A hit has its coding already. Before preconditions are evaluated, which then see the entity tag that the client sees.
 */
export const createCompression = (options: CompressOptions): CompressResponse => {
  const accepted = remembered((value) => acceptedForms(value, options.codings), 64)
  const takeSlot = createCompressionSlots()

  const inCoding = (
    response: GatewayResponse,
    fields: FieldLines,
    coding: StreamCoding,
    done: () => void,
  ): Answer => {
    const { status, content } = response
    if (!Buffer.isBuffer(content)) {
      return {
        status,
        fields: codedFields(fields, coding),
        content: codedStream(content as Readable, coding, done),
      }
    }
    const uncoded = { status, fields, content }
    return compressed(content, coding)
      .then((shorter) =>
        shorter === undefined
          ? uncoded
          : {
              status,
              fields: [...codedFields(fields, coding), 'Content-Length', String(shorter.length)],
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
    !takesUncodedOnly(request.fields) &&
    mayBeCoded(response)

  const forClient = ({ request, client, record }: Ready, response: GatewayResponse): Answer => {
    if (record.cache === 'hit') return response
    if (response.status === 304) return withFieldsOfForm(response, request.fields, options.codings)
    if (!isCompressible(request, response)) return response
    const { status, content } = response
    const fields = withVaryByCoding(response.fields)
    const [coding] = accepted(requestField(request.fields, 'accept-encoding') ?? '').codings
    if (coding === undefined) return { status, fields, content }
    // The length must be that of GET (RFC 9110 §8.6), which only compressing would show.
    if (isHead(request.method)) return { status, fields: withoutFields(fields, lengthField), content }
    const done = takeSlot(client.address)
    return done === undefined ? { status, fields, content } : inCoding(response, fields, coding, done)
  }

  return (exchange, response) => {
    const { service, request } = exchange
    return request.fields['accept-encoding'] === undefined || !service.responses.compresses
      ? response
      : forClient(exchange, response)
  }
}
