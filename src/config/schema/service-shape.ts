import * as z from 'zod'
import {
  duration,
  flag,
  inMs,
  oneOf,
  parameterName,
  pathPrefix,
  ruleMatch,
  size,
  target,
  wait,
  whole,
} from './leaves.ts'
import { upstreamShape } from './upstream-shape.ts'

/** One cache rule. */
export const cacheRule = z
  .strictObject({
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
  .transform(inMs('ttl', 'staleWhileRevalidate', 'staleIfError', 'negativeTtl'))

/** Cache rules of a service, first match wins. Without any, those of the contract hold. */
const rules = z.array(cacheRule).max(1_000).optional()

/** Cache settings of a service. `defaults` describes the rules of its contract. */
const serviceCacheShape = (defaults: string) =>
  z.strictObject({
    profile: oneOf(['safe', 'rfc-shared-cache']).prefault('safe').describe('What may be stored at all'),
    harmlessFields: z
      .array(
        z
          .string()
          .regex(/^[A-Za-z\d-]{1,64}$/, 'expected the name of a request field, e.g. X-User-Agent-Class')
          .toLowerCase(),
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

/** Parameters that advertising and newsletters add and services ignore. */
const trackingParameters = [
  'utm_*',
  'gclid',
  'gbraid',
  'wbraid',
  'dclid',
  'fbclid',
  'msclkid',
  'ttclid',
  'twclid',
  'yclid',
  'li_fat_id',
  'igshid',
  'mc_cid',
  'mc_eid',
  '_ga',
  '_gl',
  'srsltid',
]

const parameters = (unknown: 'strip' | 'forward') =>
  z
    .strictObject({
      unknown: oneOf(['strip', 'forward'])
        .prefault(unknown)
        .describe('Query parameters that the row does not list: left out, or sent on and keyed'),
      tracking: z
        .array(parameterName())
        .max(200)
        .prefault(trackingParameters)
        .describe('Left out even when unknown parameters are sent on'),
    })
    .prefault({})

const ownLimits = z
  .strictObject({
    bodyBytes: size().optional().describe('In place of `limits.bodyBytes`'),
    jsonDepth: whole(1, 1_000).optional().describe('In place of `limits.jsonDepth`'),
  })
  .prefault({})

const contract = <const Name extends string>(name: Name) =>
  z.literal(name).describe('Which interface the service speaks')
const targets = () => z.array(target()).min(1).max(64).describe('`[embedded]`, or a list of http(s) origins')
const mount = () => pathPrefix().describe('Path under which clients see the service')

const plants = z.strictObject({
  contract: contract('plants'),
  mount: mount().prefault('/'),
  limitParameter: z
    .string({ error: 'expected a parameter name' })
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'expected a parameter name')
    .prefault('limit')
    .describe('Name of the query parameter that bounds the list'),
  upstream: upstreamShape('/', targets().prefault(['embedded'])).prefault({}),
  parameters: parameters('strip'),
  limits: ownLimits,
  cache: serviceCacheShape('GET /plants for 5s, one stored answer per credential').prefault({}),
})

const text = (longest: number, meaning: string) =>
  z.string({ error: 'expected a text' }).max(longest).prefault('').describe(meaning)

const identity = z.strictObject({
  name: text(1_000, 'Title of the site'),
  description: text(10_000, 'Tagline of the site'),
  url: text(2_000, 'Where the software answers'),
  home: text(2_000, 'Where readers see the site'),
  gmtOffset: z
    .number({ error: 'expected hours from -15 to 15' })
    .min(-15)
    .max(15)
    .prefault(0)
    .describe('Hours from UTC'),
  timezone: text(100, 'Name of the time zone, e.g. Europe/Berlin'),
})

const site = z.strictObject({
  contract: contract('site'),
  mount: mount().prefault('/index.php/site-json'),
  names: oneOf(['wordpress', 'same'])
    .prefault('wordpress')
    .describe('Public neutral names to upstream WordPress names, or names left alone'),
  unlistedRoutes: oneOf(['learn', 'pass', 'refuse'])
    .prefault('learn')
    .describe('Routes that the upstream announces and the contract does not list'),
  discovery: z
    .strictObject({
      source: oneOf(['upstream', 'static'])
        .prefault('upstream')
        .describe('Where the identity of the site comes from'),
      refresh: wait().prefault('60s').describe("How often the upstream's own index is read"),
      identity: identity.optional().describe('The identity, with `source: static`'),
    })
    .transform(inMs('refresh'))
    .prefault({}),
  batch: z
    .strictObject({
      maxItems: whole(1, 1_000).prefault(25).describe('Items in one batch'),
      concurrency: whole(1, 256).prefault(8).describe('Items of one batch in flight'),
      split: oneOf(['item', 'chunk', 'whole', 'auto'])
        .prefault('auto')
        .describe('One upstream request an item, a few upstream batches, one, or what measures faster'),
      deadline: wait().prefault('30s').describe('For the whole batch'),
      answerBytes: size().prefault('64MiB').describe('Answers of all items of one batch together'),
      extensions: oneOf(['off', 'on-request', 'on'])
        .prefault('on-request')
        .describe("What goes beyond WordPress's batch: never, when the request asks for it, or always"),
      services: z
        .array(z.string({ error: 'expected the name of a service' }).max(64))
        .max(64)
        .prefault([])
        .describe('Other services that items may address, with `extensions`'),
      idempotency: z
        .strictObject({
          ttl: duration().prefault('24h').describe('How long an Idempotency-Key is remembered'),
          maxBytes: size().prefault('16MiB').describe('Keys and the answers kept for them'),
        })
        .transform(inMs('ttl'))
        .prefault({}),
    })
    .transform(inMs('deadline'))
    .prefault({}),
  upstream: upstreamShape('/index.php/wp-json', targets().prefault(['embedded'])).prefault({}),
  parameters: parameters('forward'),
  limits: ownLimits,
  cache: serviceCacheShape(
    'GET of the main namespace for 60s, stale 30s while fetching anew, 1h on errors',
  ).prefault({}),
})

const open = z.strictObject({
  contract: contract('open'),
  mount: mount(),
  upstream: upstreamShape('/', targets().describe('List of http(s) origins')),
  cache: serviceCacheShape('nothing in `safe`, what the upstream allows in `rfc-shared-cache`').prefault({}),
})

export const serviceShape = z.discriminatedUnion('contract', [plants, site, open])
