import { z } from 'zod'
import { duration, flag, oneOf, ruleMatch } from './leaves.ts'

const rule = z.strictObject({
  match: ruleMatch().describe(
    'Methods and path under the mount; `*` within a segment, `**` for any number of segments',
  ),
  ttl: duration().describe('Freshness lifetime where the upstream states none'),
  staleWhileRevalidate: duration()
    .prefault('0s')
    .describe('RFC 5861: serve stale so long while fetching anew'),
  staleIfError: duration().prefault('0s').describe('RFC 5861: serve stale so long when the upstream fails'),
  negativeTtl: duration().prefault('0s').describe('Lifetime of 404 and 410 answers'),
  scope: oneOf(['public', 'credential'])
    .prefault('public')
    .describe('`credential`: one stored answer per credential'),
  override: flag().prefault(false).describe('The rule wins over what the upstream states'),
})

/** Cache rules of a service, first match wins. Without any, what the contract's defaults say. */
const rules = z.array(rule).max(1_000).optional()

/** What the file may say about caching the answers of one service. `defaults` tells a reader what holds without rules. */
export const serviceCacheShape = (defaults: string) =>
  z.strictObject({
    profile: oneOf(['safe', 'rfc-shared-cache']).prefault('safe').describe('What may be stored at all'),
    harmlessFields: z
      .array(
        z
          .string()
          .regex(/^[A-Za-z\d-]{1,64}$/, 'expected the name of a request field, e.g. X-User-Agent-Class'),
      )
      .max(100)
      .prefault([])
      .describe('Request fields whose names look like credentials and that say nothing of who asks'),
    harmlessCookies: z
      .array(
        z
          .string({ error: 'expected the name of a cookie' })
          .regex(
            /^[!#$%&'+.^_`|~0-9A-Za-z-]{1,128}\*?$/,
            'expected the name of a cookie, e.g. PHPSESSID; "*" may stand at its end',
          ),
      )
      .max(100)
      .prefault([])
      .describe(
        'Cookies that make no difference to an answer and are not sent on with a read that is stored',
      ),
    rules: rules.describe(`First match wins; without any: ${defaults}`),
  })

export type RuleShape = z.output<typeof rule>
export type ServiceCacheShape = z.output<ReturnType<typeof serviceCacheShape>>
