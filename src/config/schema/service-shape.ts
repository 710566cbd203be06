import * as z from 'zod'
import { access } from '../access.ts'
import { errorPageFault } from '../error-page.ts'
import {
  cacheRule,
  changes,
  documentCacheShape,
  graphqlCacheShape,
  resourceRule,
  serviceCacheShape,
  siteCacheShape,
} from './cache-shape.ts'
import { cors } from './cors-shape.ts'
import { downstream } from './downstream-shape.ts'
import {
  document,
  duration,
  flag,
  flagOr,
  headerText,
  host,
  hostPattern,
  inMs,
  oneOf,
  parameterName,
  pathPrefix,
  publicUrl,
  refusedBy,
  responseHeaderName,
  secret,
  share,
  size,
  statusRanges,
  target,
  tlsVersion,
  wait,
  whole,
} from './leaves.ts'

/** Where `health.timeout` is not given; a shorter interval shortens it. */
const defaultCheckTimeoutMs = 2_000

const upstreamSettings = {
  maxConcurrent: whole(1, 65_536).prefault(64).describe('Requests in flight to this upstream'),
  clientShare: share
    .prefault(0.5)
    .describe(
      'Share of the queue, and of the slots free of other clients, for one client (IPv4 address or IPv6 /64); 1 = no limit',
    ),
  queue: z
    .strictObject({
      max: whole(0, 1_000_000).prefault(256).describe('Requests that may wait for a free slot'),
      timeout: wait.prefault('5s').describe('Longest wait for a free slot'),
    })
    .transform(inMs('timeout'))
    .prefault({}),
  timeouts: z
    .strictObject({
      connect: wait.prefault('1s').describe('Until the connection is open'),
      headers: wait.prefault('60s').describe('From the request sent to the response headers'),
      idle: wait.prefault('60s').describe('Longest pause within a body; event streams may pause'),
      total: wait
        .prefault('120s')
        .describe('Until the response headers, with queue and retries; not while a file is uploaded'),
    })
    .transform(inMs('connect', 'headers', 'idle', 'total'))
    .prefault({}),
  retry: z
    .strictObject({
      attempts: whole(1, 10)
        .prefault(2)
        .describe(
          'Attempts in total; once sent, only GET, HEAD, PUT, DELETE and other idempotent requests are retried',
        ),
      budget: share.prefault(0.2).describe('Retries as a share of requests'),
    })
    .prefault({}),
  eject: z
    .strictObject({
      after: whole(1, 1_000).prefault(5).describe('Consecutive failures that eject a target'),
      for: duration.prefault('10s').describe('How long a target stays ejected'),
      maxShare: share.prefault(0.5).describe('Largest share of targets ejected at once'),
    })
    .transform(inMs('for'))
    .prefault({}),
  breaker: z
    .strictObject({
      failureRatio: share
        .prefault(0.5)
        .describe('Share of failed requests at which the breaker opens; 0 = never'),
      minRequests: whole(1, 1_000_000)
        .prefault(20)
        .describe('Fewest requests in the window that can open it'),
      window: duration.prefault('10s').describe('Period over which failures are counted'),
      for: duration.prefault('5s').describe('How long the open breaker refuses requests'),
      probes: whole(1, 1_000).prefault(3).describe('Successful trial requests that close it'),
    })
    .transform(inMs('window', 'for'))
    .prefault({}),
  host: oneOf(['target', 'preserve'])
    .prefault('target')
    .describe(
      '`Host` sent upstream: that of the target; or the requested one of `hosts`, without `hosts` that of `publicUrl`',
    ),
  limits: z
    .strictObject({
      headerBytes: size.prefault('64KiB').describe('All headers of a response together; more is 502'),
    })
    .prefault({}),
  connections: z
    .strictObject({
      maxAge: wait
        .prefault('5m')
        .describe('Age at which a connection is replaced, with a new DNS lookup; 0s = no limit'),
    })
    .transform(inMs('maxAge'))
    .prefault({}),
  tls: z
    .strictObject({
      ca: secret.prefault('').describe('Secret. CA certificates in place of the default ones, PEM'),
      cert: secret.prefault('').describe('Secret. Client certificate, PEM'),
      key: secret.prefault('').describe('Secret. Key of the client certificate, PEM'),
      serverName: z
        .union([z.literal(''), host])
        .prefault('')
        .describe('Required name in the certificate; empty = host of the target'),
      minVersion: tlsVersion.prefault('1.2').describe('Oldest TLS version used to the upstream'),
      acceptAnyCertificate: flag
        .prefault(false)
        .describe('Do not check certificates; for tests only, logs a warning'),
    })
    .prefault({}),
  health: z
    .strictObject({
      path: z
        .string({ error: 'expected a path, or an empty text for "off"' })
        .regex(/^(\/[^\s#]*)?$/, 'expected a path that starts with "/", or an empty text for "off"')
        .prefault('')
        .describe('Path below `basePath`; empty = no checks'),
      interval: wait.prefault('5s').describe('Time between two checks'),
      timeout: wait.optional().describe('Longest check; empty = 2s, or `interval` if shorter'),
      expect: statusRanges
        .prefault('200-399')
        .describe('Statuses that pass a check, such as `200,204` or `200-299,401`'),
      failAfter: whole(1, 1_000).prefault(2).describe('Consecutive failures that make a target unhealthy'),
      recoverAfter: whole(1, 1_000).prefault(1).describe('Consecutive successes that make it healthy again'),
    })
    .transform((health) =>
      inMs(
        'interval',
        'timeout',
      )({ ...health, timeout: health.timeout ?? Math.min(defaultCheckTimeoutMs, health.interval) }),
    )
    .prefault({}),
}

/** Settings of the upstream of a service; base path and targets differ by contract. */
const upstreamShape = <Targets extends z.ZodType>(basePath: string, targets: Targets) =>
  z.strictObject({
    targets,
    basePath: pathPrefix.prefault(basePath).describe('Path of the interface on the upstream'),
    ...upstreamSettings,
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

const parameters = (unknown: 'strip' | 'forward', tracking = trackingParameters) =>
  z
    .strictObject({
      unknown: oneOf(['strip', 'forward'])
        .prefault(unknown)
        .describe('Undeclared query parameters: removed, or sent and part of the cache key'),
      tracking: z
        .array(parameterName)
        .max(200)
        .prefault(tracking)
        .describe('Campaign parameters, always removed'),
    })
    .prefault({})

const ownLimits = z
  .strictObject({
    bodyBytes: size.optional().describe('In place of the top-level `limits.bodyBytes`'),
    jsonDepth: whole(1, 1_000).optional().describe('In place of the top-level `limits.jsonDepth`'),
  })
  .prefault({})

const contract = <const Name extends string>(name: Name) =>
  z.literal(name).describe('Interface of the service')
const targets = z
  .array(target)
  .min(1)
  .max(64)
  .describe('Origins (scheme, host, port); `[embedded]` = the demo upstream, not with `open`')
const mount = pathPrefix
  .check(
    refusedBy((path) =>
      /[*:]/.test(path) ? 'a mount has no wildcard: it covers all paths that begin with it' : undefined,
    ),
  )
  .describe('Public path of the service')

/** Where clients find a service, and what they get from it beside its interface. */
const publicSide = {
  hosts: z
    .array(hostPattern)
    .max(1_000)
    .prefault([])
    .describe(
      'Hosts of this service, such as `blog.example` or `*.shop.example`; [] = all hosts of no other service',
    ),
  publicUrl: publicUrl
    .prefault('')
    .describe('URL of the service in links; empty = the top-level `publicUrl` with the requested host'),
  responseHeaders: z
    .strictObject({
      set: z
        .record(responseHeaderName, headerText)
        .prefault({})
        .describe('Headers added to every response; they replace others of the same name'),
      remove: z
        .array(responseHeaderName)
        .max(100)
        .prefault([])
        .describe('Headers removed from every response'),
    })
    .prefault({}),
  cors: cors.optional(),
  compress: flag
    .prefault(true)
    .describe('Compress responses that are neither compressed nor stored for all clients'),
  changes,
  downstream,
}

const batchSettings = {
  maxItems: whole(1, 1_000).prefault(25).describe('Items in one batch'),
  concurrency: whole(1, 256).prefault(8).describe('Items of one batch in flight'),
  deadline: wait.prefault('30s').describe('Time for the whole batch'),
  answerBytes: size.prefault('64MiB').describe('All item responses of one batch together'),
  idempotency: z
    .strictObject({
      ttl: duration.prefault('24h').describe('How long an `Idempotency-Key` is remembered'),
      maxBytes: size.prefault('16MiB').describe('Memory for keys and their stored responses'),
    })
    .transform(inMs('ttl'))
    .prefault({}),
}

/** The batch route of a service with a document. */
const batchRoute = z
  .strictObject(batchSettings)
  .transform(inMs('deadline'))
  .optional()
  .describe('With this section, also an empty one, the service has a batch route at `batch` below its mount')

const plants = z.strictObject({
  contract: contract('plants'),
  ...publicSide,
  mount: mount.prefault('/'),
  access,
  limitParameter: z
    .string({ error: 'expected a parameter name' })
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'expected a parameter name')
    .prefault('limit')
    .describe('Query parameter that limits the list of plants'),
  upstream: upstreamShape('/', targets.prefault(['embedded'])).prefault({}),
  parameters: parameters('strip'),
  limits: ownLimits,
  batch: batchRoute,
  cache: serviceCacheShape('`GET /plants` for 5s, per credential').prefault({}),
})

const text = (longest: number, meaning: string) =>
  z.string({ error: 'expected a text' }).max(longest).prefault('').describe(meaning)

const identity = z.strictObject({
  name: text(1_000, 'Title of the site'),
  description: text(10_000, 'Tagline of the site'),
  url: text(2_000, 'URL of WordPress'),
  home: text(2_000, 'URL of the front page'),
  gmtOffset: z
    .number({ error: 'expected hours from -15 to 15' })
    .min(-15)
    .max(15)
    .prefault(0)
    .describe('Hours from UTC'),
  timezone: text(100, 'Time zone, e.g. Europe/Berlin'),
})

const site = z.strictObject({
  contract: contract('site'),
  ...publicSide,
  mount: mount.prefault('/index.php/site-json'),
  access,
  names: oneOf(['wordpress', 'same'])
    .prefault('wordpress')
    .describe(
      '`wordpress` = neutral public names, translated to those of WordPress; `same` = no translation',
    ),
  unlistedRoutes: oneOf(['learn', 'pass', 'refuse'])
    .prefault('learn')
    .describe('Upstream routes outside the contract: validated as announced, passed unchecked, or refused'),
  discovery: z
    .strictObject({
      source: oneOf(['upstream', 'static'])
        .prefault('upstream')
        .describe('Source of title, URL and time zone of the site'),
      refresh: wait.prefault('60s').describe('How often the index of the upstream is read'),
      identity: identity.optional().describe('The identity, with `source: static`'),
    })
    .transform(inMs('refresh'))
    .prefault({}),
  batch: z
    .strictObject({
      ...batchSettings,
      split: oneOf(['item', 'chunk', 'whole', 'auto'])
        .prefault('auto')
        .describe('One upstream request per item, two upstream batches, one batch, or what suits the batch'),
    })
    .transform(inMs('deadline'))
    .prefault({}),
  upstream: upstreamShape('/index.php/wp-json', targets.prefault(['embedded'])).prefault({}),
  parameters: parameters('forward'),
  limits: ownLimits,
  cache: siteCacheShape.prefault({}),
})

const open = z.strictObject({
  contract: contract('open'),
  ...publicSide,
  mount: mount,
  access,
  websockets: flag.prefault(false).describe('Clients may open WebSockets (a read)'),
  errorPage: z
    .string({ error: 'expected the absolute path of an HTML file' })
    .check(refusedBy(errorPageFault))
    .prefault('')
    .describe('HTML file for errors of the gateway that a browser gets; empty = a page of the gateway'),
  upstream: upstreamShape(
    '/',
    targets.describe('Origins (scheme, host, port); `[embedded]` = the demo upstream, not with `open`'),
  ),
  cache: serviceCacheShape(
    'nothing with `safe`, what the upstream allows with `rfc-shared-cache`',
    cacheRule,
  ).prefault({}),
})

const openapi = z.strictObject({
  contract: contract('openapi'),
  ...publicSide,
  document: document.describe(
    'OpenAPI 3.0, 3.1 or 3.2, YAML or JSON; relative to the configuration file; references stay below its folder',
  ),
  mount: mount,
  access,
  upstream: upstreamShape('/', targets),
  parameters: parameters('forward', []),
  limits: ownLimits,
  formats: oneOf(['assert', 'annotate'])
    .prefault('assert')
    .describe(
      'Whether `format` of a text (`date-time`, `email`, `uuid` …) is checked, or only an annotation',
    ),
  invalidation: oneOf(['service', 'structural'])
    .prefault('service')
    .describe('A write drops all stored responses of the service, or only those that its path reaches'),
  resources: z
    .array(resourceRule)
    .max(1_000)
    .prefault([])
    .describe(
      'For `structural`: what paths are and what writes change; the first match replaces the document',
    ),
  batch: batchRoute,
  cache: documentCacheShape.prefault({}),
})

const graphql = z.strictObject({
  contract: contract('graphql'),
  ...publicSide,
  mount: mount.prefault('/graphql'),
  access,
  upstream: upstreamShape('/graphql', targets),
  limits: ownLimits,
  graphql: z
    .strictObject({
      maxDepth: whole(1, 1_000).prefault(15).describe('Nested fields of a document; more is 400'),
      maxAliases: whole(0, 100_000).prefault(50).describe('Aliases of a document, fragments included'),
      maxTokens: whole(1, 1_000_000).prefault(2_000).describe('Tokens of a document, and lines'),
      maxBytes: size.prefault('64KiB').describe('Bytes of a document'),
      introspection: flag.prefault(true).describe('`false` = `__schema` and `__type` are 400'),
      persisted: flagOr('ask')
        .prefault(true)
        .describe(
          'A hash of automatic persisted queries stands for its document once both were sent; `ask` = until then Trellis answers `PersistedQueryNotFound`',
        ),
      batch: whole(1, 1_000).prefault(10).describe('Operations of one request'),
      tags: oneOf(['partial', 'complete'])
        .prefault('partial')
        .describe(
          '`complete` = a mutation drops only the groups that its response names in `Cache-Group-Invalidation`',
        ),
    })
    .prefault({}),
  cache: graphqlCacheShape.prefault({}),
})

export const serviceShape = z.discriminatedUnion('contract', [plants, site, openapi, graphql, open])
