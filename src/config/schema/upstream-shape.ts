import * as z from 'zod'
import {
  duration,
  flag,
  host,
  inMs,
  oneOf,
  pathPrefix,
  secret,
  share,
  statusRanges,
  tlsVersion,
  wait,
  whole,
} from './leaves.ts'

/** Where `health.timeout` is not given; a shorter interval shortens it. */
const defaultCheckTimeoutMs = 2_000

/** Settings of the upstream of a service; base path and targets differ by contract. */
export const upstreamShape = <Targets extends z.ZodType>(basePath: string, targets: Targets) =>
  z.strictObject({
    targets,
    basePath: pathPrefix().prefault(basePath).describe('Path under which the upstream offers the interface'),
    maxConcurrent: whole(1, 65_536)
      .prefault(64)
      .describe('Upstream requests in flight, all callers together'),
    clientShare: share()
      .prefault(0.5)
      .describe(
        'Part of these, and of the queue, that one client may have: an IPv4 address, or an IPv6 /64; 1 = no bound',
      ),
    queue: z
      .strictObject({
        max: whole(0, 1_000_000).prefault(256).describe('Requests that may wait for a free place'),
        timeout: wait().prefault('5s').describe('Longest wait for a free place'),
      })
      .transform(inMs('timeout'))
      .prefault({}),
    timeouts: z
      .strictObject({
        connect: wait().prefault('1s').describe('Until the connection stands'),
        headers: wait().prefault('10s').describe('From request sent to answer headers'),
        idle: wait().prefault('10s').describe('Longest pause within an answer'),
        total: wait().prefault('30s').describe('Whole exchange with the upstream'),
      })
      .transform(inMs('connect', 'headers', 'idle', 'total'))
      .prefault({}),
    retry: z
      .strictObject({
        attempts: whole(1, 10).prefault(2).describe('Tries in all; only idempotent requests are tried again'),
        budget: share().prefault(0.2).describe('Retries as a share of requests'),
      })
      .prefault({}),
    eject: z
      .strictObject({
        after: whole(1, 1_000).prefault(5).describe('Failures in a row until a target is left out'),
        for: duration().prefault('10s').describe('How long it is left out'),
        maxShare: share().prefault(0.5).describe('Largest share of targets left out at once'),
      })
      .transform(inMs('for'))
      .prefault({}),
    breaker: z
      .strictObject({
        failureRatio: share()
          .prefault(0.5)
          .describe('Share of failed requests at which the upstream is left alone; 0 = never'),
        minRequests: whole(1, 1_000_000)
          .prefault(20)
          .describe('Requests in the window below which it stays closed'),
        window: duration().prefault('10s').describe('How far back requests count'),
        for: duration().prefault('5s').describe('How long the upstream is left alone'),
        probes: whole(1, 1_000).prefault(3).describe('Requests that then find out whether it is back'),
      })
      .transform(inMs('window', 'for'))
      .prefault({}),
    host: oneOf(['target', 'preserve'])
      .prefault('target')
      .describe('Host that the upstream sees: its own, or that of `publicUrl`'),
    http2: flag().prefault(false).describe('Offer HTTP/2 to https targets'),
    connections: z
      .strictObject({
        maxAge: wait()
          .prefault('5m')
          .describe('Then a new one is opened and the name looked up again; 0s = no bound'),
      })
      .transform(inMs('maxAge'))
      .prefault({}),
    tls: z
      .strictObject({
        ca: secret().prefault('').describe('Secret. Authorities to believe instead of the usual ones, PEM'),
        cert: secret().prefault('').describe('Secret. Certificate that the gateway shows, PEM'),
        key: secret().prefault('').describe('Secret. Its key, PEM'),
        serverName: z
          .union([z.literal(''), host()])
          .prefault('')
          .describe("Name that the certificate must show; empty = the target's"),
        minVersion: tlsVersion().prefault('1.2').describe('Oldest TLS that is spoken'),
        acceptAnyCertificate: flag()
          .prefault(false)
          .describe('Believe whoever answers; for tests, warned about at the start'),
      })
      .prefault({}),
    health: z
      .strictObject({
        path: z
          .string({ error: 'expected a path, or an empty text for "off"' })
          .regex(/^(\/[^\s#]*)?$/, 'expected a path that starts with "/", or an empty text for "off"')
          .prefault('')
          .describe('Asked on each target when set, below `basePath`'),
        interval: wait().prefault('5s').describe('From one check of a target to the next'),
        timeout: wait()
          .optional()
          .describe('Until the answer to a check is complete; 2s, or `interval` where that is shorter'),
        expect: statusRanges()
          .prefault('200-399')
          .describe('Statuses that pass a check: `200-399`, `200,204` or `200-299,401`'),
        failAfter: whole(1, 1_000)
          .prefault(2)
          .describe('Failed checks in a row until a target counts as failing'),
        recoverAfter: whole(1, 1_000)
          .prefault(1)
          .describe('Passed checks in a row until it counts as healthy again'),
      })
      .transform((health) =>
        inMs(
          'interval',
          'timeout',
        )({ ...health, timeout: health.timeout ?? Math.min(defaultCheckTimeoutMs, health.interval) }),
      )
      .prefault({}),
  })
