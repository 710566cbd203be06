import { sensitivityOf } from '../../cache/sensitivity.ts'
import { GatewayError } from '../../errors.ts'
import { hasBearer } from '../../http/credential-fields.ts'
import type { Answer } from '../../http/message.ts'
import {
  type Access,
  type AccessRefusal,
  accessError,
  type CredentialVerdict,
  isAccessWrite,
  lackingCredential,
} from '../access.ts'
import type { AccessRefusedEvent } from '../events.ts'
import { asIdentified, type Matched, type Next, type Phase, type Received } from '../exchange.ts'

type Report = (event: AccessRefusedEvent) => void

const refused = (report: Report, { service, record }: Received, reason: AccessRefusal): GatewayError => {
  record.reason = reason
  report({ kind: 'access-refused', service: service.name, reason })
  return accessError(service.name, reason)
}

/**
 * Checks the client's address and the credentials that it sent, before the request is matched with a route, so that a refused
 * client learns nothing about routes. In the list only when a service has `access`.
 */
export const authenticate = ({ report }: { readonly report: Report }): Phase<Received> => {
  const decided = (
    exchange: Received,
    access: Access,
    verdict: CredentialVerdict,
    next: Next<Received>,
  ): Answer => {
    if (verdict.kind === 'refused') throw refused(report, exchange, verdict.reason)
    const lacking = lackingCredential(access, verdict.identity, false)
    if (lacking !== undefined) throw refused(report, exchange, lacking)
    return next(asIdentified(exchange, verdict.identity))
  }
  return {
    name: 'authenticate',
    run: (exchange, next) => {
      const { service, client, request } = exchange
      const { access } = service
      if (access === undefined) return next(exchange)
      if (!access.admits(client.address)) throw refused(report, exchange, 'address')
      const verdict = access.verify(request.fields)
      return verdict instanceof Promise
        ? verdict.then((known) => decided(exchange, access, known, next))
        : decided(exchange, access, verdict, next)
    },
  }
}

const isWrite = ({ service, method, matching, query, recalled }: Matched): boolean =>
  isAccessWrite({
    contract: service.contract,
    method,
    row: matching.kind === 'unlisted' ? undefined : matching.row,
    sensitive: recalled?.kind === 'valid' ? recalled.sensitive : sensitivityOf(matching.path, query),
  })

/** A write has the credentials that the service requires of writes; and where the contract requires a bearer token, one is there. */
export const authorize = ({ report }: { readonly report: Report }): Phase<Matched> => ({
  name: 'authorize',
  run: (exchange, next) => {
    const { service, request } = exchange
    if (service.access !== undefined) {
      const lacking = lackingCredential(service.access, exchange.identity, isWrite(exchange))
      if (lacking !== undefined) throw refused(report, exchange, lacking)
    }
    if (service.requiresBearer && !hasBearer(request.fields)) {
      throw new GatewayError('credential_missing', {
        fields: ['WWW-Authenticate', `Bearer realm="${service.name}"`],
      })
    }
    return next(exchange)
  },
})
