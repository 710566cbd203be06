import { GatewayError } from '../errors.ts'
import { mayHaveRights } from '../http/credential-fields.ts'
import type { GatewayRequest, GatewayResponse } from '../http/message.ts'
import type { RefusedRequest } from '../service/contract.ts'
import { problemShape } from '../service/problem.ts'
import type { Invalid } from '../service/validation.ts'
import type { Service } from './service.ts'

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

export const asGatewayError = (thrown: unknown): GatewayError =>
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

/** Makes a response of an error, in the format of the service; undefined: the service is unknown. */
export const errorAnswer = (
  service: Pick<Service, 'contract' | 'publicRoot'> | undefined,
  error: GatewayError,
  /** Of a request that does not reach the phases, which add it to all others. */
  id?: string,
): GatewayResponse => {
  const shape = service?.contract.errors ?? problemShape
  const body = error.body ?? shape.body(error)
  return madeAnswer(error.facts.status, shape.contentType, shape.text(body), [
    ...(service === undefined ? [] : shape.fields(service.publicRoot)),
    ...errorFields(error),
    ...(id === undefined ? [] : ['X-Request-Id', id]),
  ])
}

/**
 * Does its refusal follow from the target alone? Without content, and without fields that validation or the response read, every
 * client is refused alike.
 */
export const isRefusedByTargetAlone = ({ method, fields, content }: GatewayRequest): boolean =>
  method === 'GET' &&
  content === undefined &&
  fields['content-type'] === undefined &&
  fields['x-http-method-override'] === undefined &&
  !mayHaveRights(fields)

/** A refusal whose body a validator has already made in the service's shape. */
export const refusalAnswer = (
  {
    service,
    ...request
  }: Omit<RefusedRequest, 'publicRoot'> & {
    readonly service: Pick<Service, 'contract' | 'publicRoot'>
  },
  invalid: Invalid,
): GatewayResponse => {
  const { errors } = service.contract
  const { contentType, fields } = errors.refusal({ ...request, publicRoot: service.publicRoot }, invalid)
  return madeAnswer(invalid.status, contentType, errors.text(invalid.body), fields)
}
