import type { OverloadEvent, PressureLevel, PressureSignal, WorkClass } from './overload-events.ts'

/** What the process measures about itself. */
export type PressureReadings = {
  /** Mean of the last interval. */
  readonly eventLoopDelayMs: number
  /** Share of the last interval in which the event loop was busy. */
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
}

/** From where on work is given up; 0 = not looked at. */
export type PressureThresholds = PressureReadings & {
  /** Requests under way that wait for an upstream. */
  readonly inFlight: number
}

type Pressure =
  | { readonly level: 0; readonly signal: undefined }
  | { readonly level: Exclude<PressureLevel, 0>; readonly signal: PressureSignal }

export const noPressure: Pressure = { level: 0, signal: undefined }

/**
 * How many times its threshold a signal must reach for each level. A busy loop alone is no reason to give up more than what
 * costs most; memory is used up at once when it is used up, so its levels lie close together.
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

/** How much is given up: the signal that shows most decides. */
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

/** Batches and misses leave the last fifth of the places to what cannot wait for a better time: writes, mostly. */
const shareOfPlaces: Readonly<Record<WorkClass, number>> = {
  batch: 0.8,
  miss: 0.8,
  pass: 1,
  hit: Number.POSITIVE_INFINITY,
}

/** Why a piece of work is given up; undefined when it is not. `inFlight`: how many are under way, with or without this one: it is counted from its first wait on. */
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
  /** In force; read each time, since a reload may change them. */
  thresholds(): PressureThresholds
  /** Requests under way. */
  inFlight(): number
  report(event: OverloadEvent): void
}

/** Keeps the process able to answer: gives work up, the most expensive first. */
export type Overload = {
  /** False: give it up. */
  admits(work: WorkClass): boolean
  /** Takes in what was measured; gives the level from now on. */
  measured(readings: PressureReadings): PressureLevel
}

/** Builds it at ease. */
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
