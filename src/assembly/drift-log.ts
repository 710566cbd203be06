import type { DiscoveryEvent } from '../discovery/events.ts'
import type { Metrics } from '../metrics/create-metrics.ts'

/** The part of a logger that is needed here. */
type Log = {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

const write = (log: Log, event: DiscoveryEvent): void => {
  switch (event.kind) {
    case 'index-refreshed':
      return
    case 'index-failed': {
      const { kind, service, reason, keptLast, cause } = event
      log.warn({ service, reason, keptLast, err: cause }, kind)
      return
    }
    case 'drift-compared': {
      const { kind, service, differences } = event
      if (Object.keys(differences).length === 0) log.info({ service }, 'no-drift')
      else log.warn({ service, differences }, kind)
    }
  }
}

/** Metrics that also write down when an index cannot be read, and when an upstream begins to differ in another way. */
export const withDriftLog = (metrics: Metrics, log: Log): Metrics => ({
  ...metrics,
  observe: {
    ...metrics.observe,
    discovery: (event) => {
      metrics.observe.discovery(event)
      write(log, event)
    },
  },
})
