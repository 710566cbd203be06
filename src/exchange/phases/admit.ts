import { GatewayError } from '../../errors.ts'
import { type Answer, requestField, whenKnown, withAdded } from '../../http/message.ts'
import {
  type Access,
  type AccessRefusal,
  accessError,
  type CredentialVerdict,
  isAccessWrite,
  lackingCredential,
} from '../access.ts'
import type { AccessRefusedEvent } from '../events.ts'
import {
  asIdentified,
  type Matched,
  type Next,
  type Outgoing,
  type Phase,
  type Received,
} from '../exchange.ts'
import {
  type CountRequest,
  type ForwardedWork,
  overloaded,
  type RateLimitVerdict,
  type ShedOptions,
} from '../ports.ts'

type Report = (event: AccessRefusedEvent) => void

const refused = (report: Report, { service, record }: Received, reason: AccessRefusal): GatewayError => {
  record.reason = reason
  report({ kind: 'access-refused', service: service.name, reason })
  return accessError(service.name, reason)
}

/**
 * Checks the client's address and the credentials that it sent, before the request is matched with a route, so that a
 * refusal reveals no routes. In the list only when a service has `access`.
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
      return whenKnown(access.verify(request.fields), (verdict) => decided(exchange, access, verdict, next))
    },
  }
}

const isWrite = ({ service, method, matching, query, recalled }: Matched): boolean =>
  isAccessWrite(service.contract, {
    method,
    matching,
    sensitive:
      recalled?.kind === 'valid' ? recalled.sensitive : service.contract.sensitivityOf(matching.path, query),
  })

/** A write has the credentials that the service requires of writes; and where the contract requires a credential, one is there. */
export const authorize = ({ report }: { readonly report: Report }): Phase<Matched> => ({
  name: 'authorize',
  run: (exchange, next) => {
    const { service, request } = exchange
    if (service.access !== undefined) {
      const lacking = lackingCredential(service.access, exchange.identity, isWrite(exchange))
      if (lacking !== undefined) throw refused(report, exchange, lacking)
    }
    const endpoint = exchange.matching.kind === 'found' ? exchange.matching.endpoint : undefined
    const challenge = service.contract.challenge?.(endpoint, request.fields, exchange.query)
    if (challenge !== undefined) {
      throw new GatewayError('credential_missing', {
        fields: ['WWW-Authenticate', `${challenge} realm="${service.name}"`],
      })
    }
    return next(exchange)
  },
})

const workOf = ({ origin, record }: Outgoing): ForwardedWork => {
  if (origin === 'batch') return 'batch'
  return record.cache === 'bypass' ? 'pass' : 'miss'
}

/** Refuses requests that need an upstream while the process is overloaded; hits are never refused. */
export const shed = (options: ShedOptions): Phase<Outgoing> => ({
  name: 'shed',
  run: (exchange, next) => {
    if (options.admits(workOf(exchange))) return next(exchange)
    throw overloaded(options)
  },
})

export type RateLimitOptions = {
  readonly count: CountRequest
  readonly report: (event: { readonly kind: 'rate-limited'; readonly limit: string }) => void
}

/** draft-ietf-httpapi-ratelimit-headers-10 §3 and §4: names, quotas and windows; what is left of each, and when its window ends. */
const limitFields = (verdicts: readonly RateLimitVerdict[]): string[] => {
  let policies = ''
  let left = ''
  for (const { name, max, windowMs, remaining, resetSeconds } of verdicts) {
    const separator = policies === '' ? '' : ', '
    policies += `${separator}"${name}";q=${max};w=${Math.ceil(windowMs / 1000)}`
    left += `${separator}"${name}";r=${remaining};t=${resetSeconds}`
  }
  return ['RateLimit-Policy', policies, 'RateLimit', left]
}

/** Counts requests by route, hits and items of a batch among them. In the list only when limits are configured. */
export const rateLimit = ({ count, report }: RateLimitOptions): Phase<Matched> => {
  const refuse = (verdicts: readonly RateLimitVerdict[]): void => {
    if (!verdicts.some(({ exceeded: isExceeded }) => isExceeded)) return
    const exceeded = verdicts.filter((verdict) => verdict.exceeded)
    for (const { name } of exceeded) report({ kind: 'rate-limited', limit: name })
    throw new GatewayError('rate_limited', {
      retryAfterSeconds: Math.max(...exceeded.map(({ resetSeconds }) => resetSeconds)),
      fields: limitFields(verdicts),
      unsent: true,
    })
  }
  const proceed = (exchange: Matched, next: Next<Matched>, verdicts: readonly RateLimitVerdict[]): Answer => {
    refuse(verdicts)
    // The fields of an item are part of the response to its batch, which has its own format.
    if (verdicts.length === 0 || exchange.origin !== 'client') return next(exchange)
    return whenKnown(next(exchange), (response) => withAdded(response, limitFields(verdicts)))
  }
  return {
    name: 'rate-limit',
    run: (exchange, next) => {
      const { service, client, request, matching, method, identity } = exchange
      const counted = count({
        service: service.name,
        method,
        path: matching.path,
        address: client.address,
        credential: requestField(request.fields, 'authorization'),
        identity,
      })
      return whenKnown(counted, (verdicts) => proceed(exchange, next, verdicts))
    },
  }
}
