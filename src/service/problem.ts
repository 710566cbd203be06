import { GatewayError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../http/json-text.ts'
import type { ErrorShape } from './contract.ts'
import type { Row } from './row.ts'

export const errorText = (error: GatewayError): string =>
  error.detail === undefined ? error.message : `${error.message} ${error.detail}`

/** From an error of the site contract; `data` has what belongs to its code. */
const problemBody = (
  status: number,
  { code, message }: JsonObject,
  { status: _status, params, details: _details, ...more }: JsonObject,
): unknown => ({
  type: 'about:blank',
  title: message,
  status,
  ...(isJsonObject(params) ? { detail: Object.values(params).join(' ') } : {}),
  code: String(code).replace(/^(?:trellis|rest)_/, ''),
  ...more,
})

/** JSON without other headers than those that every error has. */
export const plainShape = (
  contentType: string,
  body: ErrorShape['body'],
  itemBody = problemBody,
): ErrorShape => ({
  contentType,
  body,
  text: JSON.stringify,
  headers: () => [],
  refusal: () => ({ contentType, headers: ['X-Content-Type-Options', 'nosniff'] }),
  itemBody: (status, body) =>
    isJsonObject(body) && isJsonObject(body['data']) ? itemBody(status, body, body['data']) : body,
  batchHeaders: () => ['Cache-Control', 'no-store'],
})

/** RFC 9457: `type` about:blank means that the status is all there is to it; `code` is an extension member. */
export const problemShape = plainShape('application/problem+json', (error) => ({
  type: 'about:blank',
  title: error.message,
  status: error.facts.status,
  ...(error.detail === undefined ? {} : { detail: error.detail }),
  code: error.code,
}))

/** 405 with the methods that the path takes (RFC 9110 §15.5.6). */
export const methodNotAllowed = (row: Row): GatewayError => {
  const methods = new Set<string>(row.endpoints.flatMap(({ methods }) => methods))
  if (methods.has('GET')) methods.add('HEAD')
  return new GatewayError('method_not_allowed', { headers: ['Allow', [...methods].join(', ')] })
}
