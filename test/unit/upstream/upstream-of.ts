import type { LookupFunction } from 'node:net'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { isSafe } from '../../../src/http/methods.ts'
import type { UpstreamEvent } from '../../../src/upstream/events.ts'
import type { ForwardRequest } from '../../../src/upstream/messages.ts'
import type { UpstreamOptions } from '../../../src/upstream/options.ts'
import { createUpstream, type Upstream } from '../../../src/upstream/upstream.ts'

/** Times for tests that wait for them to pass. */
export const shortTimes = { connectMs: 300, headersMs: 300, idleMs: 300, totalMs: 3_000 }

/** TLS as it is when nothing is configured. */
export const noTls: UpstreamOptions['tls'] = {
  ca: '',
  cert: '',
  key: '',
  serverName: '',
  minVersion: 'TLSv1.2',
  acceptAnyCertificate: false,
}

/** Active checks as they are by default, which is off; a path switches them on. */
export const noChecks: UpstreamOptions['health'] = {
  path: '',
  intervalMs: 1_000,
  timeoutMs: 1_000,
  expect: [[200, 399]],
  failAfter: 2,
  recoverAfter: 1,
}

/** An upstream with one service's settings, ended with the test, and what it reported; `skip` sets its clock forward, not its timers. */
export const upstreamOf = (
  targets: readonly string[],
  options: Partial<UpstreamOptions> = {},
  lookup?: LookupFunction,
): { upstream: Upstream; events: UpstreamEvent[]; options: UpstreamOptions; skip(ms: number): void } => {
  let skippedMs = 0
  const events: UpstreamEvent[] = []
  const settings: UpstreamOptions = {
    service: 'test',
    targets,
    basePath: '/',
    maxConcurrent: 8,
    queue: { max: 64, timeoutMs: 1_000 },
    // Its requests are all of one client.
    clientShare: 1,
    minBytesPerSecond: 0,
    timeouts: { connectMs: 3_000, headersMs: 3_000, idleMs: 3_000, totalMs: 9_000 },
    retry: { attempts: 2, budget: 0.2 },
    eject: { after: 3, forMs: 100, maxShare: 0.5 },
    tls: noTls,
    headerBytes: 64 * 1024,
    hostHeader: '',
    connectionMaxAgeMs: 0,
    breaker: { failureRatio: 0, minRequests: 20, windowMs: 10_000, forMs: 200, probes: 2 },
    health: noChecks,
    ...options,
  }
  const upstream = createUpstream(settings, {
    clock: { now: systemClock.now, monotonic: () => systemClock.monotonic() + skippedMs },
    random: () => 0,
    report: (event) => events.push(event),
    ...(lookup === undefined ? {} : { lookup }),
  })
  onTestFinished(() => upstream.destroy())
  const skip = (ms: number): void => {
    skippedMs += ms
  }
  return { upstream, events, options: settings, skip }
}

/** A GET of `/` unless told otherwise. */
export const request = (changes: Partial<ForwardRequest> = {}): ForwardRequest => ({
  method: 'GET',
  effect: isSafe(changes.method ?? 'GET') ? 'read' : 'write',
  target: '/',
  headers: [],
  content: undefined,
  signal: new AbortController().signal,
  ...changes,
})
