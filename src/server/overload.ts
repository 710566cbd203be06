import type { OverloadEvent, PressureLevel, PressureSignal, WorkClass } from './overload-events.ts'

/** Measurements of the process. */
export type PressureReadings = {
  /** Mean of the last interval. */
  readonly eventLoopDelayMs: number
  /** Share of the last interval in which the event loop was busy. */
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
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
  let found: Pressure = noPressure
  for (const [signal, key, steps] of factors) {
    const threshold = thresholds[key]
    if (threshold === 0) continue
    const level = levelOf(readings[key] / threshold, steps)
    if (level > found.level && level !== 0) found = { level, signal }
  }
  return found
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
  /** The configured thresholds; read each time, since a reload may change them. */
  thresholds(): PressureThresholds
  /** Requests in flight. */
  inFlight(): number
  report(event: OverloadEvent): void
}

/** Protects the process from overload: sheds requests, the costliest first. */
export type Overload = {
  /** False: shed the request. */
  admits(work: WorkClass): boolean
  /** Takes a measurement; returns the new level. */
  measured(readings: PressureReadings): PressureLevel
}

/** Starts at level 0. */
export const createOverload = ({ thresholds, inFlight, report }: OverloadOptions): Overload => {
  let pressure: Pressure = noPressure
  return {
    admits: (work) => {
      const signal = decideShedding(work, pressure, inFlight(), thresholds())
      if (signal === undefined) return true
      report({ kind: 'shed', class: work, signal })
      return false
    },
    measured: (readings) => {
      const now = decidePressure(readings, thresholds())
      if (now.level !== pressure.level) report({ kind: 'pressure-changed', ...now })
      pressure = now
      return now.level
    },
  }
}
