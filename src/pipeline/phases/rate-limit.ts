import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import type { Answer, Outcome, ResponseHead } from '../../http/message.ts'
import { reshaped } from '../answering.ts'
import type { Matched, Phase } from '../exchange.ts'
import type { CountRequest, RateLimitVerdict } from '../phase-options.ts'

export type RateLimitOptions = {
  readonly count: CountRequest
  readonly report: (event: { readonly kind: 'rate-limited'; readonly limit: string }) => void
}

/** draft-ietf-httpapi-ratelimit-headers-10 §3 and §4: names, quotas and windows; what is left and when it is over. */
const limitFields = (verdicts: readonly RateLimitVerdict[]): string[] => [
  'RateLimit-Policy',
  verdicts.map(({ name, max, windowMs }) => `"${name}";q=${max};w=${Math.ceil(windowMs / 1000)}`).join(', '),
  'RateLimit',
  verdicts
    .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
    .join(', '),
]

const withLimits = (outcome: Outcome, verdicts: readonly RateLimitVerdict[]): Outcome => {
  const marked = <Head extends ResponseHead>(head: Head): Head => ({
    ...head,
    fields: [...head.fields, ...limitFields(verdicts)],
  })
  return outcome.kind === 'response' ? marked(outcome) : reshaped(outcome, marked, marked)
}

/**
 * Counts requests by route, before anything is done for them: hits count, and each item of a batch counts as the request
 * that it is. In the list only when there are limits.
 */
export const rateLimit = ({ count, report }: RateLimitOptions): Phase<Matched> => {
  const decided = async (
    exchange: Matched,
    proceed: () => Answer,
    counting: Promise<readonly RateLimitVerdict[]>,
  ) => {
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
    const outcome = await proceed()
    // The fields of an item are part of the answer of its batch, which has a form of its own.
    return exchange.origin === 'client' ? withLimits(outcome, verdicts) : outcome
  }
  return {
    name: 'rate-limit',
    run: (exchange, next) => {
      const { service, client, request, matching, method } = exchange
      const counting = count({
        service: service.name,
        method,
        path: matching.path,
        address: client.address,
        credential: requestField(request.fields, 'authorization'),
      })
      return counting === undefined ? next(exchange) : decided(exchange, () => next(exchange), counting)
    },
  }
}
