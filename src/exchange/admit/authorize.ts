import { GatewayError } from '../../errors.ts'
import { whenKnown } from '../../http/message.ts'
import { isAccessWrite, isAccessWriteByContent } from '../../service/decide.ts'
import { type AccessRefusal, accessError, checkAccess, lackingCredential } from '../access.ts'
import type { ExchangeEvent } from '../events.ts'
import {
  asIdentified,
  type MatchedContext,
  type RequestContext,
  type ValidatedContext,
} from '../request-context.ts'

type Report = (event: ExchangeEvent) => void

const refused = (
  { service, record }: RequestContext,
  reason: AccessRefusal,
  report: Report,
): GatewayError => {
  record.reason = reason
  report({ kind: 'access-refused', service: service.name, reason })
  return accessError(service.name, reason)
}

/**
 * Checks the client's address and the credentials that it sent, before the request is matched with a route, so that a
 * refusal reveals no routes. Throws 401, 403, or 503 without the keys of the issuer.
 */
export const authenticate = (context: RequestContext, report: Report): void | Promise<void> => {
  const { service, client, request } = context
  const { access } = service
  if (access === undefined) return
  return whenKnown(checkAccess(access, client.address, request.headers), (check) => {
    if (check.kind === 'refused') throw refused(context, check.reason, report)
    asIdentified(context, check.identity)
  })
}

const isWrite = ({ service: { contract }, method, matching, query, recalled }: MatchedContext): boolean =>
  isAccessWrite(
    contract,
    method,
    matching,
    recalled?.kind === 'valid' ? recalled.uncacheable : contract.uncacheableReasonOf(matching.path, query),
  )

/** A write has the credentials that the service requires of writes; and where the contract requires a credential, one is there. Throws 401. */
export const authorize = (context: MatchedContext, report: Report): void => {
  const { service, request, matching, query } = context
  if (service.access !== undefined) {
    const lacking = lackingCredential(service.access, context.identity, isWrite(context))
    if (lacking !== undefined) throw refused(context, lacking, report)
  }
  const endpoint = matching.kind === 'found' ? matching.endpoint : undefined
  const challenge = service.contract.challenge?.(endpoint, request.headers, query)
  if (challenge !== undefined) {
    throw new GatewayError('credential_missing', {
      headers: ['WWW-Authenticate', `${challenge} realm="${service.name}"`],
    })
  }
}

/** What `authorize` could not know: whether the content of the request writes. Throws 401. */
export const authorizeContent = (context: ValidatedContext, report: Report): void => {
  const { service, method, identity } = context
  if (service.access === undefined || !isAccessWriteByContent(service.contract, method, context)) return
  const lacking = lackingCredential(service.access, identity, true)
  if (lacking !== undefined) throw refused(context, lacking, report)
}
