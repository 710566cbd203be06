import type { EdgeEvent } from '../edge/events.ts'
import type { OverloadEvent } from '../overload/events.ts'
import type { Families } from './registry.ts'

/** Counts what the public port refuses or ends. */
export const createEdgeObserver =
  (families: Families): ((event: EdgeEvent | OverloadEvent) => void) =>
  (event) => {
    switch (event.kind) {
      case 'connection-cut':
        families.connectionsCut.series({ reason: event.reason }).value += 1
        return
      case 'no-request':
        families.protocolRefusals.series({ reason: event.reason }).value += 1
        return
      case 'rate-limited':
        families.rateLimited.series({ limit: event.limit }).value += 1
        return
      case 'shed':
        families.shed.series({ class: event.class, signal: event.signal }).value += 1
        return
      case 'buffer-refused':
        families.bufferedRefusals.series({ work: event.work }).value += 1
        return
      case 'pressure-changed':
        families.pressureLevel.series({}).value = event.level
        return
      default:
        event satisfies never
    }
  }
