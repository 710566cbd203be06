import { GatewayError } from '../errors.ts'
import { type RequestFields, requestField } from '../http/message.ts'
import type { ContentPlan, Contract } from './contract.ts'

/**
 * The gateway decodes no content codings, so a coded body would not be checked, and the upstream would act on it. The 415 names what
 * is accepted instead (RFC 9110 §15.5.16).
 */
export const readUncoded = (fields: RequestFields): ContentPlan => {
  const coding = requestField(fields, 'content-encoding')
  if (coding === undefined || coding.trim().toLowerCase() === 'identity') return 'read'
  throw new GatewayError('unsupported_content_type', {
    detail: 'Send the body without Content-Encoding.',
    fields: ['Accept-Encoding', 'identity'],
  })
}

const readable =
  /^(?:application\/(?:[a-z0-9!#$&^_.+-]+\+)?json|application\/x-www-form-urlencoded)\s*(?:;|$)/i

/** JSON and forms are read; other content only streams to endpoints that take uploads. */
export const planByMediaType: Contract['contentPlan'] = (method, endpoint, fields) => {
  // Many programs read a JSON content on GET as parameters: a response to another request than the one that is keyed.
  if (method === 'GET' || method === 'HEAD') {
    throw new GatewayError('ambiguous_request', { detail: `A body on ${method} is not accepted here.` })
  }
  if (readable.test(requestField(fields, 'content-type') ?? '')) return readUncoded(fields)
  if (endpoint.acceptsUploads === true) return 'stream'
  throw new GatewayError('unsupported_content_type', {
    detail: 'Send application/json or application/x-www-form-urlencoded.',
  })
}
