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
      host: host().prefault('127.0.0.1').describe('Address of the admin side'),
      port: port()
        .prefault(9090)
        .describe('Port of metrics, health, purge and status page; 0 = any free one'),
      token: secret()
        .prefault('')
        .describe(
          'Secret. Asked for when set, on all but metrics and health; without one, writes come from loopback only',
        ),
    })
    .prefault({}),
  publicUrl: publicUrl().prefault('').describe('Used in links; empty = made of `listen`'),
  workers: whole(0, 256).prefault(1).describe('Processes that share the port; 0 = one per core'),
  trustedProxies: z
    .array(cidr())
    .max(1_000)
    .prefault([])
    .describe(
      'CIDR blocks whose X-Forwarded-For and X-Forwarded-Proto are believed, or Forwarded where they send neither',
    ),
  log: z
    .strictObject({
      level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
        .prefault('info')
        .describe('Least severe level that is written'),
      format: oneOf(['json', 'pretty']).prefault('json').describe('JSON lines, or text for people'),
      access: accessLog()
        .prefault(false)
        .describe('A line for each request; `sample`: for a share of the hits, and for all others'),
      sampleHits: share()
        .prefault(0.01)
        .describe('Share of the hits that get a line with `access: sample`; 0 = none'),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      otlpUrl: optionalUrl(['http://', 'https://'])
        .prefault('')
        .describe('OpenTelemetry collector; empty = no tracing'),
      sampleRatio: share()
        .prefault(0.1)
        .describe('Share of the traces that are recorded; a trusted proxy may decide for its own'),
      serviceName: z
        .string()
        .min(1)
        .max(255)
        .prefault('trellis')
        .describe('How the traces name this gateway'),
    })
    .prefault({}),
  cache: z
    .strictObject({
      maxBytes: size().prefault('256MiB').describe('All stored responses together, with keys and tags'),
      maxEntryBytes: size().prefault('4MiB').describe('Largest response that is stored'),
      admission: oneOf(['always', 'second-request'])
        .prefault('always')
        .describe('`second-request`: while over 90 % full, only what is asked for again is stored'),
      compression: z
        .strictObject({
          encodings: z
            .array(oneOf(['br', 'gzip', 'zstd']))
            .max(3)
            .prefault(['br', 'gzip'])
            .describe('Content codings of stored answers, best first: br, gzip, zstd; [] = none'),
          minBytes: size().prefault('1KiB').describe('Shorter contents are not compressed'),
        })
        .prefault({}),
      shared: z
        .strictObject({
          url: secret()
            .prefault('')
            .describe('Secret. redis:// or rediss:// of the second tier; empty = none'),
          key: z
            .union([secret(), z.array(secret().describe('Secret. One of several keys')).max(8)], {
              error: 'expected a text, or a list of at most 8 texts',
            })
            .transform((keys) => [keys].flat().filter(({ isSet }) => isSet))
            .prefault('')
            .describe(
              'Secret. Signs what is written to Redis; what is not signed with it is not believed. Of a list the first one signs, all verify',
            ),
          tls: z
            .strictObject({
              ca: secret()
                .prefault('')
                .describe('Secret. Authorities to believe instead of the usual ones, PEM'),
              cert: secret()
                .prefault('')
                .describe('Secret. Certificate that the gateway shows to Redis, PEM'),
              key: secret().prefault('').describe('Secret. Its key, PEM'),
              serverName: z
                .union([z.literal(''), host()])
                .prefault('')
                .describe("Name that the certificate of Redis must show; empty = the URL's"),
            })
            .prefault({}),
          cluster: flag().prefault(false).describe('The URL is that of a node of a Redis cluster'),
          prefix: keyPrefix()
            .prefault('trellis')
            .describe('In front of all keys: gateways with other content on one Redis use another one'),
          lease: duration()
            .prefault('1s')
            .describe('So long a process trusts its memory without a word; also that of `workers`'),
          forgetAfter: duration()
            .prefault('5s')
            .describe('After so long an instance that fell silent is done without'),
          writes: oneOf(['go-on', 'refuse-while-cut-off'])
            .prefault('go-on')
            .describe(
              'What an instance that cannot reach the store does with writes and purges: carries them out, unheard, or answers 503',
            ),
        })
        .transform(inMs('lease', 'forgetAfter'))
        .prefault({}),
    })
    .prefault({}),
  drain: z
    .strictObject({
      delay: wait().prefault('5s').describe('From "not ready" to closing the listener'),
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
