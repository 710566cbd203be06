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
  /** Requests of one queue are served in order of arrival; the queues are served in rotation. */
  readonly queue: string
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
type Queue = { readonly client: string; readonly arriving: boolean; readonly waiters: SlotWaiter[] }

const partOf = (whole: number, share: number): number =>
  share >= 1 ? whole : Math.max(1, Math.floor(whole * share))

/** Bounded concurrency with a bounded queue. Each client has a share, which shrinks as more clients hold slots. */
export class Slots {
  readonly #max: number
  readonly #queueMax: number
  readonly #queueTimeoutMs: number
  readonly #clientShare: number
  // Half of the slots and of the queue is reserved for requests whose bodies have arrived.
  readonly #arrivingShare: 1 | 0.5
  readonly #limit: { queued: number; arriving: number; arrivingQueued: number }
  #inFlight = 0
  #queued = 0
  #arriving = 0
  #arrivingQueued = 0
  #serving = false
  readonly #clients = new Map<string, ClientCounts>()
  // A Map keeps insertion order: the first queue is served next and moves to the end.
  readonly #queues = new Map<string, Queue>()
  /** Most slots that may be held by requests which wait for their clients. */
  readonly maxWaitingForClients: number

  constructor(options: SlotOptions) {
    this.#max = options.max
    this.#queueMax = options.queueMax
    this.#queueTimeoutMs = options.queueTimeoutMs
    this.#clientShare = options.clientShare
    this.#arrivingShare = this.#clientShare >= 1 ? 1 : 0.5
    this.#limit = {
      queued: partOf(this.#queueMax, this.#clientShare),
      arriving: partOf(this.#max, this.#arrivingShare),
      arrivingQueued: partOf(this.#queueMax, this.#arrivingShare),
    }
    this.maxWaitingForClients = this.#limit.arriving
  }

  /**
   * Calls `granted` at once when the request may have a slot, else later; exactly one of `granted` and `refused` is called,
   * unless the returned function is called first, which leaves the queue.
   */
  acquire(request: SlotRequest, granted: () => void, refused: (why: SlotRefusal) => void): () => void {
    if (this.#take(request)) {
      granted()
      return () => {}
    }
    const refusal = this.#refusalOf(request)
    if (refusal !== undefined) {
      refused(refusal)
      return () => {}
    }
    const expire = (): void => {
      if (this.#leave(waiter)) refused(this.#lateRefusal(request))
    }
    const timer = this.#queueTimeoutMs > 0 ? setTimeout(expire, this.#queueTimeoutMs) : undefined
    const waiter: SlotWaiter = { request, granted, refused, timer }
    this.#enqueue(waiter)
    return () => {
      this.#leave(waiter)
    }
  }

  /** The body of a request that holds a slot has arrived whole. */
  arrived(request: SlotRequest): void {
    if (!request.arriving) return
    request.arriving = false
    this.#arriving -= 1
    this.#clientOf(request.client).arriving -= 1
    this.#serve()
  }

  release(request: SlotRequest): void {
    const client = this.#clientOf(request.client)
    this.#inFlight -= 1
    client.inUse -= 1
    if (request.arriving) {
      this.#arriving -= 1
      client.arriving -= 1
    }
    this.#forgetIdle(request.client, client)
    this.#serve()
  }

  get inFlight(): number {
    return this.#inFlight
  }

  get queued(): number {
    return this.#queued
  }

  /** A request waits although its client has not used its share: other clients hold the slots. */
  isContended(): boolean {
    return [...this.#queues.values()].some((queue) => this.#isBlocked(queue))
  }

  #clientOf(name: string): ClientCounts {
    const existing = this.#clients.get(name)
    if (existing !== undefined) return existing
    const client = { inUse: 0, arriving: 0, queued: 0 }
    this.#clients.set(name, client)
    return client
  }

  #forgetIdle(name: string, { inUse, queued: waiting }: ClientCounts): void {
    if (inUse === 0 && waiting === 0) this.#clients.delete(name)
  }

  /**
   * A client may hold its share of the slots that others do not hold. Alone that is its share of all; n busy clients with a share of
   * a half get one part in n + 1 each, and one part stays free for newcomers (Choudhury and Hahne, Dynamic queue length thresholds
   * for shared-memory packet switches, 1998). A client without a slot may take any free one.
   */
  #mayTake(ofClient: number, ofOthers: number, all: number): boolean {
    return ofClient < partOf(all - ofOthers, this.#clientShare)
  }

  #hasShare(name: string, isArriving: boolean): boolean {
    const client = this.#clients.get(name)
    if (client === undefined) return true
    return (
      this.#mayTake(client.inUse, this.#inFlight - client.inUse, this.#max) &&
      (!isArriving || this.#mayTake(client.arriving, this.#arriving - client.arriving, this.#limit.arriving))
    )
  }

  #mayOccupy(name: string, isArriving: boolean): boolean {
    return (
      this.#inFlight < this.#max &&
      (!isArriving || this.#arriving < this.#limit.arriving) &&
      this.#hasShare(name, isArriving)
    )
  }

  /** It has fewer slots than it would have alone. */
  #isBlocked({ client, arriving: isArriving }: Queue): boolean {
    const { inUse, arriving: arrivingOfClient } = this.#clientOf(client)
    return (
      this.#mayTake(inUse, 0, this.#max) &&
      (!isArriving || this.#mayTake(arrivingOfClient, 0, this.#limit.arriving))
    )
  }

  #occupy(request: SlotRequest): void {
    const client = this.#clientOf(request.client)
    this.#inFlight += 1
    client.inUse += 1
    if (!request.arriving) return
    this.#arriving += 1
    client.arriving += 1
  }

  #take(request: SlotRequest): boolean {
    if (!this.#mayOccupy(request.client, request.arriving)) return false
    this.#occupy(request)
    return true
  }

  #keyOf({ client, queue, arriving: isArriving }: SlotRequest): string {
    return `${client} ${queue} ${isArriving}`
  }

