import { accessRefusals } from '../../pipeline/access.ts'
import { type AccessEvent, type EdgeEvent, jwksResults, type LifecycleEvent } from '../../server/events.ts'
import type { OverloadEvent } from '../../server/overload.ts'
import { type WebSocketEvent, websocketOutcomes } from '../../server/websockets.ts'
import type { DiscoveryEvent } from '../../site/events.ts'
import type { Families } from './registry.ts'

/** Counts events of the process. */
export const createLifecycleObserver =
  (families: Families): ((event: LifecycleEvent) => void) =>
  (event) => {
    switch (event.kind) {
      case 'reloaded': {
        const { outcome, atSeconds } = event
        families.configReloads.series({ outcome }).value += 1
        families.configReloadGood.series({}).value = outcome === 'applied' || outcome === 'unchanged' ? 1 : 0
        families.configReloadTime.series({ outcome }).value = atSeconds
        return
      }
      case 'process-fault':
        families.processFaults.series({}).value += 1
        return
      case 'certificate-in-force':
        families.certificateExpiry.series({}).value = event.notAfterSeconds
        return
      default:
        event satisfies never
    }
  }

/** Sets one gauge for each named count, and resets the others to zero. */
const setCounts = (
  counts: Readonly<Record<string, number | undefined>>,
  known: Set<string>,
  seriesOf: (name: string) => { value: number },
): void => {
  for (const name of Object.keys(counts)) known.add(name)
  for (const name of known) seriesOf(name).value = counts[name] ?? 0
}

/** Counts events of discovery. */
export const createDiscoveryObserver = (families: Families): ((event: DiscoveryEvent) => void) => {
  // Closed lists by type, remembered for each service, so that a resolved reason returns to zero.
  const reasons = new Map<string, Set<string>>()
  const kinds = new Map<string, Set<string>>()
  const knownOf = (all: Map<string, Set<string>>, service: string): Set<string> => {
    const known = all.get(service) ?? new Set()
    all.set(service, known)
    return known
  }
  return (event) => {
    const { service } = event
    switch (event.kind) {
      case 'index-refreshed':
        families.discoveryRefreshes.series({ service, result: 'ok' }).value += 1
        families.discoveryUnlistedRoutes.series({ service }).value = event.unlistedRoutes
        families.discoveryLearnedRows.series({ service }).value = event.learnedRows
        setCounts(event.refused, knownOf(reasons, service), (reason) =>
          families.discoveryRefusedRoutes.series({ service, reason }),
        )
        return
      case 'index-failed':
        families.discoveryRefreshes.series({ service, result: event.reason }).value += 1
        return
      case 'drift-compared':
        setCounts(event.differences, knownOf(kinds, service), (kind) =>
          families.discoveryDifferences.series({ service, kind }),
        )
        return
      case 'response-checked':
        families.responseChecks.series({ service, result: event.result }).value += 1
        return
      case 'response-checks-failed':
        families.responseChecks.series({ service, result: 'failed' }).value += 1
        return
      default:
        // A new kind of event does not compile until it is counted here.
        event satisfies never
    }
  }
}

/** Counts connections and requests that the public port refuses or ends. */
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

/** Counts fetches of keys; every series of a service is there, with 0, when its access is configured. */
export const createAccessObserver =
  (families: Families): ((event: AccessEvent) => void) =>
  (event) => {
    const { service } = event
    switch (event.kind) {
      case 'access-configured':
        for (const reason of accessRefusals) families.accessRefused.series({ service, reason })
        for (const result of jwksResults) families.jwksFetches.series({ service, result })
        return
      case 'jwks-fetched':
        families.jwksFetches.series({ service, result: event.result }).value += 1
        return
      default:
        event satisfies never
    }
  }

/** Counts WebSockets; every outcome of a service is there, with 0, when it is configured. */
export const createWebSocketObserver =
  (families: Families): ((event: WebSocketEvent) => void) =>
  (event) => {
    const { service } = event
    if (event.kind === 'websocket-ended') {
      families.websockets.series({ service, outcome: event.outcome }).value += 1
      return
    }
    event.kind satisfies 'websockets-configured'
    for (const outcome of websocketOutcomes) families.websockets.series({ service, outcome })
  }
