import * as z from 'zod'
import { edgeShape } from './edge-shape.ts'
import {
  accessLog,
  cidr,
  duration,
  flag,
  host,
  inMs,
  keyPrefix,
  oneOf,
  optionalUrl,
  port,
  publicUrl,
  secret,
  share,
  size,
  wait,
  whole,
} from './leaves.ts'
import { serviceShape } from './service-shape.ts'

/** A service's name is a metric label and a key in logs: short, lower-case. */
const serviceNamePattern = /^[a-z][a-z0-9-]{0,31}$/

const services = z
  .record(
    z.string().regex(serviceNamePattern, 'a service name is 1 to 32 lower-case letters, digits and hyphens'),
    serviceShape,
  )
  .refine((named) => Object.keys(named).length > 0, 'at least one service is needed')

/** The schema of the configuration file: names, defaults, bounds. */
export const configShape = z.strictObject({
  ...edgeShape,
  admin: z
    .strictObject({
      host: host().prefault('127.0.0.1').describe('Address that the admin side listens on'),
      port: port().prefault(9090).describe('Port of the admin side; 0 = any free port'),
      token: secret()
        .prefault('')
        .describe(
          'Secret. Required on all admin requests except metrics and health; empty = writes only from loopback',
        ),
    })
    .prefault({}),
  publicUrl: publicUrl()
    .prefault('')
    .describe('Public URL of the gateway, used in links; empty = made from `listen`'),
  workers: whole(0, 256).prefault(1).describe('Processes that share the port; 0 = one per core'),
  trustedProxies: z
    .array(cidr())
    .max(1_000)
    .prefault([])
    .describe('Proxies (CIDR) whose `X-Forwarded-*` or `Forwarded` headers are trusted'),
  log: z
    .strictObject({
      level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .prefault('info')
        .describe('Lowest level that is logged'),
      format: oneOf(['json', 'pretty'])
        .prefault('json')
        .describe('JSON lines, or text for reading in a terminal'),
      access: accessLog()
        .prefault(false)
        .describe('One line per request; `sample` = all requests except hits, and a share of the hits'),
      sampleHits: share().prefault(0.01).describe('Share of hits that `access: sample` logs'),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      otlpUrl: optionalUrl(['http://', 'https://'])
        .prefault('')
        .describe('URL of the OpenTelemetry collector (OTLP over HTTP); empty = no tracing'),
      sampleRatio: share()
        .prefault(0.1)
        .describe('Share of traces that are recorded; a trusted proxy decides for its own requests'),
      serviceName: z.string().min(1).max(255).prefault('trellis').describe('Service name in traces'),
    })
    .prefault({}),
  cache: z
    .strictObject({
      maxBytes: size()
        .prefault('256MiB')
        .describe('Memory for all stored responses, including keys and tags'),
      maxEntryBytes: size().prefault('4MiB').describe('Largest response that is stored'),
      admission: oneOf(['always', 'second-request'])
        .prefault('always')
        .describe(
          '`second-request` = when the cache is over 90 % full, store a response only on its second request',
        ),
      compression: z
        .strictObject({
          encodings: z
            .array(oneOf(['br', 'gzip', 'zstd']))
            .max(3)
            .prefault(['br', 'gzip'])
            .describe('Codings for stored responses, best first: br, gzip, zstd; [] = none'),
          minBytes: size().prefault('1KiB').describe('Smaller bodies are not compressed'),
        })
        .prefault({}),
      shared: z
        .strictObject({
          url: secret()
            .prefault('')
            .describe('Secret. URL of the shared Redis, redis:// or rediss://; empty = none'),
          key: z
            .union([secret(), z.array(secret().describe('Secret. One of several keys')).max(8)], {
              error: 'expected a text, or a list of at most 8 texts',
            })
            .transform((keys) => [keys].flat().filter(({ isSet }) => isSet))
            .prefault('')
            .describe(
              'Secret. Signs data in Redis; unsigned data is ignored. In a list, the first key signs and all verify',
            ),
          tls: z
            .strictObject({
              ca: secret()
                .prefault('')
                .describe('Secret. CA certificates for Redis instead of the default ones, PEM'),
              cert: secret().prefault('').describe('Secret. Client certificate for Redis, PEM'),
              key: secret().prefault('').describe('Secret. Key of the client certificate, PEM'),
              serverName: z
                .union([z.literal(''), host()])
                .prefault('')
                .describe('Name that the certificate of Redis must have; empty = host of the URL'),
            })
            .prefault({}),
          cluster: flag().prefault(false).describe('The URL names a node of a Redis cluster'),
          prefix: keyPrefix()
            .prefault('trellis')
            .describe('Prefix of all keys in Redis; different gateways on one Redis need different prefixes'),
          lease: duration()
            .prefault('1s')
            .describe(
              'How long a process may serve from memory without contact to the others; applies to `workers` too',
            ),
          forgetAfter: duration()
            .prefault('5s')
            .describe('Time after which a silent instance is removed from the group'),
          writes: oneOf(['go-on', 'refuse-while-cut-off'])
            .prefault('go-on')
            .describe(
              'When Redis is unreachable: `go-on` = send writes anyway, `refuse-while-cut-off` = answer writes and purges with 503',
            ),
        })
        .transform(inMs('lease', 'forgetAfter'))
        .prefault({}),
    })
    .prefault({}),
  drain: z
    .strictObject({
      delay: wait().prefault('5s').describe('Time between "not ready" and closing the listener'),
      timeout: wait().prefault('30s').describe('Longest wait for requests in flight'),
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
  ['admin', 'token'],
  ['cache', 'shared', 'url'],
  ['cache', 'shared', 'key'],
  ['cache', 'shared', 'key', '*'],
  ['cache', 'shared', 'tls', 'ca'],
  ['cache', 'shared', 'tls', 'cert'],
  ['cache', 'shared', 'tls', 'key'],
  ['services', '*', 'upstream', 'tls', 'ca'],
  ['services', '*', 'upstream', 'tls', 'cert'],
  ['services', '*', 'upstream', 'tls', 'key'],
] as const satisfies readonly (readonly string[])[]
