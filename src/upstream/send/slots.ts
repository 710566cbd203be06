import type { Clock } from '../../clock.ts'
import type { QueueOutcome, UpstreamEvent } from '../events.ts'

/**
 * Why a request got no slot: the queue, its client's share, or the share for bodies that are still arriving is full; or it waited
 * too long.
 */
type SlotRefusal = 'full' | 'client-share' | 'arriving-share' | 'timeout'

/** The request that needs a slot. All calls about one request get the same object. */
export type SlotRequest = {
  /** Address of the client, IPv6 by its /64; '' for requests of the gateway itself, which share one client's share. */
  readonly client: string
  /** Requests of one line are served in order of arrival; the lines are served in rotation. */
  readonly line: string
  /** The request body is still arriving, so the client decides how long the slot is held. */
  arriving: boolean
}

type SlotOptions = {
  /** Requests in flight. */
  readonly max: number
  readonly queueMax: number
  /** Longest wait in the queue; 0 = as long as the caller waits. */
  readonly queueTimeoutMs: number
  /**
   * The share of the slots that other clients do not hold, and of the queue, that one client may have; 1 = no bound for clients and
   * arriving bodies.
   */
  readonly clientShare: number
}

/** Counts of one client; removed when all are 0. */
type ClientCounts = { inUse: number; arriving: number; queued: number }

