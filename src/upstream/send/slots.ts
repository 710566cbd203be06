import type { Clock } from '../../clock.ts'
import type { QueueOutcome, UpstreamEvent } from '../events.ts'

/** Why a request got no slot: the queue is full, its client's part of it is full, the part for contents that are still arriving is full, or it has waited too long. */
type SlotRefusal = 'full' | 'client-share' | 'arriving-share' | 'timeout'

/** What a slot is wanted for. The same object is handed to every call that concerns the request. */
export type SlotRequest = {
  /** Address of the client, IPv6 by its /64; '' for the gateway's own work, which all together has the share of one client. */
  readonly client: string
  /** Requests of one line are served first come, first served; the lines are served in turn. */
  readonly line: string
  /** The request body is still arriving, so that the client decides how long the slot is held. */
  arriving: boolean
}

type SlotOptions = {
  /** Requests in flight. */
  readonly max: number
  readonly queueMax: number
  /** Longest wait in the queue; 0 = as long as the caller waits. */
  readonly queueTimeoutMs: number
  /**
   * The part of the slots that others do not hold, and of the queue, that one client may have; 1 = no bound for a
   * client, and none for arriving bodies.
   */
  readonly clientShare: number
}

/** Bounded concurrency with a bounded queue, of which no client has more than its share; the more clients hold slots, the smaller it is. */
export type Slots = {
  /** Takes a slot if the request may have one at once. It never overtakes a request that waits and could have it. */
  take(request: SlotRequest): boolean
  /**
   * Calls `granted` at once when the request may have a slot, else later; exactly one of `granted` and `refused` is called,
   * unless the returned function is called first, which leaves the queue.
   */
  acquire(request: SlotRequest, granted: () => void, refused: (why: SlotRefusal) => void): () => void
  /** The body of a request that holds a slot has arrived whole. */
  arrived(request: SlotRequest): void
  release(request: SlotRequest): void
  readonly inFlight: number
  readonly queued: number
  /** Most slots that may be held by requests which wait for their clients. */
  readonly mostWaitingForClients: number
  /** A request waits whose client has not used up its share: it waits for slots that others hold. */
  isContended(): boolean
}

/** What one client has; forgotten when it has nothing. */
type Client = { held: number; arriving: number; queued: number }

