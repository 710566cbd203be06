import { variesBy } from '../http/caching-fields.ts'
import {
  type FieldLines,
  fieldValue,
  type GatewayResponse,
  type RequestFields,
  withField,
} from '../http/message.ts'
import type { AnyOrigin } from '../service/announced.ts'

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
