import type { LookupFunction } from 'node:net'
import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { createFairTurns } from '../http/bounds/fair-turns.ts'
import type { GatewayResponse } from '../http/message.ts'
import { sharedLookup, systemLookup } from '../system-lookup.ts'
import type { UpstreamEvent } from './events.ts'
import type { ForwardRequest } from './messages.ts'
import type { UpstreamOptions } from './options.ts'
import { createBreaker } from './send/breaker.ts'
import { pollIntervalMs, RequestsInFlight } from './send/in-flight.ts'
import { createRetryBudget } from './send/retry-budget.ts'
import { Slots } from './send/slots.ts'
import { createPacePoll } from './send/slow-clients.ts'
import { type UpstreamDeps, UpstreamRequest } from './send/upstream-request.ts'
import { startProbes } from './targets/probe.ts'
import { isDown } from './targets/target-health.ts'
import { type Target, Targets } from './targets/targets.ts'

const snapshotOf = (target: Target) => ({
  origin: target.origin,
  state: target.state,
  outstanding: target.outstanding,
  /** Connections of its pool, those in use included. */
  connections: target.pool.stats.connected,
  idleConnections: target.pool.stats.free,
})

/** Long responses that continue in one turn of the event loop, 128 KiB each: some milliseconds. */
const longResponsesPerTurn = 4

/** Connects nothing until the first request or probe. */
export const createUpstream = (
  options: UpstreamOptions,
  deps: {
    readonly clock: Clock
    readonly random: () => number
    /** Resolves a target's name, for each connection anew; the system's resolver unless given. */
    readonly lookup?: LookupFunction
    readonly report: (event: UpstreamEvent) => void
  },
) => {
  const slots = new Slots({
    max: options.maxConcurrent,
    queueMax: options.queue.max,
    queueTimeoutMs: options.queue.timeoutMs,
    clientShare: options.clientShare,
  })
  const lookup = deps.lookup === undefined ? systemLookup : sharedLookup(deps.lookup)
  const targets = new Targets(options, lookup, deps.report)
  const budget = createRetryBudget(options.retry.budget)
  const breaker = createBreaker({ ...options.breaker, service: options.service }, deps.report)
  const longResponses = createFairTurns(longResponsesPerTurn)
  const inFlight = new RequestsInFlight<UpstreamRequest>()
  let isClosing = false
  const limits = { slots, budget, breaker, longResponses }
  const requestDeps: UpstreamDeps = { ...deps, ...limits, options, targets, inFlight }
  const stopChecks = startProbes(options, targets, lookup, deps)
  const { minBytesPerSecond } = options
  const poll = createPacePoll({ minBytesPerSecond, slots, monotonic: deps.clock.monotonic })
  const poller = setInterval(() => {
    const nowMs = deps.clock.monotonic()
    for (const request of [...inFlight.all]) request.boundTotal(nowMs)
    poll([...inFlight.all])
  }, pollIntervalMs).unref()

  return {
    /** Rejects with a GatewayError without a response head; a response that breaks later has a content that errors. */
    request: (request: ForwardRequest) =>
      new Promise<GatewayResponse>((resolve, reject) => {
        new UpstreamRequest(requestDeps, request, resolve, reject).begin(
          isClosing ? new GatewayError('shutting_down') : undefined,
        )
      }),
    snapshot: () => ({
      targets: targets.all.map(snapshotOf),
      inFlight: slots.inFlight,
      queued: slots.queued,
      /** Of those in flight, the ones that wait for their clients: for the rest of a body, or for the response to be read. */
      waitingForClients: inFlight.all.filter(({ waitsForClient }) => waitsForClient !== undefined).length,
      breaker: breaker.state,
      /** No useful response can be expected: only stored ones are left. */
      down: isDown(breaker.state, targets.all),
      unknown: targets.all.every(({ state }) => state === 'unknown'),
      retriesLeft: budget.left(deps.clock.monotonic()),
    }),
    /** Ends active checks; requests go on. */
    stopChecks,
    /** Takes no new requests and resolves when those in flight have ended. */
    async close(): Promise<void> {
      stopChecks()
      isClosing = true
      await inFlight.idle()
      // Nothing is in flight any more.
      clearInterval(poller)
      await Promise.all(targets.all.map(({ pool }) => (pool.destroyed ? undefined : pool.close())))
    },
    async destroy(): Promise<void> {
      stopChecks()
      clearInterval(poller)
      isClosing = true
      inFlight.abortAll(new GatewayError('shutting_down'))
      await Promise.all(targets.all.map(({ pool }) => pool.destroy()))
    },
  }
}

export type Upstream = ReturnType<typeof createUpstream>
