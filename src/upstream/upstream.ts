import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Clock } from '../clock.ts'
import { createFairTurns } from '../http/fair-turns.ts'
import type { FieldLines } from '../http/fields.ts'
import type { GatewayResponse, Interim } from '../http/message.ts'
import type { AttemptEvent, UpstreamEvent } from './events.ts'
import type { UpstreamOptions } from './options.ts'
import { createPaceLook, lookEveryMs, type PacedRequest } from './send/client-pace.ts'
import { UpstreamDispatcher } from './send/dispatcher.ts'
import { type Abortable, UnderWay } from './send/in-flight.ts'
import { Receiver } from './send/receive.ts'
import { createRetryBudget } from './send/retry-budget.ts'
import { createSlots } from './send/slots.ts'
import type { RelayOptions } from './send/upstream-context.ts'
import { type BreakerState, createBreaker } from './targets/breaker.ts'
import { startProbes } from './targets/probe.ts'
import { sharedLookup, systemLookup } from './targets/shared-lookup.ts'
import { isDown, type TargetState } from './targets/target-health.ts'
import { createTargets, type Target } from './targets/targets.ts'

/** A request to forward: end-to-end fields only, without Host and framing. */
export type ForwardRequest = {
  readonly method: string
  /** Path and query as the upstream is asked, base path included. */
  readonly target: string
  /** Names in lower case. */
  readonly fields: FieldLines
  /** A stream that has a Content-Length field is sent with it, otherwise in chunks. */
  readonly content: Buffer | Readable | undefined
  readonly signal: AbortSignal
  /** When it is aborted before anything has been sent, nothing will be; afterwards it has no effect. */
  readonly withdraw?: AbortSignal | undefined
  /** Address of the client on whose share it counts, IPv6 by its /64; absent for the gateway's own work, which together has the share of one client. */
  readonly clientAddress?: string
  /** A client's requests of one line wait for one another; lines are served in turn. Absent = the line of single requests. */
  readonly line?: string
  /** Hears of interim responses (RFC 9110 §15.2). */
  readonly interim?: Interim | undefined
  /** Hears of each of its attempts that ended, beside whoever counts them all. */
  readonly attempted?: ((attempt: AttemptEvent) => void) | undefined
}

/** What a target looks like from here. */
type TargetSnapshot = {
  readonly origin: string
  readonly state: TargetState
  readonly outstanding: number
  /** Connections of its pool, those in use included. */
  readonly connections: number
  readonly idleConnections: number
}

/** The way to one service: several targets, one set of limits. */
export type Upstream = {
  /** Stands for the upstream where an absolute URL is compared. RFC 2606 §2: never resolves. */
  readonly placeholderOrigin: string
  /** Rejects with a GatewayError when no response head came; a response that breaks later has a content that errors. */
  forward(request: ForwardRequest): Promise<GatewayResponse>
  snapshot(): {
    readonly targets: readonly TargetSnapshot[]
    readonly inFlight: number
    readonly queued: number
    /** Of those in flight, the ones that wait for their clients: for the rest of a body, or for an answer to be read. */
    readonly waitingForClients: number
    readonly breaker: BreakerState['state']
    /** No answer of any use is to be expected: what is stored is all there is. */
    readonly down: boolean
    readonly retriesLeft: number
  }
  /** Ends active checks; requests go on. */
  stopChecks(): void
  /** Takes no new requests and resolves when those under way have ended. */
  close(): Promise<void>
  /** Ends the requests under way. */
  destroy(): Promise<void>
}

const snapshotOf = (target: Target): TargetSnapshot => ({
  origin: target.origin,
  state: target.state,
  outstanding: target.outstanding,
  connections: target.pool.stats.connected,
  idleConnections: target.pool.stats.free,
})

/** Long responses that are read on in one turn of the event loop, 128 KiB each: some milliseconds of it. */
const turnsOfLongResponses = { perTurn: 4, gatherTurns: 0 }

/** Builds the way to a service; nothing is connected until the first request or probe. */
export const createUpstream = (
  options: UpstreamOptions,
  deps: {
    readonly clock: Clock
    readonly random: () => number
    /** Finds the address of a target's name, for each connection anew; the system's way unless given. */
    readonly lookup?: LookupFunction
    readonly report: (event: UpstreamEvent) => void
  },
): Upstream => {
  const slots = createSlots({
    max: options.maxConcurrent,
    queueMax: options.queue.max,
    queueTimeoutMs: options.queue.timeoutMs,
    clientShare: options.clientShare,
  })
  const lookup = deps.lookup === undefined ? systemLookup : sharedLookup(deps.lookup)
  const targets = createTargets(options, lookup, deps.report)
  const budget = createRetryBudget(options.retry.budget)
  const breaker = createBreaker({ ...options.breaker, service: options.service }, deps.report)
  const relays = new UnderWay<Abortable & PacedRequest>()
  const longResponses = createFairTurns(turnsOfLongResponses)
  const room = { ...deps, options, slots, targets, budget, breaker, relays, longResponses }
  const dispatcher = new UpstreamDispatcher(room)
  const stopChecks = startProbes(options, targets, lookup, deps)
  const { minBytesPerSecond } = options
  const look = createPaceLook({ minBytesPerSecond, slots, monotonic: deps.clock.monotonic })
  const looks = setInterval(() => look([...relays.all]), lookEveryMs).unref()

  return {
    placeholderOrigin: 'http://upstream.invalid',
    forward: (request) =>
      new Promise((resolve, reject) => {
        const dispatched: RelayOptions = {
          path: request.target,
          method: request.method,
          headers: request.fields as string[],
          body: request.content ?? null,
          clientAddress: request.clientAddress ?? '',
          line: request.line ?? '',
          interim: request.interim,
          attempted: request.attempted,
          client: request.signal,
          withdraw: request.withdraw,
        }
        dispatcher.forward(dispatched, new Receiver(request.method, resolve, reject))
      }),
    snapshot: () => ({
      targets: targets.all.map(snapshotOf),
      inFlight: slots.inFlight,
      queued: slots.queued,
      waitingForClients: relays.all.filter(({ waitsForClient }) => waitsForClient !== undefined).length,
      breaker: breaker.state,
      down: isDown(breaker.state, targets.all),
      retriesLeft: budget.left(deps.clock.monotonic()),
    }),
    stopChecks,
    close() {
      stopChecks()
      return dispatcher.close().finally(() => clearInterval(looks))
    },
    destroy() {
      stopChecks()
      clearInterval(looks)
      return dispatcher.destroy()
    },
  }
}
