import type { CacheEvent } from '../cache/events.ts'
import type { Families } from './registry.ts'

/** Counts what the cache reports. */
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
