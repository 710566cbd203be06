import type { Readable } from 'node:stream'
import { cacheKey } from '../../cache/cache-read.ts'
import { GatewayError } from '../../errors.ts'
import type { ByteBudget, Reservation } from '../../http/bounds.ts'
import { type Answer, contentText, type GatewayResponse, requestField } from '../../http/message.ts'
import type { ContentPlan } from '../../service/contract.ts'
import { canonicalOf, type Routing, routeOf } from '../../service/decide.ts'
import type { Found } from '../../service/row.ts'
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

const outsideTarget = /[^\x21-\x7e]|#/

/** A GET that was seen before, unless a field or the content gives this one another meaning. */
const recall = ({ service, request }: Received): RecalledTarget | undefined => {
  const { method, fields } = request
  if ((method !== 'GET' && method !== 'HEAD') || fields['x-http-method-override'] !== undefined)
    return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

const routed = ({ service, request, path, query, admitted }: Received): Routing => {
  const { contract } = service
  const { method, fields } = request
  const asked = { method, path, query, fields }
  if (admitted?.service !== service) return routeOf(contract, asked)
  // Admission has found the row already.
  return routeOf(contract, asked, (meant, at) =>
    meant === method ? admitted.matching : contract.find(meant, at),
  )
}

/** Finds the row that the request concerns, and the method that it means; otherwise 404, 405 or 400. */
export const match = (): Phase<Received, Matched> => ({
  name: 'match',
  run: (exchange, next) => {
    const { record } = exchange
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
    const route = routed(exchange)
    if (route.kind === 'refused') {
      if (route.row !== undefined) record.route = route.row.template
      throw route.error
    }
    const { method, matching } = route
    record.route = matching.kind === 'unlisted' ? 'unlisted' : matching.row.template
    return next(asMatched(exchange, method, matching, recalled))
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
  content: Buffer | Readable | undefined,
  report: Report,
  next: Next<Ready>,
): Answer => {
  const { service, matching, method, query, request, admitted } = exchange
  const { fields } = request
  const canonical =
    admitted?.matching === matching
      ? admitted.canonical
      : canonicalOf(service.contract, method, matching, {
          query,
          fields,
          contentType: requestField(fields, 'content-type'),
          content: Buffer.isBuffer(content) ? content : undefined,
        })
  if (canonical.kind === 'invalid') {
    const { code, found } = canonical
    const response = refusalAnswer({ service, row: found.row, query, fields }, canonical)
    // With several hosts a refusal may contain links to the host that was asked.
    if (service.host === '' && found.endpoint.readsFields !== true && isRefusedByTargetAlone(request))
      rememberRefusal(exchange, { kind: 'refused', matching: found, code, response })
    return refuse(exchange, code, response, report)
  }
  if (canonical.undeclared !== undefined) {
    const { handling, names } = canonical.undeclared
    report({ kind: 'undeclared-parameters', service: service.name, handling, count: names.length })
  }
  const ready = asReady(exchange, canonical, content)
  // Only what follows from the target alone.
  const isRemembered = request.method === 'GET' && content === undefined && matching.kind === 'found'
  if (isRemembered && matching.endpoint.readsFields !== true) {
    remember(ready, matching)
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
    if (content === undefined) return withCanonical(exchange, undefined, report, next)
    const { contract } = exchange.service
    const plan =
      matching.kind === 'found'
        ? contract.contentPlan(exchange.method, matching.endpoint, request.fields)
        : 'stream'
    refuseTooMuch(exchange, plan)
    switch (plan) {
      case 'stream':
        return withCanonical(exchange, content, report, next)
      case 'read':
        return withRead(exchange, content, budget('request-body', exchange.client.address), (read) =>
          withCanonical(exchange, read, report, next),
        )
    }
  },
})
