import type { RouteFinding, Row } from '../../contracts/row.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer } from '../../http/message.ts'
import { requestMeaning } from '../../request/router.ts'
import { permitted, plainOrigin } from '../any-origin.ts'
import { isRefusedByTargetAlone } from '../error-answer.ts'
import { asMatched, type Matched, type Phase, type Ready, type Received, whenAnswered } from '../exchange.ts'
import { overloaded, type ShedOptions } from '../phase-options.ts'
import type { RecalledTarget, Service } from '../service.ts'

const refusals = {
  'method-override':
    'A method may only be overridden on POST, with PUT, PATCH or DELETE, by X-HTTP-Method-Override or _method.',
  'route-override': 'The parameter rest_route is not accepted here.',
} as const

const meantMethod = ({ service, request, query }: Received): string => {
  if (service.contract !== 'site') return request.method
  const meaning = requestMeaning(request.method, query, request.fields)
  if (meaning.kind === 'refused') {
    throw new GatewayError('ambiguous_request', { detail: refusals[meaning.reason] })
  }
  return meaning.method
}

/** WordPress answers 404 to a wrong method, the other contracts answer 405 with the allowed methods (RFC 9110 §15.5.6). */
const wrongMethod = (service: Service, row: Row): GatewayError => {
  if (service.contract === 'site') return new GatewayError('no_route')
  const methods = new Set<string>(row.endpoints.flatMap(({ methods }) => methods))
  if (methods.has('GET')) methods.add('HEAD')
  return new GatewayError('method_not_allowed', { fields: ['Allow', [...methods].join(', ')] })
}

const outsideAscii = /[^\x21-\x7e]/

/** A GET that was seen before, unless a field or the content gives this one another meaning. */
const recall = ({ service, request }: Received): RecalledTarget | undefined => {
  const { method, fields } = request
  if ((method !== 'GET' && method !== 'HEAD') || fields['x-http-method-override'] !== undefined)
    return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

/**
 * A document says whether its paths take OPTIONS. Preflights are no requests for the path (Fetch standard, CORS-preflight fetch): the
 * upstream answers them, as it allows its pages to read the responses.
 */
const refuseUndescribed = ({ service, request: { fields } }: Received, row: Row): void => {
  const isPreflight = fields['access-control-request-method'] !== undefined && fields['origin'] !== undefined
  if ((service.contract === 'openapi' || service.contract === 'plants') && !isPreflight)
    throw wrongMethod(service, row)
}

/** Admission may have found the row already. */
const findRow = ({ admitted, service, request, path }: Received, method: string): RouteFinding =>
  admitted?.service === service && method === request.method ? admitted.matching : service.find(method, path)

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
    // RFC 3986 §2: nothing but visible ASCII. node:http accepts raw bytes, which servers read in different ways.
    if (outsideAscii.test(exchange.request.target)) {
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
        throw wrongMethod(service, finding.row)
      case 'unlisted':
        if (service.unlisted === 'refuse') throw new GatewayError('no_route')
        record.route = 'unlisted'
        return next(asMatched(exchange, method, finding, recalled))
      case 'options':
      case 'found':
        record.route = finding.row.template
        if (finding.kind === 'options') refuseUndescribed(exchange, finding.row)
        return next(asMatched(exchange, method, finding, recalled))
    }
  },
})

/** As the upstream does: if it allows every origin, pages of every origin may read its index here too. */
const indexFor = ({ service, request: { fields }, method }: Ready, answer: Answer): Answer => {
  if (!service.allowsAnyOrigin()) return answer
  const origin = plainOrigin(fields)
  return whenAnswered(answer, (response) => {
    const varying = { ...response, fields: [...response.fields, 'Vary', 'Origin'] }
    return origin === undefined ? varying : permitted(varying, origin, method)
  })
}

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
    if (row.handledBy === 'discovery' && local !== undefined)
      return indexFor(exchange, local.index(exchange, row))
    if (row.handledBy !== 'batch' || batch === undefined) return next(exchange)
    if (overload?.admits('batch') === false) throw overloaded(overload)
    return batch(exchange)
  },
})
