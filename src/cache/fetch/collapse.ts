import { GatewayError } from '../../errors.ts'
import { EndSignal } from '../../http/end-signal.ts'
import { discard } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { Landing } from './fetch-outcome.ts'

/** One reader's wait for a landing, with all that has to be done about it in one object: each miss makes one. */
class Waiter {
  readonly #signal: AbortSignal
  readonly #resolve: (landing: Landing) => void
  readonly #reject: (error: GatewayError) => void
  readonly #leave: () => void

  constructor(
    signal: AbortSignal,
    resolve: (landing: Landing) => void,
    reject: (error: GatewayError) => void,
    leave: () => void,
  ) {
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    this.#leave = leave
  }

  /** Begins to wait, unless its reader is gone already. */
  begins(): boolean {
    if (this.#signal.aborted) {
      this.handleEvent()
      return false
    }
    this.#signal.addEventListener('abort', this, { once: true })
    return true
  }

  /** The reader is gone. */
  handleEvent(): void {
    this.#leave()
    this.#reject(this.#gone())
  }

  landed(landing: Landing): void {
    this.#signal.removeEventListener('abort', this)
    // A landing and an abort in the same turn: it has left.
    if (this.#signal.aborted) this.#reject(this.#gone())
    else this.#resolve(landing)
  }

  #gone(): GatewayError {
    return new GatewayError('client_gone', { cause: this.#signal.reason })
  }
}

/** What stands in the table; `next` is the table's own. */
export type Joining<Self> = {
  readonly key: string
  /** Secondary key, where the selecting fields were already known; '' otherwise. */
  readonly variant: string
  next: Self | undefined
}

/** Chains stay short as long as fewer are under way. */
const chains = 1024

/** Of long keys some characters will do: who aims at one chain makes it as long as what is under way, and no longer. */
const chainOf = (key: string): number => {
  const step = 1 + (key.length >> 6)
  let hash = key.length
  for (let i = key.length - 1; i >= 0; i -= step) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0
  return hash & (chains - 1)
}

/**
 * What later readers of a key may join. No Map, for the reason that under-way.ts of the upstream room has no Set: the tables that a
 * Map leaves behind kept each forward alive until the next full collection, and two fifths of what a miss left to the collector was
 * that (docs/decisions/0014).
 */
export class Joinable<One extends Joining<One>> {
  readonly #first: (One | undefined)[] = Array.from({ length: chains }, () => undefined)

  find(key: string, variant: string): One | undefined {
    let one = this.#first[chainOf(key)]
    while (one !== undefined && (one.key !== key || one.variant !== variant)) one = one.next
    return one
  }

  add(one: One): void {
    const chain = chainOf(one.key)
    one.next = this.#first[chain]
    this.#first[chain] = one
  }

  /** Nothing happens where it is not in the table. */
  remove(one: One): void {
    const chain = chainOf(one.key)
    let before: One | undefined
    let other = this.#first[chain]
    while (other !== undefined && other !== one) {
      before = other
      other = other.next
    }
    if (other !== undefined) this.#unlink(chain, before, other)
  }

  /** Number of those that were there. */
  removeAll(key: string): number {
    const chain = chainOf(key)
    let count = 0
    let before: One | undefined
    let one = this.#first[chain]
    while (one !== undefined) {
      const { next } = one
      if (one.key === key) {
        this.#unlink(chain, before, one)
        count += 1
      } else before = one
      one = next
    }
    return count
  }

  /** Number of those that were there. */
  clear(): number {
    let count = 0
    for (const first of this.#first) for (let one = first; one !== undefined; one = one.next) count += 1
    this.#first.fill(undefined)
    return count
  }

  #unlink(chain: number, before: One | undefined, one: One): void {
    if (before === undefined) this.#first[chain] = one.next
    else before.next = one.next
    one.next = undefined
  }
}

/** One forward on its way. It belongs to nobody: it is aborted when all who wait for it are gone. */
export type Flight = {
  readonly key: string
  /** Secondary key, where the selecting fields were already known; '' otherwise. */
  readonly variant: string
  /** Number of the last invalidation when it began. */
  readonly began: number
  readonly order: number
  readonly signal: AbortSignal
  /** Signal of the reader who began it; undefined in the background. */
  readonly leader: AbortSignal | undefined
  /** The request that the upstream is asked with. */
  readonly read: CacheRead
}

/** What is needed to begin one. */
type Takeoff = {
  readonly key: string
  readonly variant: string
  readonly began: number
  /** May later readers wait for it too? */
  readonly joinable: boolean
  readonly leader: AbortSignal | undefined
  readonly read: CacheRead
  readonly run: (flight: Flight) => Promise<Landing>
}

export type Flights = {
  find(key: string, variant: string): Flight | undefined
  /** The one who begins it is its leader and waits for it too; a flight in the background has nobody who could leave. */
  begin(takeoff: Takeoff): Flight
  /**
   * Waits as one of many; rejects with `client_gone` when the signal is aborted. Whoever gets a landing that is still
   * filling counts as waiting until it leaves.
   */
  wait(flight: Flight, signal: AbortSignal): Promise<Landing>
  /** Waits on, for the end of a filling; leaves with it. */
  waitForEnd(flight: Flight, complete: Promise<Landing>, signal: AbortSignal): Promise<Landing>
  leave(flight: Flight): void
  /** For who neither waits nor reads. */
  over(flight: Flight): Promise<Landing>
  /** No later reader joins any flight of the key; those who wait still get its answer. */
  cut(key: string): number
  /** The same for all keys. */
  cutAll(): number
  /** For what is stored without a flight. */
  nextOrder(): number
  abortAll(): void
}

/** A flight as it is seen from here. */
class Running implements Flight {
  readonly key: string
  readonly variant: string
  readonly began: number
  readonly order: number
  readonly signal = new EndSignal()
  readonly leader: AbortSignal | undefined
  readonly read: CacheRead
  readonly waiting: Waiter[] = []
  landing: Landing | undefined
  /** How many wait or read. */
  waiters = 0
  /** Where it stands among those under way; -1 when it is over. */
  place: number
  /** Of those that may be joined. */
  next: Running | undefined

  constructor(takeoff: Takeoff, order: number, place: number) {
    this.key = takeoff.key
    this.variant = takeoff.variant
    this.began = takeoff.began
    this.order = order
    this.leader = takeoff.leader
    this.read = takeoff.read
    this.place = place
    this.next = undefined
  }
}

const isFailure = ({ kind }: Landing): boolean => kind === 'server-error' || kind === 'failed'

/** Every flight is made here, with more to it than others see. */
const known = (flight: Flight): Running => {
  if (flight instanceof Running) return flight
  throw new TypeError('no flight of this cache')
}

export const createFlights = (): Flights => {
  const joinable = new Joinable<Running>()
  const running: Running[] = []
  let order = 0

  const end = (flight: Running): void => {
    joinable.remove(flight)
    // The last one takes its place.
    const last = running.pop()
    if (last !== undefined && last !== flight) {
      running[flight.place] = last
      last.place = flight.place
    }
    flight.place = -1
  }
  const land = (flight: Running, landing: Landing): void => {
    const { leader, signal } = flight
    if (landing.kind === 'filling') {
      // Still on its way: others may join, and it is aborted when all who wait or read are gone.
      void landing.complete.then(() => end(flight))
      signal.addEventListener('abort', () => landing.fill.stop(signal.reason as Error))
    } else end(flight)
    if (landing.kind === 'own' && leader?.aborted !== false) discard(landing.response.content)
    flight.landing = landing
    // After a failure the first of them leads the next fetch: no client can arrange to be that one by coming early or late.
    const { waiting } = flight
    const first = isFailure(landing) ? Math.floor(Math.random() * waiting.length) : 0
    for (let at = 0; at < waiting.length; at += 1) waiting[(first + at) % waiting.length]?.landed(landing)
  }
  const begin = (takeoff: Takeoff): Flight => {
    order += 1
    const flight = new Running(takeoff, order, running.length)
    running.push(flight)
    if (takeoff.joinable) joinable.add(flight)
    void takeoff.run(flight).then(
      (landing) => land(flight, landing),
      (error: unknown) => land(flight, { kind: 'failed', error }),
    )
    return flight
  }
  const leaveRunning = (flight: Running): void => {
    if (flight.place === -1) return
    flight.waiters -= 1
    if (flight.waiters > 0) return
    joinable.remove(flight)
    flight.signal.end(new GatewayError('client_gone'))
  }
  const landed = (flight: Running, signal: AbortSignal, begin: (waiter: Waiter) => void): Promise<Landing> =>
    new Promise((resolve, reject) => {
      const waiter = new Waiter(signal, resolve, reject, () => leaveRunning(flight))
      if (waiter.begins()) begin(waiter)
    })
  const attend = (flight: Running, signal: AbortSignal): Promise<Landing> =>
    landed(flight, signal, (waiter) => {
      if (flight.landing === undefined) flight.waiting.push(waiter)
      else waiter.landed(flight.landing)
    })

  return {
    find: (key, variant) => joinable.find(key, variant),
    begin,
    wait: (one, signal) => {
      const flight = known(one)
      flight.waiters += 1
      return attend(flight, signal)
    },
    leave: (flight) => leaveRunning(known(flight)),
    over: async (flight) => {
      const landing = await attend(known(flight), new EndSignal())
      return landing.kind === 'filling' ? landing.complete : landing
    },
    waitForEnd: async (one, complete, signal) => {
      const flight = known(one)
      const landing = await landed(flight, signal, (waiter) => {
        void complete.then((last) => waiter.landed(last))
      })
      leaveRunning(flight)
      return landing
    },
    cut: (key) => (running.length === 0 ? 0 : joinable.removeAll(key)),
    cutAll: () => joinable.clear(),
    nextOrder: () => {
      order += 1
      return order
    },
    abortAll: () => {
      for (const { signal } of [...running]) signal.end(new GatewayError('shutting_down'))
      joinable.clear()
    },
  }
}
