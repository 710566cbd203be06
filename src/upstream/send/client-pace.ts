import type { ClientWait } from '../events.ts'
import type { Slots } from './slots.ts'

/** A request in flight, as far as its client can delay it. */
export type PacedRequest = {
  /** Undefined while it holds no slot, or waits for the upstream. */
  readonly waitsForClient: ClientWait | undefined
  /** Octets of content so far, both ways. */
  readonly movedBytes: number
  endForSlowClient(wait: ClientWait): void
}

export type PaceOptions = {
  /** Slower clients are ended; 0 = no bound. */
  readonly minBytesPerSecond: number
  readonly slots: Pick<Slots, 'isContended' | 'mostWaitingForClients'>
  readonly monotonic: () => number
}

/** How often the requests are looked at: the longest time by which a slow client is found late. */
export const lookEveryMs = 250

/** Longest time for which a client may stay behind the rate: a phone may lose its network for a moment. */
const patienceMs = 10_000

/** The same while requests wait for slots, and clients hold as many as they may. */
const crowdedPatienceMs = 2_000

/** Octets within two looks, 64 KiB a second; a client that moves more is not ended for the sake of others. */
const fastBytes = 32 * 1024

/** How one client keeps up. */
type Pace = {
  readonly request: PacedRequest
  readonly wait: ClientWait | undefined
  readonly movedBytes: number
  /** Moved between the last two looks, and between the two before; unknown for the time before the first look. */
  readonly lastBytes: number
  readonly bytesBefore: number
  /** Time waited for the client, less the time that what it moved takes at the lowest rate. Never negative: no credit for later. */
  readonly debtMs: number
}

const unknown = Number.POSITIVE_INFINITY

const recentBytes = ({ lastBytes, bytesBefore }: Pace): number => lastBytes + bytesBefore

const firstPace = (request: PacedRequest): Pace => ({
  request,
  wait: request.waitsForClient,
  movedBytes: request.movedBytes,
  lastBytes: unknown,
  bytesBefore: unknown,
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
 * Which requests are ended because of their clients: those that are behind the rate for too long; and while others wait for
 * slots and there are more than `most` such clients, the slowest of them until there are no more.
 */
const tooSlow = (waiting: readonly Pace[], most: number, isContended: boolean): readonly Pace[] => {
  const isCrowded = isContended && waiting.length >= most
  const mostDebtMs = isCrowded ? crowdedPatienceMs : patienceMs
  const late = waiting.filter(({ debtMs }) => debtMs >= mostDebtMs)
  const surplus = waiting.length - late.length - most
  if (!isCrowded || surplus <= 0) return late
  const slowest = waiting
    .filter((pace) => pace.debtMs < mostDebtMs && recentBytes(pace) < fastBytes)
    .sort((one, other) => recentBytes(one) - recentBytes(other))
  return [...late, ...slowest.slice(0, surplus)]
}

/** Makes the function that ends requests whose clients are too slow; one timer calls it for all requests. */
export const createPaceLook = ({
  slots,
  minBytesPerSecond,
  monotonic,
}: PaceOptions): ((requests: Iterable<PacedRequest>) => void) => {
  // Those that waited for their clients at the last look, or are behind the rate.
  let paces = new Map<PacedRequest, Pace>()
  let lookedMs = monotonic()

  const lookAt = (requests: Iterable<PacedRequest>, elapsedMs: number): void => {
    const seen = new Map<PacedRequest, Pace>()
    for (const request of requests) {
      const last = paces.get(request)
      if (last === undefined && request.waitsForClient === undefined) continue
      const pace = last === undefined ? firstPace(request) : nextPace(last, elapsedMs, minBytesPerSecond)
      if (pace.wait !== undefined || pace.debtMs > 0) seen.set(request, pace)
    }
    paces = seen
  }

  return (requests) => {
    const nowMs = monotonic()
    // A process that stood still has read nothing meanwhile: that is not the clients' time.
    const elapsedMs = Math.min(nowMs - lookedMs, 4 * lookEveryMs)
    lookedMs = nowMs
    lookAt(requests, elapsedMs)
    const waiting = [...paces.values()].filter(({ wait }) => wait !== undefined)
    if (waiting.length === 0) return
    for (const { request, wait } of tooSlow(waiting, slots.mostWaitingForClients, slots.isContended())) {
      paces.delete(request)
      if (wait !== undefined) request.endForSlowClient(wait)
    }
  }
}
