import type { BufferedFor } from '../http/bounds/byte-budget.ts'

/** Classes of requests, in the order in which they are shed. */
export type WorkClass = 'batch' | 'miss' | 'pass' | 'hit'

/** Signals of overload. */
export type PressureSignal = 'event-loop-delay' | 'event-loop-utilization' | 'heap' | 'rss' | 'in-flight'

/** What is shed: nothing; batches and misses; every request that needs an upstream; everything. */
export type PressureLevel = 0 | 1 | 2 | 3

/** Events of overload protection. */
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
