import * as z from 'zod'
import { cors } from './cors-shape.ts'
import {
  accessLog,
  cidr,
  duration,
  flag,
  host,
  hostPattern,
  inMs,
  keyPrefix,
  oneOf,
  optionalUrl,
  port,
  publicUrl,
  rate,
  routeMatch,
  secret,
  share,
  size,
  tlsVersion,
  wait,
  whole,
} from './leaves.ts'
import { serviceShape } from './service-shape.ts'

const listen = z
  .strictObject({
    host: host.prefault('127.0.0.1').describe('Address that the public side listens on'),
    port: port.prefault(8080).describe('Port of the public side; 0 = any free port'),
    http2: flag.prefault(false).describe('Offer HTTP/2 as well as HTTP/1.1; requires `listen.tls`'),
    tls: z
      .strictObject({
        cert: secret.prefault('').describe('Secret. Certificate chain, PEM; empty = no TLS'),
        key: secret.prefault('').describe('Secret. Key of the certificate, PEM'),
        minVersion: tlsVersion.prefault('1.2').describe('Oldest TLS version accepted from clients'),
        certificates: z
          .array(
            z.strictObject({
              hosts: z
                .array(hostPattern)
                .min(1)
                .max(1_000)
                .describe('Hosts of this certificate (SNI), such as `*.shop.example`'),
              cert: secret.describe('Secret. Certificate chain, PEM'),
              key: secret.describe('Secret. Key of the certificate, PEM'),
            }),
          )
          .max(1_000)
          .prefault([])
          .describe('Certificates for some hosts; `cert` is for all others'),
      })
      .prefault({}),
  })
  .prefault({})

const limits = z
  .strictObject({
    headerBytes: size.prefault('16KiB').describe('All request headers together'),
    urlBytes: size.prefault('8KiB').describe('Length of a request URL'),
    queryParameters: whole(1, 10_000).prefault(256).describe('Parameters in a query or form'),
    bodyBytes: size.optional().describe('JSON or form body; empty = 1MiB, for a site 8MiB like PHP'),
    jsonDepth: whole(1, 1_000).optional().describe('Nesting of JSON; empty = 64, for a site 512 like PHP'),
    uploadBytes: size.prefault('64MiB').describe('Streamed body, such as a file upload'),
    bufferedBytes: size
      .prefault('32MiB')
      .describe('Memory per process for bodies in flight; a client gets half of what others leave'),
    headersTimeout: wait.prefault('10s').describe('Until all headers of a request have arrived'),
    requestTimeout: wait
      .prefault('30s')
      .describe('Longest pause of a client within its request body; 0s = no limit'),
    readerTimeout: wait
      .prefault('30s')
      .describe('Clients that read nothing of their response for this long are disconnected; 0s = no limit'),
    minBytesPerSecond: size
      .prefault('1KiB')
      .describe(
        'Slowest pace of a request body, and of a client that occupies an upstream slot; 0 = no limit',
      ),
    keepAliveTimeout: wait.prefault('72s').describe('How long an idle connection stays open'),
    connections: whole(0, 1_000_000).prefault(0).describe('Open connections; 0 = no limit'),
    connectionsPerAddress: whole(0, 1_000_000)
      .prefault(0)
      .describe('Open connections per IPv4 address or IPv6 /64, except `trustedProxies`; 0 = no limit'),
    websockets: z
      .strictObject({
        perService: whole(0, 1_000_000).prefault(1_024).describe('Open WebSockets per service and process'),
        perClient: whole(0, 1_000_000).prefault(64).describe('Open WebSockets per client and process'),
        messageBytes: size.prefault('1MiB').describe('Longest message of a WebSocket'),
        idleTimeout: wait
          .prefault('5m')
          .describe('How long a WebSocket may be silent before it is closed; 0s = no limit'),
      })
      .transform(inMs('idleTimeout'))
      .prefault({}),
  })
  .transform(inMs('headersTimeout', 'requestTimeout', 'readerTimeout', 'keepAliveTimeout'))
  .prefault({})

const overload = z
  .strictObject({
    eventLoopDelay: duration
      .prefault('1s')
      .describe('Mean event-loop delay over two intervals at which work is refused; 0s = off'),
    eventLoopUtilization: share
      .prefault(0)
      .describe('Busy share of the event loop at which work is refused; 0 = off'),
    heapBytes: size.prefault(0).describe('Used heap at which work is refused; 0 = off'),
    rssBytes: size.prefault(0).describe('Resident memory at which work is refused; 0 = off'),
    inFlight: whole(0, 1_000_000).prefault(0).describe('Requests waiting for upstreams; 0 = no limit'),
    interval: wait.prefault('1s').describe('How often these values are measured; 0s = never'),
    retryAfter: duration.prefault('5s').describe('`Retry-After` of a refused request'),
  })
  .transform(inMs('eventLoopDelay', 'interval', 'retryAfter'))
  .prefault({})

