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
    host: host().prefault('127.0.0.1').describe('Address of the public side'),
    port: port().prefault(8080).describe('Port of the public side; 0 = any free one'),
    http2: flag().prefault(false).describe('Offer HTTP/2 beside HTTP/1.1; needs `listen.tls`'),
    tls: z
      .strictObject({
        cert: secret().prefault('').describe('Secret. Certificate with its chain, PEM; empty = no TLS'),
        key: secret().prefault('').describe('Secret. Its key, PEM'),
        minVersion: tlsVersion().prefault('1.2').describe('Oldest TLS that is spoken'),
      })
      .prefault({}),
  })
  .prefault({})

const limits = z
  .strictObject({
    headerBytes: size().prefault('16KiB').describe('All request header fields together'),
    urlBytes: size().prefault('8KiB').describe('Request target'),
    queryParameters: whole(1, 10_000).prefault(256).describe('Parameters in a query or a form'),
    bodyBytes: size()
      .optional()
      .describe('Content that is read: JSON and forms; 1MiB, for a site 8MiB as PHP takes'),
    jsonDepth: whole(1, 1_000)
      .optional()
      .describe('Nesting of JSON content; 64, for a site 512 as PHP takes'),
    uploadBytes: size().prefault('64MiB').describe('Content that is streamed on: files'),
    bufferedBytes: size()
      .prefault('32MiB')
      .describe(
        'All that one process holds for requests under way, stored responses apart; half of it for one client address',
      ),
    headersTimeout: wait().prefault('10s').describe('Until all fields of a request have arrived'),
    requestTimeout: wait().prefault('30s').describe('Until a request has arrived whole'),
    readerTimeout: wait()
      .prefault('30s')
      .describe('Longest time in which a client takes nothing of an answer; 0s = no bound'),
    minBytesPerSecond: size()
      .prefault('1KiB')
      .describe(
        'Slowest pace at which a client may send or read what holds a slot of an upstream; 0 = no bound',
      ),
    keepAliveTimeout: wait().prefault('72s').describe('How long an idle connection stays open'),
    connections: whole(0, 1_000_000)
      .prefault(0)
      .describe('Open connections; 0 = as many as the system allows'),
    connectionsPerAddress: whole(0, 1_000_000)
      .prefault(0)
      .describe('Open connections of one IPv4 address or IPv6 /64, `trustedProxies` apart; 0 = no bound'),
  })
  .transform(inMs('headersTimeout', 'requestTimeout', 'readerTimeout', 'keepAliveTimeout'))
  .prefault({})

const cors = z
  .strictObject({
    origins: z
      .array(corsOrigin())
      .max(1_000)
      .prefault([])
      .describe('Origins that browsers may call from; [] = what the upstream says'),
    methods: z
      .array(oneOf(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']))
      .prefault(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
      .describe('Methods that they may use'),
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
      .describe('Request fields that they may send'),
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
      .describe('Response fields that their scripts may read'),
    credentials: flag().prefault(false).describe('Cookies and stored passwords are sent along'),
    maxAge: duration().prefault('10m').describe('How long a browser may remember what a preflight said'),
  })
  .transform(inMs('maxAge'))
  .prefault({})

const overload = z
  .strictObject({
    eventLoopDelay: duration()
      .prefault('1s')
      .describe('Mean delay of the event loop from which work is refused; 0s = not looked at'),
    eventLoopUtilization: share()
      .prefault(0)
      .describe('Share of time in which the event loop is busy; 0 = not looked at'),
    heapBytes: size().prefault(0).describe('Used heap; 0 = not looked at'),
    rssBytes: size().prefault(0).describe('Resident memory; 0 = not looked at'),
    inFlight: whole(0, 1_000_000)
      .prefault(0)
      .describe('Requests under way that wait for an upstream; 0 = no bound'),
    interval: wait().prefault('1s').describe('How often is looked; 0s = never'),
    retryAfter: duration().prefault('5s').describe('Retry-After of a refusal'),
  })
  .transform(inMs('eventLoopDelay', 'interval', 'retryAfter'))
  .prefault({})

const rateLimit = z
  .strictObject({
    name: z
      .string({ error: 'expected a name' })
      .regex(/^[a-z][a-z0-9-]{0,31}$/, 'a name is 1 to 32 lower-case letters, digits and hyphens')
      .describe('Shown in RateLimit fields, logs and metrics'),
    service: z
      .string({ error: 'expected the name of a service' })
      .describe('Service whose requests are counted'),
    match: routeMatch()
      .prefault('* /**')
      .describe(
        'Methods, or `*`, and path under the mount; `*` within a segment, `**` for any number of segments',
      ),
    by: oneOf(['address', 'credential'])
      .prefault('address')
      .describe(
        'Counted for each address (IPv6: /64), or for each credential and without one for the address',
      ),
    max: whole(1, 1_000_000_000).describe('Requests in a window'),
    window: duration().prefault('1m').describe('Length of a window'),
  })
  .transform(inMs('window'))

const rateLimits = z
  .array(rateLimit)
  .max(100)
  .prefault([])
  .describe('All that match are counted; a request beyond one of them gets 429')

const rateLimitKeys = whole(1, 10_000_000)
  .prefault(50_000)
  .describe('Callers that are remembered for each limit; the one not seen longest goes')

const reload = z
  .strictObject({
    watch: flag().prefault(true).describe('A changed file is put in force without being asked for'),
    poll: wait().prefault('5s').describe('How often is looked where the system tells of no change'),
  })
  .transform(inMs('poll'))
  .prefault({})

/** Settings of the public port and of the protection of the process. */
export const edgeShape = { listen, limits, cors, overload, rateLimits, rateLimitKeys, reload }