type Waiter = {
  readonly request: SlotRequest
  readonly granted: () => void
  readonly refused: (why: SlotRefusal) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** Waiting requests of one client that may all be served, or none of them. */
type Line = { readonly client: string; readonly arriving: boolean; readonly waiters: Waiter[] }

const partOf = (whole: number, share: number): number =>
  share >= 1 ? whole : Math.max(1, Math.floor(whole * share))

/** Slots for all requests to one service. */
export const createSlots = (options: SlotOptions): Slots => {
  const { max, queueMax, queueTimeoutMs, clientShare } = options
  // Of all that may be held or waited for, half is out of reach of requests whose bodies are still arriving.
  const arrivingShare = clientShare >= 1 ? 1 : 0.5
  const most = {
    queued: partOf(queueMax, clientShare),
    arriving: partOf(max, arrivingShare),
    arrivingQueued: partOf(queueMax, arrivingShare),
  }
  let inFlight = 0
  let queued = 0
  let arriving = 0
  let arrivingQueued = 0
  let serving = false
  const clients = new Map<string, Client>()
  // A Map keeps insertion order: the first line is the next one to be served, and goes to the end afterwards.
  const lines = new Map<string, Line>()

  const clientOf = (name: string): Client => {
    const known = clients.get(name)
    if (known !== undefined) return known
    const client = { held: 0, arriving: 0, queued: 0 }
    clients.set(name, client)
    return client
  }
  const forgetIdle = (name: string, { held, queued: waiting }: Client): void => {
    if (held === 0 && waiting === 0) clients.delete(name)
  }

  /**
   * A client has at most its share of what the others leave. Alone that is its share of all; of n clients that take what they get,
   * with a share of a half, each has one part in n + 1, and the last part stays free for those that come (Choudhury and Hahne,
   * Dynamic queue length thresholds for shared-memory packet switches, 1998). One that has none may take any that is free.
   */
  const mayTake = (own: number, ofOthers: number, all: number): boolean =>
    own < partOf(all - ofOthers, clientShare)
  const hasShare = (name: string, isArriving: boolean): boolean => {
    const client = clients.get(name)
    if (client === undefined) return true
    return (
      mayTake(client.held, inFlight - client.held, max) &&
      (!isArriving || mayTake(client.arriving, arriving - client.arriving, most.arriving))
    )
  }
  const mayHold = (name: string, isArriving: boolean): boolean =>
    inFlight < max && (!isArriving || arriving < most.arriving) && hasShare(name, isArriving)
  /** Others keep it from more: it has less than it would have alone. */
  const isHeldUp = ({ client, arriving: isArriving }: Line): boolean => {
    const { held, arriving: own } = clientOf(client)
    return mayTake(held, 0, max) && (!isArriving || mayTake(own, 0, most.arriving))
  }

  const hold = (request: SlotRequest): void => {
    const client = clientOf(request.client)
    inFlight += 1
    client.held += 1
    if (!request.arriving) return
    arriving += 1
    client.arriving += 1
  }
  const take = (request: SlotRequest): boolean => {
    if (!mayHold(request.client, request.arriving)) return false
    hold(request)
    return true
  }

  const keyOf = ({ client, line, arriving: isArriving }: SlotRequest): string =>
    `${client} ${line} ${isArriving}`

  const leave = (waiter: Waiter): boolean => {
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

  const next = (): Waiter | undefined => {
    for (const [key, line] of lines) {
      if (!mayHold(line.client, line.arriving)) continue
      lines.delete(key)
      lines.set(key, line)
      return line.waiters[0]
    }
    return undefined
  }
  /** A request that is granted its slot may end at once: its release is then served by the current round. */
  const serve = (): void => {
    if (serving || queued === 0) return
    serving = true
    try {
      for (let waiter = next(); waiter !== undefined; waiter = next()) {
        leave(waiter)
        hold(waiter.request)
        waiter.granted()
      }
    } finally {
      serving = false
    }
  }

  /** In a full queue the client with the most requests gives up its last one for a client that has fewer. */
  const makeRoomFor = (name: string): boolean => {
    let largest: string | undefined
    let count = (clients.get(name)?.queued ?? 0) + 1
    for (const [other, client] of clients) {
      if (client.queued <= count) continue
      largest = other
      count = client.queued
    }
    let longest: readonly Waiter[] = []
    for (const line of lines.values())
      if (line.client === largest && line.waiters.length > longest.length) longest = line.waiters
    const last = longest.at(-1)
    if (last === undefined || !leave(last)) return false
    last.refused('full')
    return queued < queueMax
  }
  const shareRefusal = ({ client, arriving: isArriving }: SlotRequest): SlotRefusal | undefined => {
    if ((clients.get(client)?.queued ?? 0) >= most.queued) return 'client-share'
    return isArriving && arrivingQueued >= most.arrivingQueued ? 'arriving-share' : undefined
  }
  const refusalOf = (request: SlotRequest): SlotRefusal | undefined => {
    const refusal = clientShare < 1 && queueMax > 0 ? shareRefusal(request) : undefined
    if (refusal !== undefined) return refusal
    return queued < queueMax || makeRoomFor(request.client) ? undefined : 'full'
  }
  /** One that waited for its own share is no sign that the slots are too few. */
  const lateRefusal = ({ client, arriving: isArriving }: SlotRequest): SlotRefusal =>
    inFlight >= max || hasShare(client, isArriving) ? 'timeout' : 'client-share'

  const enqueue = (waiter: Waiter): void => {
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
    take,
    acquire(request, granted, refused) {
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
      const waiter: Waiter = { request, granted, refused, timer }
      enqueue(waiter)
      return () => {
        leave(waiter)
      }
    },
    arrived(request) {
      if (!request.arriving) return
      request.arriving = false
      arriving -= 1
      clientOf(request.client).arriving -= 1
      serve()
    },
    release(request) {
      const client = clientOf(request.client)
      inFlight -= 1
      client.held -= 1
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
    mostWaitingForClients: most.arriving,
    isContended: () => [...lines.values()].some(isHeldUp),
  }
}

/** The slots, and the events of waiting for one. */
type PlaceRoom = {
  readonly options: { readonly service: string }
  readonly clock: Clock
  readonly slots: Slots
  readonly report: (event: UpstreamEvent) => void
}

const nothing = (): void => {}

/** The slot of one request: requested, waited for, held, released. */
export class Place {
  readonly #room: PlaceRoom
  readonly #request: SlotRequest
  #leaveQueue: (() => void) | undefined
  #held = false

  constructor(room: PlaceRoom, request: SlotRequest) {
    this.#room = room
    this.#request = request
  }

  /** Calls `granted` or `refused` once, perhaps at once; neither after `leave`. */
  ask(granted: () => void, refused: (why: QueueOutcome) => void): void {
    if (this.#room.slots.take(this.#request)) {
      this.#held = true
      const { options, report } = this.#room
      report({ kind: 'slot-wait-finished', service: options.service, outcome: 'sent', waitedSeconds: 0 })
      granted()
      return
    }
    const since = this.#room.clock.monotonic()
    let settled = false
    const settle = (outcome: QueueOutcome): void => {
      settled = true
      this.#leaveQueue = undefined
      this.#report(outcome, since)
    }
    const leave = this.#room.slots.acquire(
      this.#request,
      () => {
        settle('sent')
        this.#held = true
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
    if (this.#held) this.#room.slots.arrived(this.#request)
  }

  /** Waits no longer. */
  leave(): void {
    this.#leaveQueue?.()
  }

  /** The holder of this function has the slot, and releases it by calling the function. */
  take(): () => void {
    if (!this.#held) return nothing
    this.#held = false
    return () => this.#room.slots.release(this.#request)
  }

  #report(outcome: QueueOutcome, sinceMs: number): void {
    const { options, clock, report } = this.#room
    const waitedSeconds = (clock.monotonic() - sinceMs) / 1000
    report({ kind: 'slot-wait-finished', service: options.service, outcome, waitedSeconds })
  }
}