  #leave(waiter: SlotWaiter): boolean {
    const { request } = waiter
    const key = this.#keyOf(request)
    const queue = this.#queues.get(key)
    const at = queue?.waiters.indexOf(waiter) ?? -1
    if (queue === undefined || at === -1) return false
    queue.waiters.splice(at, 1)
    if (queue.waiters.length === 0) this.#queues.delete(key)
    clearTimeout(waiter.timer)
    this.#queued -= 1
    if (request.arriving) this.#arrivingQueued -= 1
    const client = this.#clientOf(request.client)
    client.queued -= 1
    this.#forgetIdle(request.client, client)
    return true
  }

  #next(): SlotWaiter | undefined {
    for (const [key, queue] of this.#queues) {
      if (!this.#mayOccupy(queue.client, queue.arriving)) continue
      this.#queues.delete(key)
      this.#queues.set(key, queue)
      return queue.waiters[0]
    }
    return undefined
  }

  /** A request may end while its slot is granted; the current round then reuses its slot. */
  #serve(): void {
    if (this.#serving || this.#queued === 0) return
    this.#serving = true
    try {
      for (let waiter = this.#next(); waiter !== undefined; waiter = this.#next()) {
        this.#leave(waiter)
        this.#occupy(waiter.request)
        waiter.granted()
      }
    } finally {
      this.#serving = false
    }
  }

  /** If the queue is full, the client with the most requests loses its last one to a client with fewer. */
  #makeRoomFor(name: string): boolean {
    let largest: string | undefined
    let count = (this.#clients.get(name)?.queued ?? 0) + 1
    for (const [other, client] of this.#clients) {
      if (client.queued <= count) continue
      largest = other
      count = client.queued
    }
    let longest: readonly SlotWaiter[] = []
    for (const queue of this.#queues.values())
      if (queue.client === largest && queue.waiters.length > longest.length) longest = queue.waiters
    const last = longest.at(-1)
    if (last === undefined || !this.#leave(last)) return false
    last.refused('full')
    return this.#queued < this.#queueMax
  }

  #shareRefusal({ client, arriving: isArriving }: SlotRequest): SlotRefusal | undefined {
    if ((this.#clients.get(client)?.queued ?? 0) >= this.#limit.queued) return 'client-share'
    return isArriving && this.#arrivingQueued >= this.#limit.arrivingQueued ? 'arriving-share' : undefined
  }

  #refusalOf(request: SlotRequest): SlotRefusal | undefined {
    const refusal = this.#clientShare < 1 && this.#queueMax > 0 ? this.#shareRefusal(request) : undefined
    if (refusal !== undefined) return refusal
    return this.#queued < this.#queueMax || this.#makeRoomFor(request.client) ? undefined : 'full'
  }

  /** A request that waited for its own client's share does not mean that there are too few slots. */
  #lateRefusal({ client, arriving: isArriving }: SlotRequest): SlotRefusal {
    return this.#inFlight >= this.#max || this.#hasShare(client, isArriving) ? 'timeout' : 'client-share'
  }

  #enqueue(waiter: SlotWaiter): void {
    const { request } = waiter
    const key = this.#keyOf(request)
    const queue = this.#queues.get(key)
    if (queue !== undefined) queue.waiters.push(waiter)
    else this.#queues.set(key, { client: request.client, arriving: request.arriving, waiters: [waiter] })
    this.#queued += 1
    if (request.arriving) this.#arrivingQueued += 1
    this.#clientOf(request.client).queued += 1
  }
}

/** The slots, with the clock and the function that gets events. */
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
