import { pipeline, type Readable } from 'node:stream'
import { takesUncodedOnly } from '../../cache/cache-read.ts'
import type { Clock } from '../../clock.ts'
import type { GatewayError } from '../../errors.ts'
import { addCount, addressGroup } from '../../http/bounds.ts'
import {
  isConditional,
  parseEntityTagList,
  preconditionResponse,
  tagOfCoded,
} from '../../http/conditional/preconditions.ts'
import {
  acceptedForms,
  codedFields,
  compress as compressed,
  createCoder,
  mayBeCoded,
  type StreamCoding,
  withVaryByCoding,
} from '../../http/content-coding.ts'
import { remembered } from '../../http/memo.ts'
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
} from '../../http/message.ts'
import type { AnyOrigin } from '../../service/announced.ts'
import { ownAnswerFor, plainOrigin } from '../any-origin.ts'
import { asGatewayError, errorAnswer } from '../error-answer.ts'
import type { ExchangeEvent, PipelineEvent } from '../events.ts'
import type { Matched, Phase, Ready, Received } from '../exchange.ts'
import type { ExchangeWatch } from '../ports.ts'

/** Outermost, for the access log and traces; only in the list when one of them is configured. */
export const observe = (options: {
  readonly clock: Clock
  readonly watches: readonly ExchangeWatch[]
}): Phase<Received> => ({
  name: 'observe',
  run: (exchange, next) => {
    const began = options.clock.monotonic()
    for (const watch of options.watches) watch.begin(exchange)
    return whenKnown(next(exchange), (response) => {
      const durationMs = options.clock.monotonic() - began
      for (const watch of options.watches)
        watch.end(exchange, { head: response, content: response.content, durationMs })
      return response
    })
  },
})

/** Counts every response once, and adds the request id and Via (RFC 9110 §7.6.3). */
export const stamp = (options: {
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}): Phase<Received> => {
  const { clock, report } = options

  const stamped = (exchange: Received, began: number, response: GatewayResponse): GatewayResponse => {
    const { record, request } = exchange
    report({
      kind: 'exchange-finished',
      id: exchange.id,
      invalidated: record.invalidated,
      taken: record.taken,
      service: exchange.service.name,
      route: record.route,
      method: methodName(request.method),
      status: response.status,
      cache: record.cache,
      durationSeconds: (clock.monotonic() - began) / 1000,
      upstreamSeconds: record.upstreamMs / 1000,
      ageSeconds: record.ageSeconds,
      trace: record.trace?.sampled === true ? { id: record.trace.traceId, epochMs: clock.now() } : undefined,
      origin: exchange.origin,
    })
    return withAdded(response, ['Via', '1.1 trellis', 'X-Request-Id', exchange.id])
  }

  return {
    name: 'stamp',
    run: (exchange, next) => {
      const began = clock.monotonic()
      return whenKnown(next(exchange), (response) => stamped(exchange, began, response))
    },
  }
}

/** An error, or a response of a phase that asked neither the cache nor the upstream. */
const isMadeHere = ({ record }: Received): boolean =>
  record.code !== undefined || (record.cache === 'none' && record.target === undefined)

/** While a process refuses because it or its upstream cannot do more, nothing is asked in addition. */
const mayAsk = (status: number): boolean => status < 500 && status !== 429

const policyFor = (
  { service, request, path, matching }: Received & Partial<Matched>,
  status: number,
): AnyOrigin | undefined | Promise<AnyOrigin | undefined> => {
  const { anyOrigins, contract } = service
  const finding = matching ?? contract.find(request.method, path)
  // Where there is no route, the index speaks for the site.
  if (!('row' in finding))
    return finding.kind === 'refused' || contract.unlisted === 'refuse' ? anyOrigins?.site() : undefined
  return mayAsk(status) ? anyOrigins?.askRoute(finding.row, finding.path) : anyOrigins?.route(finding.row)
}