const countedByHint = 'expected one of: address, credential, key, or claim: and a name, e.g. claim:sub'

const rateLimit = z
  .strictObject({
    name: z
      .string({ error: 'expected a name' })
      .regex(/^[a-z][a-z0-9-]{0,31}$/, 'a name is 1 to 32 lower-case letters, digits and hyphens')
      .describe('Name in `RateLimit` headers, logs and metrics'),
    service: z
      .string({ error: 'expected the name of a service' })
      .describe('Service whose requests are counted'),
    match: routeMatch
      .prefault('* /**')
      .describe(
        'Methods and path under the mount; `*` = any method, or any text in one segment; `**` = any number of segments',
      ),
    by: z
      .string({ error: countedByHint })
      .regex(/^(?:address|credential|key|claim:[\x21-\x7e]{1,64})$/, countedByHint)
      .prefault('address')
      .describe(
        'Count per `address` (IPv6: /64), `credential`, API `key` or `claim:NAME`; requests without one per address',
      ),
    max: whole(1, 1_000_000_000).describe(
      'Requests per window, all of them at once or spread; a client gets them back one by one',
    ),
    window: duration.prefault('1m').describe('Length of the window'),
  })
  .transform(inMs('window'))

const rateLimits = z
  .array(rateLimit)
  .max(100)
  .prefault([])
  .describe('Every limit that matches counts; a request over any limit gets 429')

const rateLimitKeys = whole(1, 10_000_000)
  .prefault(50_000)
  .describe('Clients remembered per limit; the least recently seen is forgotten')

const reload = z
  .strictObject({
    watch: flag.prefault(true).describe('Reload when the file changes'),
    poll: wait.prefault('5s').describe('How often the file is compared where the system reports no changes'),
  })
  .transform(inMs('poll'))
  .prefault({})

/** Settings of the public port and of the protection of the process. */
const edgeShape = { listen, limits, cors: cors.prefault({}), overload, rateLimits, rateLimitKeys, reload }

/** A service's name is a metric label and a key in logs: short, lower-case. */
const serviceNamePattern = /^[a-z][a-z0-9-]{0,31}$/

const services = z
  .record(
    z.string().regex(serviceNamePattern, 'a service name is 1 to 32 lower-case letters, digits and hyphens'),
    serviceShape,
  )
  .refine((services) => Object.keys(services).length > 0, 'at least one service is needed')

