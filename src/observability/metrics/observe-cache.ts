import type { CacheEvent } from '../../cache/events.ts'
import type { ChangeEvent } from '../../changes/events.ts'
import type { CoherenceEvent } from '../../cluster/events.ts'
import type { SharedTierEvent } from '../../cluster/redis-events.ts'
import { type Families, observeValue } from './registry.ts'

/** Counts events of coherence between processes. */
export const createCoherenceObserver =
  (families: Families) =>
  (event: CoherenceEvent): void => {
    switch (event.kind) {
      case 'trust-lost':
        families.memoryTrusted.series({}).value = 0
        families.trustLost.series({ reason: event.reason }).value += 1
        return
      case 'trust-regained':
        families.memoryTrusted.series({}).value = 1
        return
      case 'notes-applied':
        families.notesApplied.series({}).value += event.notes
        return
      case 'memory-dropped':
        families.memoryDropped.series({}).value += 1
        return
      case 'write-spread':
        observeValue(families.writeSpread.series({ outcome: event.outcome }), event.waitedSeconds)
        return
      case 'ledger-failed':
        families.ledgerFailures.series({ step: event.step }).value += 1
        return
      case 'write-refused':
        families.writesRefused.series({}).value += 1
        return
      case 'cut-off':
        return
      default:
        event satisfies never
    }
  }

/** Counts events of the shared store. */
export const createSharedTierObserver =
  (families: Families) =>
  (event: SharedTierEvent): void => {
    switch (event.kind) {
      case 'tier-lookup':
        families.sharedLookups.series({ outcome: event.outcome }).value += 1
        return
      case 'tier-refused':
        families.sharedRefused.series({ reason: event.reason }).value += 1
        return
      case 'tier-stored':
        families.sharedStored.series({}).value += 1
        families.sharedStoredBytes.series({}).value += event.bytes
        return
      case 'tier-failed':
        families.sharedFailures.series({ step: event.step }).value += 1
        return
      case 'tier-waited':
        families.sharedWaits.series({ outcome: event.outcome }).value += 1
        return
      case 'connection':
        if (event.state === 'down') families.sharedConnectionLosses.series({}).value += 1
        return
      case 'store-trouble':
        families.sharedTroubles.series({ trouble: event.trouble }).value += 1
        return
      default:
        event satisfies never
    }
  }

/** Counts events of the cache. */
export const createCacheObserver =
  (families: Families) =>
  (event: CacheEvent): void => {
    switch (event.kind) {
      case 'forwarded':
        families.cacheForwards.series({ service: event.service, reason: event.reason }).value += 1
        return
      case 'stored':
        families.cacheStored.series({ service: event.service }).value += 1
        families.cacheStoredBytes.series({ service: event.service }).value += event.bytes
        return
      case 'not-stored':
        families.cacheNotStored.series({ service: event.service, reason: event.reason }).value += 1
        return
      case 'collapsed':
        families.cacheCollapsed.series({ service: event.service }).value += 1
        return
      case 'served-stale':
        families.cacheServedStale.series({ service: event.service, reason: event.reason }).value += 1
        return
      case 'background-failed':
        families.cacheBackgroundFailures.series({ service: event.service }).value += 1
        return
      case 'invalidated': {
        const labels = { by: event.by }
        families.cacheInvalidations.series(labels).value += 1
        families.cacheInvalidatedEntries.series(labels).value += event.entries
        families.cacheCutForwards.series(labels).value += event.cut
        return
      }
      case 'compressed': {
        const labels = { coding: event.coding }
        families.cacheCompressions.series(labels).value += 1
        families.cacheCompressedBytes.series(labels).value += event.bytes
        families.cacheSavedBytes.series(labels).value += event.saved
        return
      }
      case 'evicted':
        families.cacheEvictions.series({}).value += 1
        families.cacheEvictedBytes.series({}).value += event.bytes
        return
      default:
        // A new kind of event does not compile until it is counted here.
        event satisfies never
    }
  }

/** Counts what happens to the change feeds. */
export const createChangeObserver =
  (families: Families) =>
  (event: ChangeEvent): void => {
    const { service } = event
    switch (event.kind) {
      case 'changes-applied': {
        const labels = { service, source: event.source }
        families.changesApplied.series(labels).value += event.changes
        families.changesDropped.series(labels).value += event.entries
        return
      }
      case 'service-dropped':
        families.changesServiceDrops.series({ service, reason: event.reason }).value += 1
        return
      case 'changes-refused':
        families.changesRefused.series({ service, reason: event.reason }).value += 1
        return
      case 'poll-failed':
        families.changesPollFailures.series({ service, reason: event.reason }).value += 1
        return
      case 'feed-state':
        return
      default:
        event satisfies never
    }
  }
