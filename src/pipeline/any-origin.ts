import { parseVary } from '../http/caching-fields.ts'
import { type FieldLines, fieldValue, type GatewayResponse, type RequestFields } from '../http/message.ts'

// WordPress allows pages of every origin to read its REST interface: it repeats the Origin, and says Vary: Origin. Where an
// upstream does so, one stored answer serves all origins, and the permission is written for each reader.

const allowedMethods = 'OPTIONS, GET, POST, PUT, PATCH, DELETE'

/** As browsers write it; what WordPress would clean before it answers it is left to WordPress. */
const plain = /^(?:null|https?:\/\/[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?(?::\d{1,5})?)$/

/** The Origin of a request, when the permission for it can be written without asking. */
export const plainOrigin = (fields: RequestFields): string | undefined => {
  const origin = fields['origin']
  return typeof origin === 'string' && plain.test(origin) ? origin : undefined
}

const variesByOrigin = (fields: FieldLines): boolean => {
  const vary = parseVary(fields)
  return vary.kind === 'fields' && vary.names.includes('origin')
}

/** Does a response allow this origin as WordPress does? A made-up origin that is allowed shows that all are. */
export const permits = (fields: FieldLines, origin: string): boolean =>
  fieldValue(fields, 'access-control-allow-origin') === origin &&
  fieldValue(fields, 'access-control-allow-credentials') === 'true' &&
  fieldValue(fields, 'access-control-allow-methods') === allowedMethods &&
  variesByOrigin(fields)

/** The response with the permission for one origin, where WordPress would have given it. HEAD alone gets no Vary without an Origin. */
export const permitted = <Response extends GatewayResponse>(
  response: Response,
  origin: string,
  method: string,
): Response => {
  const { fields } = response
  const varies = variesByOrigin(fields)
  if (!varies && method !== 'HEAD') return response
  if (fieldValue(fields, 'access-control-allow-origin') !== undefined) return response
  return {
    ...response,
    fields: [
      ...fields,
      ...['Access-Control-Allow-Origin', origin],
      ...['Access-Control-Allow-Methods', allowedMethods],
      ...['Access-Control-Allow-Credentials', 'true'],
      ...(varies ? [] : ['Vary', 'Origin']),
    ],
  }
}
