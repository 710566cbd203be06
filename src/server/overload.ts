import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { BufferedFor } from '../http/bounds/byte-budget.ts'

/** Classes of requests, in the order in which they are shed. */
export const workClasses = ['batch', 'miss', 'pass', 'hit'] as const
export type WorkClass = (typeof workClasses)[number]

export const pressureSignals = [
  'event-loop-delay',
  'event-loop-utilization',
  'heap',
  'rss',
  'in-flight',
] as const
export type PressureSignal = (typeof pressureSignals)[number]

/** The requests that are refused: none; batches and misses; all that need an upstream; all. */
export type PressureLevel = 0 | 1 | 2 | 3

export type OverloadEvent =
  | { readonly kind: 'shed'; readonly class: WorkClass; readonly signal: PressureSignal }
  /** limits.bufferedBytes, or the half of it that one client may use. */
  | { readonly kind: 'buffer-refused'; readonly work: BufferedFor }
  | {
      readonly kind: 'pressure-changed'
      readonly level: PressureLevel
      /** The strongest signal; undefined at level 0. */
      readonly signal: PressureSignal | undefined
    }

/** Counts the requests of one configuration snapshot, and adds them to the count of all. */
export const createInFlight = (all?: { enter(): void; leave(): void }) => {
  let count = 0
  const waiting = new Set<() => void>()
  return {
    get count() {
      return count
    },
    enter: (): void => {
      all?.enter()
      count += 1
    },
    leave: (): void => {
      all?.leave()
      count -= 1
      if (count > 0 || waiting.size === 0) return
      for (const resolve of waiting) resolve()
    },
    /** Resolves when no request is in flight, or after the timeout. */
    settled: async (timeoutMs: number): Promise<void> => {
      if (count === 0) return
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          waiting.delete(done)
          resolve()
        }
        const timer = setTimeout(done, timeoutMs)
        timer.unref()
        waiting.add(done)
      })
    },
  }
}

export type InFlight = ReturnType<typeof createInFlight>

export type PressureReadings = {
  readonly eventLoopDelayMs: number
  /** Share of the last interval in which the event loop was busy. */
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
}

/** Sampling interval of the delay; each sample includes one interval of intended waiting. */
const resolutionMs = 10

/** Linux reports it in a file. Without a free file descriptor the last value stays valid. */
const rssOr = (lastRss: number): number => {
  try {
    return process.memoryUsage.rss()
  } catch {
    return lastRss
  }
}

/** Samples of the event loop's delay, each with one interval of waiting. */
type DelaySamples = { readonly count: number; readonly mean: number }

/**
 * The delay that lasts, from the samples of each interval. Without a sample the event loop was blocked, as long as the interval took:
 * a short interval misses its samples by a pause of some tenths of a second. One pause of the process, of its start or of the machine,
 * is over when it is measured: of two readings the smaller one counts.
 */
export const createLastingDelay = (): ((samples: DelaySamples, elapsedMs: number) => number) => {
  let beforeMs = 0
  return ({ count, mean }, elapsedMs) => {
    const delayMs = Math.max(0, (count === 0 ? elapsedMs : mean / 1e6) - resolutionMs)
    const lastingMs = Math.min(beforeMs, delayMs)
    beforeMs = delayMs
    return lastingMs
  }
}

/** Measures every `intervalMs` and reports each measurement; does not keep the process alive. */
export const startPressureSensor = (
  intervalMs: number,
  measured: (readings: PressureReadings) => void,
): { close(): void } => {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  let before: EventLoopUtilization = performance.eventLoopUtilization()
  let rssBytes = rssOr(0)
  const lastingDelay = createLastingDelay()
  let measuredAt = performance.now()

  const timer = setInterval(
    () => {
      const at = performance.now()
      const eventLoopDelayMs = lastingDelay(delays, at - measuredAt)
      measuredAt = at
      delays.reset()
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      rssBytes = rssOr(rssBytes)
      measured({
        eventLoopDelayMs,
        eventLoopUtilization: utilization,
        heapBytes: getHeapStatistics().used_heap_size,
        rssBytes,
      })
    },
    Math.max(intervalMs, resolutionMs),
  )
  timer.unref()
  return {
    close: () => {
      clearInterval(timer)
      delays.disable()
    },
  }
}

