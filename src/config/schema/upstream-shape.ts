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
    basePath: pathPrefix().prefault(basePath).describe('Path of the interface on the upstream'),
    maxConcurrent: whole(1, 65_536)
      .prefault(64)
      .describe('Requests in flight to this upstream, from all clients'),
    clientShare: share()
      .prefault(0.5)
      .describe(
        'Share of the slots that other clients do not use, and of the queue, that one client (IPv4 address or IPv6 /64) may use; 1 = no limit',
      ),
    queue: z
      .strictObject({
        max: whole(0, 1_000_000).prefault(256).describe('Requests that may wait for a free slot'),
        timeout: wait().prefault('5s').describe('Longest wait for a free slot'),
      })
      .transform(inMs('timeout'))
      .prefault({}),
    timeouts: z
      .strictObject({
        connect: wait().prefault('1s').describe('Until the connection is open'),
        headers: wait().prefault('10s').describe('From the request sent to the response headers'),
        idle: wait().prefault('10s').describe('Longest pause within a response'),
        total: wait().prefault('30s').describe('Whole request, with queue and retries'),
      })
      .transform(inMs('connect', 'headers', 'idle', 'total'))
      .prefault({}),
    retry: z
      .strictObject({
        attempts: whole(1, 10)
          .prefault(2)
          .describe('Attempts in total; only idempotent requests are retried'),
        budget: share().prefault(0.2).describe('Retries as a share of requests'),
      })
      .prefault({}),
    eject: z
      .strictObject({
        after: whole(1, 1_000)
          .prefault(5)
          .describe('Consecutive failures after which a target gets no requests'),
        for: duration().prefault('10s').describe('How long the target gets no requests'),
        maxShare: share().prefault(0.5).describe('Largest share of targets that are ejected at once'),
      })
      .transform(inMs('for'))
      .prefault({}),
    breaker: z
      .strictObject({
        failureRatio: share()
          .prefault(0.5)
          .describe('Share of failed requests at which the breaker opens; 0 = never'),
        minRequests: whole(1, 1_000_000)
          .prefault(20)
          .describe('With fewer requests in the window the breaker stays closed'),
        window: duration().prefault('10s').describe('Period over which failures are counted'),
        for: duration().prefault('5s').describe('How long the open breaker refuses requests'),
        probes: whole(1, 1_000).prefault(3).describe('Trial requests that must succeed to close the breaker'),
      })
      .transform(inMs('window', 'for'))
      .prefault({}),
    host: oneOf(['target', 'preserve'])
      .prefault('target')
      .describe('`Host` sent upstream: that of the target, or that of `publicUrl`'),
    http2: flag().prefault(false).describe('Offer HTTP/2 to https targets'),
    connections: z
      .strictObject({
        maxAge: wait()
          .prefault('5m')
          .describe('Age at which a connection is replaced, with a new DNS lookup; 0s = no limit'),
      })
      .transform(inMs('maxAge'))
      .prefault({}),
    tls: z
      .strictObject({
        ca: secret().prefault('').describe('Secret. CA certificates instead of the default ones, PEM'),
        cert: secret().prefault('').describe('Secret. Client certificate, PEM'),
        key: secret().prefault('').describe('Secret. Key of the client certificate, PEM'),
        serverName: z
          .union([z.literal(''), host()])
          .prefault('')
          .describe('Name that the certificate must have; empty = host of the target'),
        minVersion: tlsVersion().prefault('1.2').describe('Oldest TLS version used to the upstream'),
        acceptAnyCertificate: flag()
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
          .describe('Path of the health check, below `basePath`; empty = no checks'),
        interval: wait().prefault('5s').describe('Time between two checks of a target'),
        timeout: wait()
          .optional()
          .describe('Until a check must be complete; empty = 2s, or `interval` if shorter'),
        expect: statusRanges()
          .prefault('200-399')
          .describe('Statuses that pass a check, such as `200,204` or `200-299,401`'),
        failAfter: whole(1, 1_000)
          .prefault(2)
          .describe('Consecutive failed checks that make a target unhealthy'),
        recoverAfter: whole(1, 1_000)
          .prefault(1)
          .describe('Consecutive passed checks that make it healthy again'),
      })
      .transform((health) =>
        inMs(
          'interval',
          'timeout',
        )({ ...health, timeout: health.timeout ?? Math.min(defaultCheckTimeoutMs, health.interval) }),
      )
      .prefault({}),
  })
