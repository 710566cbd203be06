import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import type { Answer, GatewayResponse } from '../../http/message.ts'
import type { Matched, Outgoing, Phase } from '../exchange.ts'
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
  const decided = async (
    exchange: Matched,
    proceed: () => Answer,
    counting: Promise<readonly RateLimitVerdict[]>,
  ): Promise<GatewayResponse> => {
    const verdicts = await counting
    const exceeded = verdicts.filter((verdict) => verdict.exceeded)
    if (exceeded.length > 0) {
      for (const { name } of exceeded) report({ kind: 'rate-limited', limit: name })
      throw new GatewayError('rate_limited', {
        retryAfterSeconds: Math.max(...exceeded.map(({ resetSeconds }) => resetSeconds)),
        fields: limitFields(verdicts),
        unsent: true,
      })
    }
    const response = await proceed()
    // The fields of an item are part of the response to its batch, which has a format of its own.
    return exchange.origin === 'client'
      ? { ...response, fields: [...response.fields, ...limitFields(verdicts)] }
      : response
  }
  return {
    name: 'rate-limit',
    run: (exchange, next) => {
      const { service, client, request, matching, method, identity } = exchange
      const counting = count({
        service: service.name,
        method,
        path: matching.path,
        address: client.address,
        credential: requestField(request.fields, 'authorization'),
        identity,
      })
      return counting === undefined ? next(exchange) : decided(exchange, () => next(exchange), counting)
    },
  }
}
