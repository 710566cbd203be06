/** How a batch ended: `ran` whatever its items answered, `validation` = require-all-validate refused it. */
export type BatchResult = 'ran' | 'validation' | 'deadline' | 'client-gone' | 'malformed'

/** How one item ended. `refused` never ran; `not-sent` and `outcome-unknown` met the deadline or an absent client. */
export type BatchItemOutcome = 'answered' | 'refused' | 'not-sent' | 'outcome-unknown'

/** What this room tells about itself; every string is from a closed list. */
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
      /** One of the methods a batch allows, `_OTHER` for the rest. */
      readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | '_OTHER'
      readonly outcome: BatchItemOutcome
      readonly status: number
      /** From the start of the batch to the start of the item; 0 for one that never started. */
      readonly queuedSeconds: number
      readonly durationSeconds: number
    }
