/** How a batch ended: `ran` whatever its items answered, `validation` = require-all-validate refused it. */
export const batchResults = ['ran', 'validation', 'deadline', 'client-gone'] as const
export type BatchResult = (typeof batchResults)[number]

/** How one item ended. `refused` never ran; `not-sent` and `outcome-unknown` met the deadline or an absent client. */
export type BatchItemOutcome = 'answered' | 'refused' | 'not-sent' | 'outcome-unknown'

export const splitReasons = [
  'configured',
  'few-items',
  'no-batch-route',
  'broken-chunks',
  'one-group',
  'beside-others',
  'two-parts',
] as const
export type SplitReason = (typeof splitReasons)[number]

/**
 * The outcome of one upstream batch, which the configuration calls a chunk: `answered`; `not-run` = the upstream refused it as a
 * whole and its items were sent one by one;
 * `limited` = the upstream answered 429; `not-sent` = it did not reach the upstream; `broken` = it is unknown which of its items
 * took effect.
 */
export const upstreamBatchResults = ['answered', 'not-run', 'limited', 'not-sent', 'broken'] as const
export type UpstreamBatchResult = (typeof upstreamBatchResults)[number]

export const batchMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** One of the methods that a batch allows, `_OTHER` for the rest. */
export type BatchMethod = (typeof batchMethods)[number] | '_OTHER'

export type BatchEvent =
  | {
      readonly kind: 'batch-finished'
      readonly result: BatchResult
      readonly items: number
      readonly durationSeconds: number
      /** Sum of the durations of the items that ran: more than `durationSeconds` when running in parallel paid. */
      readonly itemSeconds: number
      /** Most items that ran at one moment. */
      readonly parallelism: number
      /** Items that had to wait for another item because of the order rules. */
      readonly ordered: number
    }
  | {
      readonly kind: 'batch-item-finished'
      readonly method: BatchMethod
      readonly outcome: BatchItemOutcome
      readonly status: number
      /** From the start of the batch to the start of the item; 0 for one that never started. */
      readonly queuedSeconds: number
      readonly durationSeconds: number
    }
  | {
      /** Reported for every batch of which items run, before they do. */
      readonly kind: 'batch-split'
      readonly split: 'items' | 'chunks' | 'whole'
      readonly reason: SplitReason
      readonly requests: number
    }
  | {
      readonly kind: 'upstream-batch-finished'
      readonly result: UpstreamBatchResult
      readonly items: number
      readonly durationSeconds: number
    }
