import { z } from 'zod'
import { duration, flag, oneOf, ruleMatch } from './leaves.ts'

const rule = z.strictObject({
  match: ruleMatch().describe(
    'Method and path under the mount; `*` = any text in one segment, `**` = any number of segments',
  ),
  ttl: duration().describe('How long a response is fresh when the upstream does not say'),
  staleWhileRevalidate: duration()
    .prefault('0s')
    .describe('How long an expired response may be served while a new one is fetched (RFC 5861)'),
  staleIfError: duration()
    .prefault('0s')
    .describe('How long an expired response may be served when the upstream fails (RFC 5861)'),
  negativeTtl: duration().prefault('0s').describe('How long 404 and 410 are stored'),
  scope: oneOf(['public', 'credential'])
    .prefault('public')
    .describe('`credential` = a separate stored response for each credential'),
  override: flag().prefault(false).describe('The rule overrides the `Cache-Control` of the upstream'),
})

/** Cache rules of a service, first match wins. Without any, what the contract's defaults say. */
const rules = z.array(rule).max(1_000).optional()

/** What the file may say about caching the answers of one service. `defaults` tells a reader what holds without rules. */
export const serviceCacheShape = (defaults: string) =>
  z.strictObject({
    profile: oneOf(['safe', 'rfc-shared-cache']).prefault('safe').describe('Which responses may be stored'),
    harmlessFields: z
      .array(
        z
          .string()
          .regex(/^[A-Za-z\d-]{1,64}$/, 'expected the name of a request field, e.g. X-User-Agent-Class'),
      )
      .max(100)
      .prefault([])
      .describe('Request headers that look like credentials but are none'),
    harmlessCookies: z
      .array(
        z
          .string({ error: 'expected the name of a cookie' })
          .regex(
            /^[!#$%&'+.^_`|~0-9A-Za-z-]{1,128}\*?$/,
            'expected the name of a cookie, e.g. PHPSESSID; "*" is allowed at the end',
          ),
      )
      .max(100)
      .prefault([])
      .describe('Cookies that do not affect responses; removed from cacheable requests'),
    rules: rules.describe(`The first matching rule applies; without rules: ${defaults}`),
  })

export type RuleShape = z.output<typeof rule>
export type ServiceCacheShape = z.output<ReturnType<typeof serviceCacheShape>>
