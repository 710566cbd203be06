// Not the global: that is a getter, and asking it takes as long as the reading; a hit reads the clock four times.
import { performance } from 'node:perf_hooks'

/** The only source of time. Handed to every room, so that a decision reads it once and a test can set it. */
export type Clock = {
  /** Milliseconds since 1970, may jump. For dates and ages (RFC 9111 §4.2.3). */
  now(): number
  /** Milliseconds since an arbitrary moment, never goes back. For durations and deadlines. */
  monotonic(): number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
