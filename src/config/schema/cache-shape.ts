import * as z from 'zod'
import {
  duration,
  flag,
  harmlessWrite,
  inMs,
  oneOf,
  parameterName,
  queryMatch,
  routeMatch,
  ruleMatch,
  secret,
  wait,
} from './leaves.ts'

/** Members of a cache rule beside the requests that it is for. */
const ruleSettings = {
  ttl: duration.describe('Lifetime when the upstream gives none'),
  staleWhileRevalidate: duration
    .prefault('0s')
    .describe('How long a stale response is served while a new one is fetched (RFC 5861)'),
  staleIfError: duration
    .prefault('0s')
    .describe('How long a stale response is served if the upstream fails (RFC 5861)'),
  negativeTtl: duration.prefault('0s').describe('Lifetime of 404 and 410'),
  scope: oneOf(['public', 'credential'])
    .prefault('public')
    .describe('`credential` = one stored response per credential'),
  override: flag.prefault(false).describe('Overrides `Cache-Control` of the upstream'),
}

const matchedPath = ruleMatch.describe('As `rateLimits[].match`')

const ruleInMs = inMs('ttl', 'staleWhileRevalidate', 'staleIfError', 'negativeTtl')

export const cacheRule = z.strictObject({ match: matchedPath, ...ruleSettings }).transform(ruleInMs)

/** The routes of a site and of a plant store take no QUERY. */
const ruleWithoutQuery = z
  .strictObject({
    match: matchedPath.refine(
      ({ methods }) => !methods.includes('QUERY'),
      'QUERY is stored for services with contract openapi or open only: the rule must start with GET or HEAD',
    ),
    ...ruleSettings,
  })
  .transform(ruleInMs)

/** A cache rule of a GraphQL endpoint. */
const queryRule = z
  .strictObject({
    match: queryMatch.describe('`query` and the name of an operation, or `*`'),
    ...ruleSettings,
  })
  .transform(ruleInMs)

const operationName = z
  .string({ error: 'expected the operationId of an operation' })
  .max(500)
  .optional()
  .describe('`operationId`, in place of `match`')

/** A rule names its operations by `match` or by `operation`, never by both. */
const namesOperationsOnce = z.refine<{ readonly match?: unknown; readonly operation?: unknown }>(
  ({ match, operation }) => (match === undefined) !== (operation === undefined),
  { error: 'expected either match or operation' },
)

/** A cache rule of a service with a document. */
const operationRule = z
  .strictObject({
    match: matchedPath.optional(),
    operation: operationName,
    ...ruleSettings,
  })
  .check(namesOperationsOnce)
  .transform(ruleInMs)

/** Cache settings of every service beside its rules. */
const cacheSettings = {
  harmlessFields: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z\d-]{1,64}$/, 'expected the name of a request header, e.g. X-User-Agent-Class')
        .toLowerCase(),
    )
    .max(100)
    .prefault([])
    .describe(
      'Headers that make no difference: request headers that are neither credentials nor part of the key; response headers that are no tokens',
    ),
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
  harmlessParameters: z
    .array(
      z
        .string({ error: 'expected the name of a query parameter' })
        .regex(/^[\w.[\]-]{1,128}$/, 'expected the name of a query parameter, e.g. session_type'),
    )
    .max(100)
    .prefault([])
    .describe('Query parameters that carry no credential, though their names look so'),
  harmlessWrites: z
    .array(harmlessWrite)
    .max(100)
    .prefault([])
    .describe(
      'Requests that change nothing that a reader sees, e.g. `POST /?wc-ajax=*`, `heartbeat`, `failed-login`: they drop nothing',
    ),
}

const rulesMeaning = (defaults: string): string => `First match applies; without rules: ${defaults}`

/** Cache settings of a service. `defaults` describes the rules of its contract. */
export const serviceCacheShape = (defaults: string, rule = ruleWithoutQuery) =>
  z.strictObject({
    profile: oneOf(['safe', 'rfc-shared-cache']).prefault('safe').describe('Which responses may be stored'),
    ...cacheSettings,
    // First match wins. Without any, those of the contract hold.
    rules: z.array(rule).max(1_000).optional().describe(rulesMeaning(defaults)),
  })

/** Cache settings of a site. */
export const siteCacheShape = serviceCacheShape('main namespace for 60s, stale 30s, on errors 1h').extend({
  properties: z
    .record(
      z.string().regex(/^[^\s"\\]{1,200}$/, 'expected the name of a property, e.g. acf'),
      oneOf(['item', 'linked', 'site', 'all']),
    )
    .prefault({})
    .describe(
      'What properties that plugins add to responses depend on: `item` = their own item alone, `linked` = this, what it links to (author, terms, images, parent, comments) and settings, `site` = all but other posts, `all` = everything',
    ),
})

/** Cache settings of a service with a document: responses of operations that no rule names are never stored. */
export const documentCacheShape = z.strictObject({
  profile: oneOf(['safe']).prefault('safe').describe('Which responses may be stored'),
  ...cacheSettings,
  rules: z
    .array(operationRule)
    .max(1_000)
    .prefault([])
    .describe(rulesMeaning('what `x-trellis-cache` says, otherwise nothing')),
})

/** Cache settings of a GraphQL endpoint. */
export const graphqlCacheShape = z.strictObject({
  profile: oneOf(['safe']).prefault('safe').describe('Which responses may be stored'),
  ...cacheSettings,
  rules: z
    .array(queryRule)
    .max(1_000)
    .optional()
    .describe(rulesMeaning('`query *` for 60s, stale 30s, on errors 1h')),
})

const template = z
  .string({ error: 'expected a path of the document, e.g. /pets/{id}' })
  .regex(/^\/\S{0,1000}$/, 'expected a path of the document, e.g. /pets/{id}')

/** Facts about operations that the document does not contain. */
export const resourceRule = z
  .strictObject({
    match: routeMatch
      .optional()
      .describe('Methods and path of the document; `*` and `**` as in `rateLimits[].match`'),
    operation: operationName,
    collection: template
      .optional()
      .describe('Collection that the path lists; with `id`: collection of the item that it shows'),
    id: parameterName.optional().describe('Path parameter with the id of the item'),
    members: z
      .record(z.string().max(500), template)
      .optional()
      .describe('JSON Pointers to other items in responses, with their collections; `*` = each element'),
    invalidates: z
      .array(template)
      .max(100)
      .optional()
      .describe('Paths whose responses the write also changes; `/` = all'),
  })
  .check(namesOperationsOnce)
  .refine(({ id, collection }) => id === undefined || collection !== undefined, {
    error: 'id requires collection',
  })

const minTokenLength = 16
const shortestPollMs = 100

/** How changes that bypass the gateway are reported to it. */
export const changes = z
  .strictObject({
    token: secret
      .refine(
        (token) => !token.isSet || token.reveal().length >= minTokenLength,
        `expected at least ${minTokenLength} characters: openssl rand -hex 32`,
      )
      .prefault('')
      .describe('Secret. For requests that report changes, at least 16 characters; empty = off'),
    poll: wait
      .refine((ms) => ms === 0 || ms >= shortestPollMs, 'expected 0s, or at least 100ms')
      .optional()
      .describe('How often the log of changes is read; 0s = never; empty = 5s for `site`, otherwise never'),
    ttlWhileHeard: duration
      .prefault('7d')
      .describe('Lifetime in place of the `ttl` of a rule, while polls succeed'),
  })
  .transform(({ poll: pollMs, ...rest }) => inMs('ttlWhileHeard')({ ...rest, pollMs }))
  .optional()