/** The schema of the configuration file: names, defaults, bounds. */
export const configShape = z.strictObject({
  ...edgeShape,
  admin: z
    .strictObject({
      host: host.prefault('127.0.0.1').describe('Address that the admin side listens on'),
      port: port.prefault(9090).describe('Port of the admin side; 0 = any free port'),
      token: secret
        .prefault('')
        .describe(
          'Secret. Required on all admin requests except metrics and health; empty = writes only from loopback',
        ),
    })
    .prefault({}),
  publicUrl: publicUrl
    .prefault('')
    .describe('Public URL of the gateway, used in links; empty = made from `listen`'),
  workers: whole(0, 256).prefault(1).describe('Processes that share the port; 0 = one per core'),
  trustedProxies: z
    .array(cidr)
    .max(1_000)
    .prefault([])
    .describe('Proxies (CIDR) whose `X-Forwarded-*` or `Forwarded` headers are trusted'),
  log: z
    .strictObject({
      level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .prefault('info')
        .describe('Lowest level that is logged'),
      format: oneOf(['auto', 'json', 'pretty'])
        .prefault('auto')
        .describe('JSON lines, or text for people; `auto` = text on a terminal, JSON lines elsewhere'),
      access: accessLog
        .prefault(false)
        .describe('One line per request; `sample` = only a share of the hits; members: docs/logging.md'),
      sampleHits: share.prefault(0.01).describe('Share of hits that `access: sample` logs'),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      otlpUrl: optionalUrl
        .prefault('')
        .describe('OpenTelemetry collector (OTLP over HTTP); empty = no tracing'),
      sampleRatio: share
        .prefault(0.1)
        .describe('Share of traces recorded; trusted proxies decide for their own requests'),
      serviceName: z
        .string()
        .min(1)
        .max(255)
        .prefault('trellis')
        .describe('Service name in traces and pushed metrics'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      otlpUrl: optionalUrl
        .prefault('')
        .describe('OpenTelemetry collector (OTLP over HTTP) that metrics are pushed to; empty = none'),
      interval: wait
        .refine((ms) => ms >= 1_000, 'expected at least 1s')
        .prefault('60s')
        .describe('Time between two pushes, at least 1s'),
    })
    .transform(inMs('interval'))
    .prefault({}),
  cache: z
    .strictObject({
      maxBytes: size.prefault('256MiB').describe('Memory for stored responses with their keys and tags'),
      maxEntryBytes: size.prefault('4MiB').describe('Largest stored response'),
      admission: oneOf(['always', 'second-request'])
        .prefault('always')
        .describe('`second-request` = if over 90 % full, store a response on its second request only'),
      warm: z
        .strictObject({
          max: whole(1, 100_000).prefault(1_000).describe('URLs that may wait to be fetched'),
          concurrency: whole(1, 256).prefault(4).describe('URLs fetched at the same time'),
          perSecond: whole(1, 10_000).prefault(20).describe('Fetches started per second'),
        })
        .prefault({}),
      verify: z
        .strictObject({
          rate: rate
            .prefault('0/s')
            .describe('Stored responses that are fetched again and compared: 1/s, 10/m, 5/h; 0/s = none'),
        })
        .prefault({}),
      compression: z
        .strictObject({
          encodings: z
            .array(oneOf(['br', 'gzip', 'zstd']))
            .max(3)
            .prefault(['br', 'gzip'])
            .describe('Codings for stored responses, best first: br, gzip, zstd; [] = none'),
          minBytes: size.prefault('1KiB').describe('Smaller bodies are not compressed'),
        })
        .prefault({}),
      shared: z
        .strictObject({
          url: secret
            .prefault('')
            .describe('Secret. URL of the shared Redis, redis:// or rediss://; empty = none'),
          key: z
            .union([secret, z.array(secret.describe('Secret. One of several keys')).max(8)], {
              error: 'expected a text, or a list of at most 8 texts',
            })
            .transform((keys) => [keys].flat().filter(({ isSet }) => isSet))
            .prefault('')
            .describe(
              'Secret. Signs data in Redis; unsigned data is ignored. List: the first key signs, all verify',
            ),
          tls: z
            .strictObject({
              ca: secret
                .prefault('')
                .describe('Secret. CA certificates for Redis in place of the default ones, PEM'),
              cert: secret.prefault('').describe('Secret. Client certificate for Redis, PEM'),
              key: secret.prefault('').describe('Secret. Key of the client certificate, PEM'),
              serverName: z
                .union([z.literal(''), host])
                .prefault('')
                .describe('Required name in the certificate of Redis; empty = host of the URL'),
            })
            .prefault({}),
          cluster: flag.prefault(false).describe('The URL names a node of a Redis cluster'),
          prefix: keyPrefix
            .prefault('trellis')
            .describe('Prefix of all keys in Redis; different gateways on one Redis need different ones'),
          lease: duration
            .prefault('1s')
            .describe(
              'How long a process serves from memory without contact with the others; also for `workers`',
            ),
          forgetAfter: duration.prefault('5s').describe('When a silent instance is removed from the group'),
          writes: oneOf(['go-on', 'refuse-while-cut-off'])
            .prefault('go-on')
            .describe(
              'While Redis is unreachable: `go-on` = send writes, `refuse-while-cut-off` = writes and purges get 503',
            ),
        })
        .transform(inMs('lease', 'forgetAfter'))
        .prefault({}),
    })
    .prefault({}),
  drain: z
    .strictObject({
      delay: wait.prefault('5s').describe('Time between "not ready" and closing the listener'),
      timeout: wait.prefault('30s').describe('Longest wait for requests in flight'),
    })
    .transform(inMs('delay', 'timeout'))
    .prefault({}),
  services: services
    .prefault({ plants: { contract: 'plants' }, site: { contract: 'site' } })
    .describe('Services by name'),
})

export type ConfigShape = z.output<typeof configShape>

/** Keys of secrets, which may be read from files and are never shown. `*` = any key or index. */
export const secretPaths = [
  ['listen', 'tls', 'cert'],
  ['listen', 'tls', 'key'],
  ['listen', 'tls', 'certificates', '*', 'cert'],
  ['listen', 'tls', 'certificates', '*', 'key'],
  ['admin', 'token'],
  ['cache', 'shared', 'url'],
  ['cache', 'shared', 'key'],
  ['cache', 'shared', 'key', '*'],
  ['cache', 'shared', 'tls', 'ca'],
  ['cache', 'shared', 'tls', 'cert'],
  ['cache', 'shared', 'tls', 'key'],
  ['services', '*', 'changes', 'token'],
  ['services', '*', 'downstream', 'key'],
  ['services', '*', 'downstream', 'receivers', '*', 'secret'],
  ['services', '*', 'downstream', 'receivers', '*', 'ca'],
  ['services', '*', 'upstream', 'tls', 'ca'],
  ['services', '*', 'upstream', 'tls', 'cert'],
  ['services', '*', 'upstream', 'tls', 'key'],
] as const satisfies readonly (readonly string[])[]

/** Keys whose value may be a file, as `file:/path`, and is no secret; `always`: the value is a path in any case. */
export const filePaths = [
  { path: ['services', '*', 'access', 'jwt', 'jwks'], always: false },
  { path: ['services', '*', 'access', 'apiKeys', 'file'], always: true },
  { path: ['services', '*', 'errorPage'], always: true },
] as const satisfies readonly { readonly path: readonly string[]; readonly always: boolean }[]
