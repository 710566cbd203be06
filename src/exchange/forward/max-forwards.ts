import { nonNegativeInteger } from '../../http/headers/caching-headers.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { isOptions } from '../../http/methods.ts'
import type { ValidatedContext } from '../request-context.ts'

/** How often an OPTIONS may still be forwarded (RFC 9110 §7.6.2); undefined where it does not say. TRACE is not forwarded at all. */
const forwardsLeft = ({ method, request }: ValidatedContext): number | undefined =>
  isOptions(method) ? nonNegativeInteger(requestHeader(request.headers, 'max-forwards')) : undefined

/** The response of the last recipient that the client allows; undefined: the request goes on. */
export const lastRecipient = (context: ValidatedContext): GatewayResponse | undefined =>
  forwardsLeft(context) === 0 ? { status: 204, headers: [], content: undefined } : undefined

/** The request header that replaces the client's. */
export const nextMaxForwards = (context: ValidatedContext): Readonly<Record<string, string>> => {
  const left = forwardsLeft(context)
  return left === undefined ? {} : { 'max-forwards': String(left - 1) }
}
