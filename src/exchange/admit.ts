import { GatewayError } from '../errors.ts'
import { type FieldLines, requestField, whenKnown } from '../http/message.ts'
import { isAccessWrite } from '../service/decide.ts'
import { type AccessRefusal, accessError, lackingCredential } from './access.ts'
import type { PipelineEvent } from './events.ts'
import { asIdentified, type Matched, type Outgoing, type Received } from './exchange.ts'
import {
  type CountRequest,
  type ForwardedWork,
  overloaded,
  type RateLimitVerdict,
  type ShedOptions,
} from './ports.ts'

type Report = (event: PipelineEvent) => void

const refused = ({ service, record }: Received, reason: AccessRefusal, report: Report): GatewayError => {
  record.reason = reason
  report({ kind: 'access-refused', service: service.name, reason })
  return accessError(service.name, reason)
}

/**
 * Checks the client's address and the credentials that it sent, before the request is matched with a route, so that a
 * refusal reveals no routes. Throws 401, 403, or 503 without the keys of the issuer.
 */
export const authenticate = (exchange: Received, report: Report): void | Promise<void> => {
  const { service, client, request } = exchange
  const { access } = service
  if (access === undefined) return
  if (!access.admits(client.address)) throw refused(exchange, 'address', report)
  return whenKnown(access.verify(request.fields), (verdict) => {
    if (verdict.kind === 'refused') throw refused(exchange, verdict.reason, report)
    const lacking = lackingCredential(access, verdict.identity, false)
    if (lacking !== undefined) throw refused(exchange, lacking, report)
    asIdentified(exchange, verdict.identity)
  })
}

const isWrite = ({ service: { contract }, method, matching, query, recalled }: Matched): boolean =>
  isAccessWrite(
    contract,
    method,
    matching,
    recalled?.kind === 'valid' ? recalled.sensitive : contract.sensitivityOf(matching.path, query),
  )

/** A write has the credentials that the service requires of writes; and where the contract requires a credential, one is there. Throws 401. */
export const authorize = (exchange: Matched, report: Report): void => {
  const { service, request, matching, query } = exchange
  if (service.access !== undefined) {
    const lacking = lackingCredential(service.access, exchange.identity, isWrite(exchange))
    if (lacking !== undefined) throw refused(exchange, lacking, report)
  }
  const endpoint = matching.kind === 'found' ? matching.endpoint : undefined
  const challenge = service.contract.challenge?.(endpoint, request.fields, query)
  if (challenge !== undefined) {
    throw new GatewayError('credential_missing', {
      fields: ['WWW-Authenticate', `${challenge} realm="${service.name}"`],
    })
  }
}

const workOf = ({ origin, record }: Outgoing): ForwardedWork => {
  if (origin === 'batch') return 'batch'
  return record.cache === 'bypass' ? 'pass' : 'miss'
}

/** Throws 503 for a request that needs an upstream while the process is overloaded; hits are never refused. */
export const shed = (exchange: Outgoing, overload: ShedOptions | undefined): void => {
  if (overload?.admits(workOf(exchange)) === false) throw overloaded(overload)
}

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

const none: FieldLines = []

const fieldsFor = (
  { origin }: Matched,
  verdicts: readonly RateLimitVerdict[],
  report: RateLimitOptions['report'],
): FieldLines => {
  const exceeded = verdicts.filter((verdict) => verdict.exceeded)
  if (exceeded.length > 0) {
    for (const { name } of exceeded) report({ kind: 'rate-limited', limit: name })
    throw new GatewayError('rate_limited', {
      retryAfterSeconds: Math.max(...exceeded.map(({ resetSeconds }) => resetSeconds)),
      fields: limitFields(verdicts),
      unsent: true,
    })
  }
  // The fields of an item are part of the response to its batch, which has its own format.
  return verdicts.length === 0 || origin !== 'client' ? none : limitFields(verdicts)
}

/** Counts a request by its route, hits and items of a batch too. Gives the fields of its response; throws 429. */
export const countRequest = (
  exchange: Matched,
  { count, report }: RateLimitOptions,
): FieldLines | Promise<FieldLines> => {
  const { service, client, request, matching, method, identity } = exchange
  const counted = count({
    service: service.name,
    method,
    path: matching.path,
    address: client.address,
    credential: requestField(request.fields, 'authorization'),
    identity,
  })
  return whenKnown(counted, (verdicts) => fieldsFor(exchange, verdicts, report))
}
