import type { Readable } from 'node:stream'
import { cacheKey } from '../../cache/cache-read.ts'
import { GatewayError } from '../../errors.ts'
import type { ByteBudget, Reservation } from '../../http/bounds.ts'
import { type Answer, contentText, type GatewayResponse, requestField, targetOf } from '../../http/message.ts'
import type { ContentPlan } from '../../service/contract.ts'
import type { Found, RouteFinding, Row } from '../../service/row.ts'
import { isRefusedByTargetAlone, refusalAnswer } from '../error-answer.ts'
import type { PipelineEvent } from '../events.ts'
import {
  asMatched,
  asReady,
  asRecalled,
  type Matched,
  type Next,
  type Phase,
  type Ready,
  type Received,
} from '../exchange.ts'
import { overloaded, type ShedOptions } from '../ports.ts'
import { readContent } from '../reads.ts'
import type { RecalledTarget, RefusedTarget, ValidTarget } from '../service.ts'

const meantMethod = ({ service, request, query }: Received): string => {
  const meaning = service.contract.meaning(request.method, query, request.fields)
  if (meaning.kind === 'method') return meaning.method
  throw new GatewayError('ambiguous_request', { detail: meaning.detail })
}

const outsideTarget = /[^\x21-\x7e]|#/

/** A GET that was seen before, unless a field or the content gives this one another meaning. */
const recall = ({ service, request }: Received): RecalledTarget | undefined => {
  const { method, fields } = request
  if ((method !== 'GET' && method !== 'HEAD') || fields['x-http-method-override'] !== undefined)
    return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

/**
 * Preflights are no requests for the path (Fetch standard, CORS-preflight fetch): the upstream answers them, as it allows its pages to
 * read the responses.
 */
const refuseOptions = ({ service: { contract }, request: { fields } }: Received, row: Row): void => {
  const isPreflight = fields['access-control-request-method'] !== undefined && fields['origin'] !== undefined
  if (contract.options === 'refused' && !isPreflight) throw contract.wrongMethod(row)
}

/** Admission may have found the row already. */
const findRow = ({ admitted, service, request, path }: Received, method: string): RouteFinding =>
  admitted?.service === service && method === request.method
    ? admitted.matching
    : service.contract.find(method, path)

/** Finds the row that the request concerns, and the method that it means; otherwise 404, 405 or 400. */
export const match = (): Phase<Received, Matched> => ({
  name: 'match',
  run: (exchange, next) => {
    const { service, record } = exchange
    const recalled = recall(exchange)
    if (recalled !== undefined) {
      const { matching } = recalled
      record.route = matching.row.template
      return next(asMatched(exchange, exchange.request.method, matching, recalled))
    }
    // RFC 3986 §2, RFC 9112 §3.2: nothing but visible ASCII, and no fragment. node:http accepts both, and servers read them in different ways.
    if (outsideTarget.test(exchange.request.target)) {
      throw new GatewayError('malformed_request', {
        detail: 'The URL has bytes that must be percent-encoded.',
      })
    }
    const method = meantMethod(exchange)
    const finding = findRow(exchange, method)
    switch (finding.kind) {
      case 'refused':
        throw new GatewayError('ambiguous_request', { detail: `Path refused: ${finding.reason}.` })
      case 'wrong-method':
        record.route = finding.row.template
        throw service.contract.wrongMethod(finding.row)
      case 'unlisted':
        if (service.contract.unlisted === 'refuse') throw new GatewayError('no_route')
        record.route = 'unlisted'
        return next(asMatched(exchange, method, finding, recalled))
      case 'options':
      case 'found':
        record.route = finding.row.template
        if (finding.kind === 'options') refuseOptions(exchange, finding.row)
        return next(asMatched(exchange, method, finding, recalled))
    }
  },
})

/** Rows that the gateway answers itself: discovery document, namespace indexes, OPTIONS, and the batch, whose items re-enter the list. */
export const answerLocally = (overload: ShedOptions | undefined): Phase<Ready> => ({
  name: 'answer-locally',
  run: (exchange, next) => {
    const { matching, service } = exchange
    const { local, batch } = service
    if (matching.kind === 'unlisted') return next(exchange)
    if (matching.kind === 'options')
      return local === undefined
        ? next(exchange)
        : local.options(exchange, matching.row, () => next(exchange))
    const { row } = matching
    if (row.handledBy === 'discovery' && local !== undefined) return local.index(exchange, row)
    if (row.handledBy !== 'batch' || batch === undefined) return next(exchange)
    if (overload?.admits('batch') === false) throw overloaded(overload)
    return batch(exchange)
  },
})

type Report = (event: PipelineEvent) => void

const withCanonical = (
  exchange: Matched,
  found: Found,
  content: Buffer | Readable | undefined,
  report: Report,
  next: Next<Ready>,
): Answer => {
  const { service, method, query, request, admitted } = exchange
  const readsFields = found.endpoint.readsFields === true
  const validation =
    admitted?.matching === found
      ? admitted.validation
      : service.contract.validator.validate({
          method,
          row: found.row,
          endpoint: found.endpoint,
          pathParameters: found.pathParameters,
          query,
          contentType: requestField(request.fields, 'content-type'),
          content: Buffer.isBuffer(content) ? content : undefined,
          fields: request.fields,
        })
  if (validation.kind === 'invalid') {
    const { code } = validation
    const response = refusalAnswer({ service, row: found.row, query, fields: request.fields }, validation)
    // With several hosts a refusal may contain links to the host that was asked.
    if (service.host === '' && !readsFields && isRefusedByTargetAlone(request))
      rememberRefusal(exchange, { kind: 'refused', matching: found, code, response })
    return refuse(exchange, code, response, report)
  }
  const { cookie, mayShowAnything, undeclared, variant } = validation
  if (undeclared !== undefined) {
    const { handling, names } = undeclared
    report({ kind: 'undeclared-parameters', service: service.name, handling, count: names.length })
  }
  const canonical = {
    query: validation.query,
    target: targetOf(found.path, validation.query),
    arguments: validation.arguments,
    sendsUndeclared: undeclared?.handling === 'sent' || mayShowAnything === true,
    sensitive:
      validation.hasQueryCredential === true
        ? ('api-key' as const)
        : service.contract.sensitivityOf(found.path, validation.query),
    variant: variant === undefined ? undefined : { key: variant, cookie },
    policy: service.contract.policyFor(method, found.path),
  }
  const ready = asReady(exchange, canonical, content)
  // Only what follows from the target alone.
  if (request.method === 'GET' && content === undefined && !readsFields) {
    remember(ready, found)
    if (request.target !== service.mount + ready.target)
      report({ kind: 'target-canonicalised', service: service.name })
  }
  return next(ready)
}

const refuse = (
  { id, service, record, origin }: Matched,
  code: string,
  response: GatewayResponse,
  report: Report,
): GatewayResponse => {
  record.code = code
  const { route } = record
  report({ kind: 'request-refused', id, service: service.name, route, code, status: response.status, origin })
  return response
}

/** Longer ones repeat long lists of allowed values, and a flood of refused targets could fill the memory. */
const longestRefusal = 1024

const rememberRefusal = ({ service, request }: Matched, refused: RefusedTarget): void => {
  const { content } = refused.response
  if (Buffer.isBuffer(content) && content.length <= longestRefusal) {
    const text = contentText(content)
    service.memo.remember(request.target, { ...refused, response: { ...refused.response, text } })
  }
}

const remember = (ready: Ready, matching: Found): void => {
  const { service, target, query, sensitive, policy, request } = ready
  const publicKey = cacheKey({ service: service.name, target, dialect: '', partition: 'public' })
  const recalled: ValidTarget = {
    kind: 'valid',
    matching,
    target,
    query,
    arguments: ready.arguments,
    sendsUndeclared: ready.sendsUndeclared,
    sensitive,
    variant: undefined,
    policy,
    publicKey,
  }
  service.memo.remember(request.target, recalled)
  // One text for the key, here and where it is stored: another one would be hashed again.
  asRecalled(ready, recalled)
}

/** A declared length over the limit is refused before a byte is read; other content is counted while it is read. */
const refuseTooMuch = ({ request, service }: Matched, plan: ContentPlan): void => {
  const declared = Number(requestField(request.fields, 'content-length') ?? 0)
  const most = plan === 'read' ? service.bodyBytes : service.uploadBytes
  if (declared > most) throw new GatewayError('content_too_large', { detail: `At most ${most} bytes.` })
}

/** A request without a row is forwarded unchanged. */
const unchecked = (exchange: Matched, next: Next<Ready>): Answer => {
  const { matching, query, request } = exchange
  const { contract } = exchange.service
  if (request.content !== undefined) refuseTooMuch(exchange, 'stream')
  const canonical = {
    query,
    target: targetOf(matching.path, query),
    arguments: {},
    sendsUndeclared: false,
    sensitive: contract.sensitivityOf(matching.path, query),
    variant: undefined,
    policy: contract.policyFor(exchange.method, matching.path),
  }
  return next(asReady(exchange, canonical, request.content))
}

/** The content that was read is counted in the budget until the response is there, or the head of one that streams. */
const withRead = async (
  exchange: Matched,
  content: Buffer | Readable,
  reservation: Reservation,
  proceed: (read: Buffer) => Answer,
): Promise<GatewayResponse> => {
  const { service, request } = exchange
  try {
    return await proceed(await readContent(content, service.bodyBytes, request.signal, reservation))
  } finally {
    reservation.release()
  }
}

/** Checks arguments and content against the row, and makes the one form of the request that is keyed and sent. */
export const validate = ({
  report,
  budget,
}: {
  readonly report: Report
  readonly budget: ByteBudget
}): Phase<Matched, Ready> => ({
  name: 'validate',
  run: (exchange, next) => {
    const { matching, request, recalled } = exchange
    const { content } = request
    if (recalled !== undefined && content === undefined) {
      return recalled.kind === 'valid'
        ? next(asReady(exchange, recalled, content))
        : refuse(exchange, recalled.code, recalled.response, report)
    }
    if (matching.kind !== 'found') return unchecked(exchange, next)
    if (content === undefined) return withCanonical(exchange, matching, undefined, report, next)
    const { contract } = exchange.service
    const plan = contract.contentPlan(exchange.method, matching.endpoint, request.fields)
    refuseTooMuch(exchange, plan)
    switch (plan) {
      case 'stream':
        return withCanonical(exchange, matching, content, report, next)
      case 'read':
        return withRead(exchange, content, budget('request-body', exchange.client.address), (read) =>
          withCanonical(exchange, matching, read, report, next),
        )
    }
  },
})
