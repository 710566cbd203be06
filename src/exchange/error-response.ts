import type { GatewayError } from '../errors.ts'
import { prefersHtml } from '../http/content-coding.ts'
import { mayHaveRights } from '../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { type GatewayRequest, type GatewayResponse, withAdded } from '../http/message.ts'
import { isGet } from '../http/methods.ts'
import type { ErrorShape, Invalid, RefusedRequest } from '../service/contract.ts'
import { type ErrorPage, errorPagePolicy, plainErrorPage } from '../service/error-page.ts'
import { problemShape } from '../service/problem.ts'
import { methodOverrideHeader } from '../service/route-request.ts'
import type { Service } from './service.ts'

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
