import { GatewayError } from '../errors.ts'
import { EndSignal } from '../http/end-signal.ts'
import { discard } from './discard.ts'
import type { Landing } from './landing.ts'

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
  readonly landing: Promise<Landing>
}

/** What is needed to begin one. */
type Takeoff = {
  readonly key: string
  readonly variant: string
  readonly began: number
  /** May later readers wait for it too? */
  readonly joinable: boolean
  readonly leader: AbortSignal | undefined
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
  /** For what is stored without a flight. */
  nextOrder(): number
  abortAll(): void
}

type Running = { readonly flight: Flight; readonly signal: EndSignal; waiters: number }

export const createFlights = (): Flights => {
  const joinable = new Map<string, Running[]>()
  const running = new Map<Flight, Running>()
  let order = 0

  const close = (entry: Running): void => {
    const { key } = entry.flight
    const left = (joinable.get(key) ?? []).filter((other) => other !== entry)
    if (left.length === 0) joinable.delete(key)
    else joinable.set(key, left)
  }
  const end = (entry: Running): void => {
    close(entry)
    running.delete(entry.flight)
  }
  const begin = (takeoff: Takeoff): Flight => {
    const signal = new EndSignal()
    order += 1
    const { promise, resolve } = withResolvers()
    const flight: Flight = {
      key: takeoff.key,
      variant: takeoff.variant,
      began: takeoff.began,
      order,
      signal,
      leader: takeoff.leader,
      landing: promise,
    }
    const entry: Running = { flight, signal, waiters: 0 }
    running.set(flight, entry)
    if (takeoff.joinable) joinable.set(flight.key, [...(joinable.get(flight.key) ?? []), entry])
    void takeoff
      .run(flight)
      .catch((error: unknown): Landing => ({ kind: 'failed', error }))
      .then((landing) => {
        if (landing.kind === 'filling') {
          // Still on its way: others may join, and it is aborted when all who wait or read are gone.
          void landing.complete.then(() => end(entry))
          signal.addEventListener('abort', () => landing.fill.stop(signal.reason as Error))
        } else end(entry)
        if (landing.kind === 'own' && takeoff.leader?.aborted !== false) discard(landing.response.content)
        resolve(landing)
      })
    return flight
  }
  const leave = (flight: Flight): void => {
    const entry = running.get(flight)
    if (entry === undefined) return
    entry.waiters -= 1
    if (entry.waiters > 0) return
    close(entry)
    entry.signal.end(new GatewayError('client_gone'))
  }
  const until = (flight: Flight, landed: Promise<Landing>, signal: AbortSignal): Promise<Landing> =>
    new Promise((resolve, reject) => {
      const gone = (): void => {
        leave(flight)
        reject(new GatewayError('client_gone', { cause: signal.reason }))
      }
      if (signal.aborted) return gone()
      signal.addEventListener('abort', gone, { once: true })
      void landed.then((landing) => {
        signal.removeEventListener('abort', gone)
        // A landing and an abort in the same turn: `gone` has left.
        if (signal.aborted) reject(new GatewayError('client_gone', { cause: signal.reason }))
        else resolve(landing)
      })
    })
  const wait = (flight: Flight, signal: AbortSignal): Promise<Landing> => {
    const entry = running.get(flight)
    if (entry !== undefined) entry.waiters += 1
    return until(flight, flight.landing, signal)
  }
  return {
    find: (key, variant) =>
      (joinable.get(key) ?? []).find((entry) => entry.flight.variant === variant)?.flight,
    begin,
    wait,
    leave,
    over: async (flight) => {
      const landing = await flight.landing
      return landing.kind === 'filling' ? landing.complete : landing
    },
    waitForEnd: async (flight, complete, signal) => {
      const landing = await until(flight, complete, signal)
      leave(flight)
      return landing
    },
    cut: (key) => {
      const count = joinable.get(key)?.length ?? 0
      joinable.delete(key)
      return count
    },
    nextOrder: () => {
      order += 1
      return order
    },
    abortAll: () => {
      for (const { signal } of running.values()) signal.end(new GatewayError('shutting_down'))
      joinable.clear()
    },
  }
}

const withResolvers = (): { promise: Promise<Landing>; resolve: (landing: Landing) => void } => {
  let resolve: (landing: Landing) => void = () => undefined
  const promise = new Promise<Landing>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
