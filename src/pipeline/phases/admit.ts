import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import type { Answer } from '../../http/message.ts'
import { type Matched, type Next, type Outgoing, type Phase, whenAnswered } from '../exchange.ts'
import {
  type CountRequest,
  type ForwardedWork,
  overloaded,
  type RateLimitVerdict,
  type ShedOptions,
} from '../phase-options.ts'

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
const limitFields = (verdicts: readonly RateLimitVerdict[]): string[] => [
  'RateLimit-Policy',
  verdicts.map(({ name, max, windowMs }) => `"${name}";q=${max};w=${Math.ceil(windowMs / 1000)}`).join(', '),
  'RateLimit',
  verdicts
    .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
    .join(', '),
]

/** Counts requests by route, hits and items of a batch among them. In the list only when limits are configured. */
export const rateLimit = ({ count, report }: RateLimitOptions): Phase<Matched> => {
  const refuse = (verdicts: readonly RateLimitVerdict[]): void => {
    const exceeded = verdicts.filter((verdict) => verdict.exceeded)
    if (exceeded.length === 0) return
    for (const { name } of exceeded) report({ kind: 'rate-limited', limit: name })
    throw new GatewayError('rate_limited', {
      retryAfterSeconds: Math.max(...exceeded.map(({ resetSeconds }) => resetSeconds)),
      fields: limitFields(verdicts),
      unsent: true,
    })
  }
  const proceed = (exchange: Matched, next: Next<Matched>, verdicts: readonly RateLimitVerdict[]): Answer => {
    refuse(verdicts)
    // The fields of an item are part of the response to its batch, which has a format of its own.
    if (verdicts.length === 0 || exchange.origin !== 'client') return next(exchange)
    return whenAnswered(next(exchange), (response) => ({
      ...response,
      fields: [...response.fields, ...limitFields(verdicts)],
    }))
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
      return counted instanceof Promise
        ? counted.then((verdicts) => proceed(exchange, next, verdicts))
        : proceed(exchange, next, counted)
    },
  }
}
