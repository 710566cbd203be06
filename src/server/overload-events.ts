import type { BufferedFor } from '../http/byte-budget.ts'

/** What a request asks of the gateway, from what is given up first to what is given up last. */
export type WorkClass = 'batch' | 'miss' | 'pass' | 'hit'

/** By what overload shows. */
export type PressureSignal = 'event-loop-delay' | 'event-loop-utilization' | 'heap' | 'rss' | 'in-flight'

/** How much is given up: nothing; batches and misses; everything that asks an upstream; everything. */
export type PressureLevel = 0 | 1 | 2 | 3

/** What this room reports. */
export type OverloadEvent =
  | { readonly kind: 'shed'; readonly class: WorkClass; readonly signal: PressureSignal }
  /** limits.bufferedBytes, or the half of it that one client may hold. */
  | { readonly kind: 'buffer-refused'; readonly work: BufferedFor }
  | {
      readonly kind: 'pressure-changed'
      readonly level: PressureLevel
      /** The one that shows most; undefined at level 0. */
      readonly signal: PressureSignal | undefined
    }
