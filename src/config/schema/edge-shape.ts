import * as z from 'zod'
import {
  corsOrigin,
  duration,
  fieldName,
  flag,
  host,
  inMs,
  oneOf,
  port,
  routeMatch,
  secret,
  share,
  size,
  tlsVersion,
  wait,
  whole,
} from './leaves.ts'

const listen = z
  .strictObject({
    host: host().prefault('127.0.0.1').describe('Address that the public side listens on'),
    port: port().prefault(8080).describe('Port of the public side; 0 = any free port'),
    http2: flag().prefault(false).describe('Offer HTTP/2 as well as HTTP/1.1; requires `listen.tls`'),
    tls: z
      .strictObject({
        cert: secret().prefault('').describe('Secret. Certificate chain, PEM; empty = no TLS'),
        key: secret().prefault('').describe('Secret. Key of the certificate, PEM'),
        minVersion: tlsVersion().prefault('1.2').describe('Oldest TLS version accepted from clients'),
      })
      .prefault({}),
  })
  .prefault({})

const limits = z
  .strictObject({
    headerBytes: size().prefault('16KiB').describe('All request headers together'),
    urlBytes: size().prefault('8KiB').describe('Length of a request URL'),
    queryParameters: whole(1, 10_000).prefault(256).describe('Parameters in a query or form'),
    bodyBytes: size().optional().describe('JSON or form body; empty = 1MiB, for a site 8MiB like PHP'),
    jsonDepth: whole(1, 1_000).optional().describe('Nesting of JSON; empty = 64, for a site 512 like PHP'),
    uploadBytes: size()
      .prefault('64MiB')
      .describe('Body that is streamed to the upstream, such as a file upload'),
    bufferedBytes: size()
      .prefault('32MiB')
      .describe(
        'Memory per process for bodies in flight, without the cache; one client address gets half of it',
      ),
    headersTimeout: wait().prefault('10s').describe('Until all headers of a request have arrived'),
    requestTimeout: wait().prefault('30s').describe('Until a request has arrived completely'),
    readerTimeout: wait()
      .prefault('30s')
      .describe('A client that reads nothing of its response for this long is disconnected; 0s = no limit'),
    minBytesPerSecond: size()
      .prefault('1KiB')
      .describe('Slowest pace of a client that occupies an upstream slot; 0 = no limit'),
    keepAliveTimeout: wait().prefault('72s').describe('How long an idle connection stays open'),
    connections: whole(0, 1_000_000).prefault(0).describe('Open connections; 0 = no limit'),
    connectionsPerAddress: whole(0, 1_000_000)
      .prefault(0)
      .describe('Open connections per IPv4 address or IPv6 /64, except `trustedProxies`; 0 = no limit'),
  })
  .transform(inMs('headersTimeout', 'requestTimeout', 'readerTimeout', 'keepAliveTimeout'))
  .prefault({})

const cors = z
  .strictObject({
    origins: z
      .array(corsOrigin())
      .max(1_000)
      .prefault([])
      .describe('Origins whose pages may call the gateway; [] = the upstream decides'),
    methods: z
      .array(oneOf(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
      .prefault(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
      .describe('Methods those pages may use'),
    headers: z
      .array(fieldName())
      .max(100)
      .prefault([
        'Authorization',
        'Content-Type',
        'X-WP-Nonce',
        'X-HTTP-Method-Override',
        'If-Match',
        'If-None-Match',
      ])
      .describe('Request headers those pages may send'),
    exposedHeaders: z
      .array(fieldName())
      .max(100)
      .prefault([
        'X-WP-Total',
        'X-WP-TotalPages',
        'Link',
        'Location',
        'ETag',
        'Cache-Status',
        'X-Request-Id',
        'Retry-After',
      ])
      .describe('Response headers those pages may read'),
    credentials: flag().prefault(false).describe('Allow cookies and HTTP authentication'),
    maxAge: duration().prefault('10m').describe('How long a browser may cache a preflight'),
  })
  .transform(inMs('maxAge'))
  .prefault({})

const overload = z
  .strictObject({
    eventLoopDelay: duration()
      .prefault('1s')
      .describe('Mean event-loop delay at which work is refused; 0s = not checked'),
    eventLoopUtilization: share()
      .prefault(0)
      .describe('Busy share of the event loop at which work is refused; 0 = not checked'),
    heapBytes: size().prefault(0).describe('Used heap at which work is refused; 0 = not checked'),
    rssBytes: size().prefault(0).describe('Resident memory at which work is refused; 0 = not checked'),
    inFlight: whole(0, 1_000_000)
      .prefault(0)
      .describe('Requests that wait for upstreams at the same time; 0 = no limit'),
    interval: wait().prefault('1s').describe('How often these values are measured; 0s = never'),
    retryAfter: duration().prefault('5s').describe('`Retry-After` of a refused request'),
  })
  .transform(inMs('eventLoopDelay', 'interval', 'retryAfter'))
  .prefault({})

const rateLimit = z
  .strictObject({
    name: z
      .string({ error: 'expected a name' })
      .regex(/^[a-z][a-z0-9-]{0,31}$/, 'a name is 1 to 32 lower-case letters, digits and hyphens')
      .describe('Name in `RateLimit` headers, logs and metrics'),
    service: z
      .string({ error: 'expected the name of a service' })
      .describe('Service whose requests are counted'),
    match: routeMatch()
      .prefault('* /**')
      .describe(
        'Methods and path under the mount; `*` = any method, or any text in one segment; `**` = any number of segments',
      ),
    by: oneOf(['address', 'credential'])
      .prefault('address')
      .describe('Count per client address (IPv6: /64), or per credential and otherwise per address'),
    max: whole(1, 1_000_000_000).describe('Requests per window'),
    window: duration().prefault('1m').describe('Length of the window'),
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
    watch: flag().prefault(true).describe('Reload when the file changes'),
    poll: wait()
      .prefault('5s')
      .describe('How often the file is compared where the system reports no changes'),
  })
  .transform(inMs('poll'))
  .prefault({})

/** Settings of the public port and of the protection of the process. */
export const edgeShape = { listen, limits, cors, overload, rateLimits, rateLimitKeys, reload }