/** Pages of other origins may read a response of the gateway itself where they may read those of the upstream. */
export const permit = (): Phase<Received> => ({
  name: 'permit',
  run: (exchange, next) => {
    const answer = next(exchange)
    if (exchange.service.anyOrigins === undefined || exchange.origin !== 'client') return answer
    return whenKnown(answer, (response) => {
      if (!isMadeHere(exchange)) return response
      const origin = plainOrigin(exchange.request.fields)
      if (origin === undefined) return ownAnswerFor(response, undefined, undefined)
      return whenKnown(policyFor(exchange, response.status), (policy) =>
        ownAnswerFor(response, policy, origin),
      )
    })
  },
})

/** Turns every error of the phases behind it into a response in the service's format, and reports it once. */
export const recover = (options: {
  /** `exchange` for its id, service and route: nothing else of it belongs in a log line. */
  readonly failed: (error: GatewayError, exchange: Received) => void
  readonly report: (event: PipelineEvent) => void
}): Phase<Received> => {
  const answered = (exchange: Received, thrown: unknown): GatewayResponse => {
    const error = asGatewayError(thrown)
    const { id, service, record, origin } = exchange
    record.code = error.code
    options.report({
      kind: 'request-refused',
      id,
      service: service.name,
      route: record.route,
      code: error.code,
      status: error.facts.status,
      origin,
    })
    options.failed(error, exchange)
    return errorAnswer(service, error)
  }
  return {
    name: 'recover',
    run: (exchange, next) => {
      try {
        const answer = next(exchange)
        return answer instanceof Promise
          ? answer.catch((thrown: unknown) => answered(exchange, thrown))
          : answer
      } catch (thrown) {
        return answered(exchange, thrown)
      }
    },
  }
}

/**
 * The client's preconditions (RFC 9110 §13), on complete responses to reads. A response that streams, and one of a service
 * without routes that bypassed the cache, is left as it is: the upstream got the preconditions itself. The cache has evaluated them already.
 */
export const preconditions = (options: { readonly clock: Clock }): Phase<Ready> => ({
  name: 'preconditions',
  run: (exchange, next) => {
    const { method, request, record, service } = exchange
    if ((method !== 'GET' && method !== 'HEAD') || !isConditional(request.fields)) return next(exchange)
    return whenKnown(next(exchange), (response) => {
      if (!Buffer.isBuffer(response.content)) return response
      if (!service.contract.hasRoutes && record.cache === 'bypass') return response
      return (
        preconditionResponse({ method, fields: request.fields }, response, options.clock.now()) ?? response
      )
    })
  },
})

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
  let taken = 0
  const count = (client: string, by: 1 | -1): void => {
    taken += by
    addCount(byClient, client, by)
  }
  return (address) => {
    const client = addressGroup(address)
    if ((byClient.get(client) ?? 0) >= mostAtOnce - taken) return undefined
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
  asked: RequestFields,
  codings: readonly StreamCoding[],
): GatewayResponse => {
  const list = requestField(asked, 'if-none-match')
  const tag = fieldValue(response.fields, 'etag')
  if (list === undefined || tag === undefined) return response
  const known = parseEntityTagList(list)
  if (known === '*' || known.some(({ opaque }) => opaque === tag)) return response
  const form = codings
    .map((coding) => tagOfCoded(tag, coding))
    .find((one) => known.some(({ opaque }) => opaque === one))
  if (form === undefined) return response
  return { ...response, fields: withVaryByCoding(withField(response.fields, 'ETag', form)) }
}

/**
 * Compresses uncompressed responses for clients that accept a coding: responses that are not stored, and streams that are being
 * stored. A hit has its coding already. Inside `preconditions`, which then see the entity tag that the client sees.
 */
export const compress = (options: CompressOptions): Phase<Ready> => {
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
    (response.content !== undefined || request.method === 'HEAD') &&
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
    if (request.method === 'HEAD') return { status, fields: withoutFields(fields, lengthField), content }
    const done = takeSlot(client.address)
    return done === undefined ? { status, fields, content } : inCoding(response, fields, coding, done)
  }

  return {
    name: 'compress',
    run: (exchange, next) => {
      const answer = next(exchange)
      const { service, request } = exchange
      if (request.fields['accept-encoding'] === undefined || !service.compresses) return answer
      return whenKnown(answer, (response) => forClient(exchange, response))
    },
  }
}
