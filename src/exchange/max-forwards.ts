import { nonNegativeInteger } from '../http/caching-fields.ts'
import { type GatewayResponse, requestField } from '../http/message.ts'
import { isOptions } from '../http/methods.ts'
import type { Ready } from './exchange.ts'

/** How often an OPTIONS may still be forwarded (RFC 9110 §7.6.2); undefined where it does not say. TRACE is not forwarded at all. */
const forwardsLeft = ({ method, request }: Ready): number | undefined =>
  isOptions(method) ? nonNegativeInteger(requestField(request.fields, 'max-forwards')) : undefined

/** The response of the last recipient that the client allows; undefined: the request goes on. */
export const lastRecipient = (exchange: Ready): GatewayResponse | undefined =>
  forwardsLeft(exchange) === 0 ? { status: 204, fields: [], content: undefined } : undefined

/** The request field that replaces the client's. */
export const nextMaxForwards = (exchange: Ready): Readonly<Record<string, string>> => {
  const left = forwardsLeft(exchange)
  return left === undefined ? {} : { 'max-forwards': String(left - 1) }
}
