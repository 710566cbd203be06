import { GatewayError } from '../errors.ts'
import { variesBy } from '../http/caching-fields.ts'
import { mayHaveRights } from '../http/credential-fields.ts'
import {
  type FieldLines,
  fieldValue,
  type GatewayRequest,
  type GatewayResponse,
  type RequestFields,
  withField,
} from '../http/message.ts'
import type { AnyOrigin } from '../service/announced.ts'
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
  /** Of a request that does not reach `handle`, which adds it to all others. */
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
  if (!varies && method !== 'HEAD') return response
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