/** Thresholds above which requests are shed; 0 disables a signal. */
export type PressureThresholds = PressureReadings & {
  /** Requests that wait for an upstream. */
  readonly inFlight: number
}

type Pressure =
  | { readonly level: 0; readonly signal: undefined }
  | { readonly level: Exclude<PressureLevel, 0>; readonly signal: PressureSignal }

export const noPressure: Pressure = { level: 0, signal: undefined }

/**
 * The multiple of its threshold at which a signal reaches each level. A busy event loop alone sheds only the costliest
 * requests; memory runs out suddenly, so its levels are close together.
 */
const factors = [
  ['event-loop-delay', 'eventLoopDelayMs', [1, 2, 4]],
  ['event-loop-utilization', 'eventLoopUtilization', [1, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]],
  ['heap', 'heapBytes', [1, 1.1, 1.2]],
  ['rss', 'rssBytes', [1, 1.1, 1.2]],
] as const satisfies readonly (readonly [
  PressureSignal,
  keyof PressureReadings,
  readonly [number, number, number],
])[]

const levelOf = (share: number, [first, second, third]: readonly [number, number, number]): PressureLevel => {
  if (share >= third) return 3
  if (share >= second) return 2
  return share >= first ? 1 : 0
}

/** The level of the strongest signal. */
export const decidePressure = (readings: PressureReadings, thresholds: PressureThresholds): Pressure => {
  let pressure: Pressure = noPressure
  for (const [signal, key, steps] of factors) {
    const threshold = thresholds[key]
    if (threshold === 0) continue
    const level = levelOf(readings[key] / threshold, steps)
    if (level > pressure.level && level !== 0) pressure = { level, signal }
  }
  return pressure
}

const levelAt: Readonly<Record<WorkClass, PressureLevel>> = { batch: 1, miss: 1, pass: 2, hit: 3 }

/** Batches and misses leave the last fifth of the slots to requests that cannot be repeated later, mostly writes. */
const shareOfPlaces: Readonly<Record<WorkClass, number>> = {
  batch: 0.8,
  miss: 0.8,
  pass: 1,
  hit: Number.POSITIVE_INFINITY,
}

/** Why a request is shed; undefined when it is not. `inFlight`: number of waiting requests; this one counts from its first wait on. */
export const decideShedding = (
  work: WorkClass,
  pressure: Pressure,
  inFlight: number,
  thresholds: PressureThresholds,
): PressureSignal | undefined => {
  if (pressure.level >= levelAt[work]) return pressure.signal
  const places = thresholds.inFlight * shareOfPlaces[work]
  return thresholds.inFlight > 0 && inFlight >= places ? 'in-flight' : undefined
}

type OverloadOptions = {
  readonly thresholds: PressureThresholds
  readonly inFlight: Pick<InFlight, 'count'>
  report(event: OverloadEvent): void
}

/** Protects the process from overload: sheds requests, the costliest first. Starts at level 0. */
export const createOverload = ({ inFlight, report, ...options }: OverloadOptions) => {
  let pressure: Pressure = noPressure
  let { thresholds } = options
  return {
    /** False: shed the request. */
    accepts: (work: WorkClass): boolean => {
      const signal = decideShedding(work, pressure, inFlight.count, thresholds)
      if (signal === undefined) return true
      report({ kind: 'shed', class: work, signal })
      return false
    },
    /** Takes a measurement; returns the new level. */
    measured: (readings: PressureReadings): PressureLevel => {
      const now = decidePressure(readings, thresholds)
      if (now.level !== pressure.level) report({ kind: 'pressure-changed', ...now })
      pressure = now
      return now.level
    },
    use: (configured: PressureThresholds): void => {
      thresholds = configured
    },
  }
}

export type Overload = ReturnType<typeof createOverload>
