import type { ClientWait } from '../events.ts'
import { pollIntervalMs } from './in-flight.ts'
import type { Slots } from './slots.ts'

/** The part of a request in flight that its client can delay. */
export type PacedRequest = {
  /** Undefined while it has no slot or waits for the upstream. */
  readonly waitsForClient: ClientWait | undefined
  /** Bytes of content so far, in both directions. */
  readonly movedBytes: number
  endForSlowClient(wait: ClientWait): void
}

type PaceOptions = {
  /** Slower clients are ended; 0 = no bound. */
  readonly minBytesPerSecond: number
  readonly slots: Pick<Slots, 'isContended' | 'maxWaitingForClients'>
  readonly monotonic: () => number
}

/** Longest time below the minimum rate: a phone may lose its network for a moment. */
const timeoutMs = 10_000

/** The same while requests wait for slots and clients hold the maximum. */
const crowdedTimeoutMs = 2_000

/** Bytes between two checks, 64 KiB per second; a client that moves more is not ended to free a slot. */
const fastBytes = 32 * 1024

type Pace = {
  readonly request: PacedRequest
  readonly wait: ClientWait | undefined
  readonly movedBytes: number
  /** Bytes moved between the last two checks, and between the two before; `unmeasured` before the first check. */
  readonly lastBytes: number
  readonly bytesBefore: number
  /** Time waited for the client, minus the time that the moved bytes take at the minimum rate. Never negative, so there is no credit. */
  readonly debtMs: number
}

const unmeasured = Number.POSITIVE_INFINITY

const recentBytes = ({ lastBytes, bytesBefore }: Pace): number => lastBytes + bytesBefore

const firstPace = (request: PacedRequest): Pace => ({
  request,
  wait: request.waitsForClient,
  movedBytes: request.movedBytes,
  lastBytes: unmeasured,
  bytesBefore: unmeasured,
  debtMs: 0,
})

const nextPace = (last: Pace, elapsedMs: number, minBytesPerSecond: number): Pace => {
  const { request } = last
  const { waitsForClient: wait, movedBytes } = request
  const lastBytes = movedBytes - last.movedBytes
  const waitedMs = wait !== undefined && last.wait !== undefined ? elapsedMs : 0
  const debtMs =
    minBytesPerSecond === 0 ? 0 : Math.max(0, last.debtMs + waitedMs - (lastBytes * 1000) / minBytesPerSecond)
  return { request, wait, movedBytes, lastBytes, bytesBefore: last.lastBytes, debtMs }
}

/**
 * The requests to end because of slow clients: those below the rate for too long; and while other requests wait for slots and more
 * than `max` slots wait for clients, the slowest of them.
 */
const tooSlow = (waiting: readonly Pace[], max: number, isContended: boolean): readonly Pace[] => {
  const isCrowded = isContended && waiting.length >= max
  const maxDebtMs = isCrowded ? crowdedTimeoutMs : timeoutMs
  const late = waiting.filter(({ debtMs }) => debtMs >= maxDebtMs)
  const surplus = waiting.length - late.length - max
  if (!isCrowded || surplus <= 0) return late
  const slowest = waiting
    .filter((pace) => pace.debtMs < maxDebtMs && recentBytes(pace) < fastBytes)
    .sort((first, second) => recentBytes(first) - recentBytes(second))
  return [...late, ...slowest.slice(0, surplus)]
}

/** Creates the check that ends requests of slow clients; one timer calls it for all requests. */
export const createPacePoll = ({
  slots,
  minBytesPerSecond,
  monotonic,
}: PaceOptions): ((requests: Iterable<PacedRequest>) => void) => {
  // Requests that waited for their clients at the last check, or are below the rate.
  let paces = new Map<PacedRequest, Pace>()
  let checkedMs = monotonic()

  const updatePaces = (requests: Iterable<PacedRequest>, elapsedMs: number): void => {
    const nextPaces = new Map<PacedRequest, Pace>()
    for (const request of requests) {
      const last = paces.get(request)
      if (last === undefined && request.waitsForClient === undefined) continue
      const pace = last === undefined ? firstPace(request) : nextPace(last, elapsedMs, minBytesPerSecond)
      if (pace.wait !== undefined || pace.debtMs > 0) nextPaces.set(request, pace)
    }
    paces = nextPaces
  }

  return (requests) => {
    const nowMs = monotonic()
    // A process that was suspended has read nothing meanwhile; the clients are not charged for that.
    const elapsedMs = Math.min(nowMs - checkedMs, 4 * pollIntervalMs)
    checkedMs = nowMs
    updatePaces(requests, elapsedMs)
    const waiting = [...paces.values()].filter(({ wait }) => wait !== undefined)
    if (waiting.length === 0) return
    for (const { request, wait } of tooSlow(waiting, slots.maxWaitingForClients, slots.isContended())) {
      paces.delete(request)
      if (wait !== undefined) request.endForSlowClient(wait)
    }
  }
}
