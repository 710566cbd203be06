import { GatewayError } from '../../errors.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import { whenKnown } from '../../http/message.ts'
import type { CountRequest, RateLimitVerdict } from '../ports.ts'
import type { MatchedContext } from '../request-context.ts'

export type RateLimitOptions = {
  readonly count: CountRequest
  readonly report: (event: { readonly kind: 'rate-limited'; readonly limit: string }) => void
}

/** draft-ietf-httpapi-ratelimit-headers-10 §3 and §4: names, quotas and windows; what is left of each, and when all of it is there again. */
const limitHeaders = (verdicts: readonly RateLimitVerdict[]): string[] => {
  let policies = ''
  let limits = ''
  for (const { name, policy, remaining, resetSeconds } of verdicts) {
    const separator = policies === '' ? '' : ', '
    policies += separator + policy
    limits += `${separator}"${name}";r=${remaining};t=${resetSeconds}`
  }
  return ['RateLimit-Policy', policies, 'RateLimit', limits]
}

const applyVerdicts = (
  { origin, record }: MatchedContext,
  verdicts: readonly RateLimitVerdict[],
  report: RateLimitOptions['report'],
): void => {
  let retryAfterSeconds = 0
  for (const verdict of verdicts) {
    if (verdict.retryAfterSeconds === 0) continue
    retryAfterSeconds = Math.max(retryAfterSeconds, verdict.retryAfterSeconds)
    report({ kind: 'rate-limited', limit: verdict.name })
  }
  if (retryAfterSeconds > 0) {
    throw new GatewayError('rate_limited', {
      retryAfterSeconds,
      headers: limitHeaders(verdicts),
    })
  }
  // The headers of an item are part of the response to its batch, which has its own format.
  if (verdicts.length > 0 && origin === 'client') record.limitHeaders = limitHeaders(verdicts)
}

/** Counts a request by its route, hits and items of a batch too. Its record gets the headers of its response; throws 429. */
export const countRequest = (
  context: MatchedContext,
  { count, report }: RateLimitOptions,
): void | Promise<void> => {
  const { service, client, request, matching, method, identity } = context
  const counted = count({
    service: service.name,
    method,
    path: matching.path,
    address: client.address,
    credential: requestHeader(request.headers, 'authorization'),
    identity,
  })
  return whenKnown(counted, (verdicts) => applyVerdicts(context, verdicts, report))
}