type SlotWaiter = {
  readonly request: SlotRequest
  readonly granted: () => void
  readonly refused: (why: SlotRefusal) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** Waiting requests of one client; either all of them may be served, or none. */
type Line = { readonly client: string; readonly arriving: boolean; readonly waiters: SlotWaiter[] }

const partOf = (whole: number, share: number): number =>
  share >= 1 ? whole : Math.max(1, Math.floor(whole * share))

/** Bounded concurrency with a bounded queue. Each client has a share, which shrinks as more clients hold slots. */
export const createSlots = (options: SlotOptions) => {
  const { max, queueMax, queueTimeoutMs, clientShare } = options
  // Half of the slots and of the queue is reserved for requests whose bodies have arrived.
  const arrivingShare = clientShare >= 1 ? 1 : 0.5
  const limit = {
    queued: partOf(queueMax, clientShare),
    arriving: partOf(max, arrivingShare),
    arrivingQueued: partOf(queueMax, arrivingShare),
  }
  let inFlight = 0
  let queued = 0
  let arriving = 0
  let arrivingQueued = 0
  let serving = false
  const clients = new Map<string, ClientCounts>()
  // A Map keeps insertion order: the first line is served next and moves to the end.
  const lines = new Map<string, Line>()

  const clientOf = (name: string): ClientCounts => {
    const existing = clients.get(name)
    if (existing !== undefined) return existing
    const client = { inUse: 0, arriving: 0, queued: 0 }
    clients.set(name, client)
    return client
  }
  const forgetIdle = (name: string, { inUse, queued: waiting }: ClientCounts): void => {
    if (inUse === 0 && waiting === 0) clients.delete(name)
  }

  /**
   * A client may hold its share of the slots that others do not hold. Alone that is its share of all; n busy clients with a share of
   * a half get one part in n + 1 each, and one part stays free for newcomers (Choudhury and Hahne, Dynamic queue length thresholds
   * for shared-memory packet switches, 1998). A client without a slot may take any free one.
   */
  const mayTake = (ofClient: number, ofOthers: number, all: number): boolean =>
    ofClient < partOf(all - ofOthers, clientShare)
  const hasShare = (name: string, isArriving: boolean): boolean => {
    const client = clients.get(name)
    if (client === undefined) return true
    return (
      mayTake(client.inUse, inFlight - client.inUse, max) &&
      (!isArriving || mayTake(client.arriving, arriving - client.arriving, limit.arriving))
    )
  }
  const mayOccupy = (name: string, isArriving: boolean): boolean =>
    inFlight < max && (!isArriving || arriving < limit.arriving) && hasShare(name, isArriving)
  /** It has fewer slots than it would have alone. */
  const isBlocked = ({ client, arriving: isArriving }: Line): boolean => {
    const { inUse, arriving: arrivingOfClient } = clientOf(client)
    return mayTake(inUse, 0, max) && (!isArriving || mayTake(arrivingOfClient, 0, limit.arriving))
  }

  const occupy = (request: SlotRequest): void => {
    const client = clientOf(request.client)
    inFlight += 1
    client.inUse += 1
    if (!request.arriving) return
    arriving += 1
    client.arriving += 1
  }
  const take = (request: SlotRequest): boolean => {
    if (!mayOccupy(request.client, request.arriving)) return false
    occupy(request)
    return true
  }

  const keyOf = ({ client, line, arriving: isArriving }: SlotRequest): string =>
    `${client} ${line} ${isArriving}`

  const leave = (waiter: SlotWaiter): boolean => {
    const { request } = waiter
    const key = keyOf(request)
    const line = lines.get(key)
    const at = line?.waiters.indexOf(waiter) ?? -1
    if (line === undefined || at === -1) return false
    line.waiters.splice(at, 1)
    if (line.waiters.length === 0) lines.delete(key)
    clearTimeout(waiter.timer)
    queued -= 1
    if (request.arriving) arrivingQueued -= 1
    const client = clientOf(request.client)
    client.queued -= 1
    forgetIdle(request.client, client)
    return true
  }

  const next = (): SlotWaiter | undefined => {
    for (const [key, line] of lines) {
      if (!mayOccupy(line.client, line.arriving)) continue
      lines.delete(key)
      lines.set(key, line)
      return line.waiters[0]
    }
    return undefined
  }
  /** A request may end while its slot is granted; the current round then reuses its slot. */
  const serve = (): void => {
    if (serving || queued === 0) return
    serving = true
    try {
      for (let waiter = next(); waiter !== undefined; waiter = next()) {
        leave(waiter)
        occupy(waiter.request)
        waiter.granted()
      }
    } finally {
      serving = false
    }
  }

  /** If the queue is full, the client with the most requests loses its last one to a client with fewer. */
  const makeRoomFor = (name: string): boolean => {
    let largest: string | undefined
    let count = (clients.get(name)?.queued ?? 0) + 1
    for (const [other, client] of clients) {
      if (client.queued <= count) continue
      largest = other
      count = client.queued
    }
    let longest: readonly SlotWaiter[] = []
    for (const line of lines.values())
      if (line.client === largest && line.waiters.length > longest.length) longest = line.waiters
    const last = longest.at(-1)
    if (last === undefined || !leave(last)) return false
    last.refused('full')
    return queued < queueMax
  }
  const shareRefusal = ({ client, arriving: isArriving }: SlotRequest): SlotRefusal | undefined => {
    if ((clients.get(client)?.queued ?? 0) >= limit.queued) return 'client-share'
    return isArriving && arrivingQueued >= limit.arrivingQueued ? 'arriving-share' : undefined
  }
  const refusalOf = (request: SlotRequest): SlotRefusal | undefined => {
    const refusal = clientShare < 1 && queueMax > 0 ? shareRefusal(request) : undefined
    if (refusal !== undefined) return refusal
    return queued < queueMax || makeRoomFor(request.client) ? undefined : 'full'
  }
  /** A request that waited for its own client's share does not mean that there are too few slots. */
  const lateRefusal = ({ client, arriving: isArriving }: SlotRequest): SlotRefusal =>
    inFlight >= max || hasShare(client, isArriving) ? 'timeout' : 'client-share'

  const enqueue = (waiter: SlotWaiter): void => {
    const { request } = waiter
    const key = keyOf(request)
    const line = lines.get(key)
    if (line !== undefined) line.waiters.push(waiter)
    else lines.set(key, { client: request.client, arriving: request.arriving, waiters: [waiter] })
    queued += 1
    if (request.arriving) arrivingQueued += 1
    clientOf(request.client).queued += 1
  }

  return {
    /**
     * Calls `granted` at once when the request may have a slot, else later; exactly one of `granted` and `refused` is called,
     * unless the returned function is called first, which leaves the queue.
     */
    acquire(request: SlotRequest, granted: () => void, refused: (why: SlotRefusal) => void): () => void {
      if (take(request)) {
        granted()
        return () => {}
      }
      const refusal = refusalOf(request)
      if (refusal !== undefined) {
        refused(refusal)
        return () => {}
      }
      const expire = (): void => {
        if (leave(waiter)) refused(lateRefusal(request))
      }
      const timer = queueTimeoutMs > 0 ? setTimeout(expire, queueTimeoutMs) : undefined
      const waiter: SlotWaiter = { request, granted, refused, timer }
      enqueue(waiter)
      return () => {
        leave(waiter)
      }
    },
    /** The body of a request that holds a slot has arrived whole. */
    arrived(request: SlotRequest): void {
      if (!request.arriving) return
      request.arriving = false
      arriving -= 1
      clientOf(request.client).arriving -= 1
      serve()
    },
    release(request: SlotRequest): void {
      const client = clientOf(request.client)
      inFlight -= 1
      client.inUse -= 1
      if (request.arriving) {
        arriving -= 1
        client.arriving -= 1
      }
      forgetIdle(request.client, client)
      serve()
    },
    get inFlight() {
      return inFlight
    },
    get queued() {
      return queued
    },
    /** Most slots that may be held by requests which wait for their clients. */
    maxWaitingForClients: limit.arriving,
    /** A request waits although its client has not used its share: other clients hold the slots. */
    isContended: () => [...lines.values()].some(isBlocked),
  }
}

export type Slots = ReturnType<typeof createSlots>

/** The slots, with the clock and the receiver of events. */
type SlotDeps = {
  readonly options: { readonly service: string }
  readonly clock: Clock
  readonly slots: Slots
  readonly report: (event: UpstreamEvent) => void
}

const nothing = (): void => {}

/** The slot of one request: requested, waited for, held, released. */
export class RequestSlot {
  readonly #deps: SlotDeps
  readonly #request: SlotRequest
  #leaveQueue: (() => void) | undefined
  #inUse = false

  constructor(deps: SlotDeps, request: SlotRequest) {
    this.#deps = deps
    this.#request = request
  }

  /** Calls `granted` or `refused` once, perhaps at once; neither after `leave`. */
  ask(granted: () => void, refused: (why: QueueOutcome) => void): void {
    const { options, clock, slots, report } = this.#deps
    const sinceMs = clock.monotonic()
    let settled = false
    const settle = (outcome: QueueOutcome): void => {
      settled = true
      this.#leaveQueue = undefined
      const waitedSeconds = (clock.monotonic() - sinceMs) / 1000
      report({ kind: 'slot-wait-finished', service: options.service, outcome, waitedSeconds })
    }
    const leave = slots.acquire(
      this.#request,
      () => {
        settle('sent')
        this.#inUse = true
        granted()
      },
      (why) => {
        settle(why)
        refused(why)
      },
    )
    if (settled) return
    this.#leaveQueue = () => {
      leave()
      settle('aborted')
    }
  }

  /** The request body has arrived whole: from now on the slot waits for the upstream. */
  contentArrived(): void {
    if (this.#inUse) this.#deps.slots.arrived(this.#request)
  }

  leave(): void {
    this.#leaveQueue?.()
  }

  /** Moves the slot to the returned function, which releases it. */
  take(): () => void {
    if (!this.#inUse) return nothing
    this.#inUse = false
    return () => this.#deps.slots.release(this.#request)
  }
}
