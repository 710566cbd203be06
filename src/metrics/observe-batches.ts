import type { BatchEvent } from '../batch/events.ts'
import { statusClass } from './observe-exchanges.ts'
import type { Families } from './registry.ts'
import { observeValue } from './series.ts'

/** Counts what the batch room of one service reports. */
export const createBatchObserver =
  (families: Families) =>
  (service: string, event: BatchEvent): void => {
    if (event.kind === 'batch-item-finished') {
      const { method, outcome } = event
      families.batchItems.series({
        service,
        method,
        outcome,
        status_class: statusClass(event.status),
      }).value += 1
      if (outcome === 'answered')
        observeValue(families.batchItemQueueSeconds.series({ service }), event.queuedSeconds)
      return
    }
    if (event.kind === 'batch-split') {
      const { split, reason } = event
      families.batchSplits.series({ service, split, reason }).value += 1
      observeValue(families.batchRequests.series({ service, split }), event.requests)
      return
    }
    if (event.kind === 'batch-chunk-finished') {
      const { result } = event
      families.batchChunks.series({ service, result }).value += 1
      observeValue(families.batchChunkItems.series({ service }), event.items)
      observeValue(families.batchChunkSeconds.series({ service }), event.durationSeconds)
      return
    }
    families.batches.series({ service, result: event.result }).value += 1
    observeValue(families.batchSize.series({ service }), event.items)
    observeValue(families.batchSeconds.series({ service }), event.durationSeconds)
    observeValue(families.batchParallelism.series({ service }), event.parallelism)
    // A counter never goes down: a batch that was slower than its items saved nothing.
    families.batchSavedSeconds.series({ service }).value += Math.max(
      0,
      event.itemSeconds - event.durationSeconds,
    )
    families.batchOrdered.series({ service }).value += event.ordered
  }
