import {
  decidePressure,
  decideShedding,
  noPressure,
  type Pressure,
  type PressureReadings,
  type PressureThresholds,
} from './decide-pressure.ts'
import type { OverloadEvent, PressureLevel, WorkClass } from './events.ts'

export type OverloadOptions = {
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
