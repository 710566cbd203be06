import { systemClock } from '../clock.ts'
import type { Config, SiteConfig } from '../config/config.ts'
import type { Difference } from '../discovery/drift.ts'
import type { DiscoveryEvent, IndexRefusal } from '../discovery/events.ts'
import { unlimited } from '../http/byte-budget.ts'
import { createMetrics } from '../metrics/create-metrics.ts'
import { buildService, closeServices } from './build-service.ts'

/** What asking the upstream of one service came to. */
export type ServiceDrift = {
  readonly service: string
  readonly outcome:
    | { readonly kind: 'compared'; readonly differences: readonly Difference[] }
    /** The reason in words, for a person. */
    | { readonly kind: 'unread'; readonly reason: string }
}

const inWords: Readonly<Record<IndexRefusal, string>> = {
  unreachable: 'no connection, or it broke off',
  timeout: 'no answer in time',
  status: 'the status of the answer was not 200; is upstream.basePath the root of the interface?',
  'too-large': 'the answer is too large',
  'too-deep': 'the answer is nested too deep',
  'too-many-routes': 'it announces too many routes',
  'not-json': 'the answer is not JSON; is upstream.basePath the root of the interface?',
  'not-an-index': 'the answer has no routes; is upstream.basePath the root of the interface?',
  unusable: 'no use could be made of it',
}

/** No request is served while drift is looked at. */
const neverRun = (): never => {
  throw new Error('nothing is served')
}

const driftOf = async (service: SiteConfig, config: Config): Promise<ServiceDrift> => {
  let refusal: IndexRefusal | undefined
  const metrics = createMetrics({ version: '', configHash: '', processMetrics: false })
  const discovery = (event: DiscoveryEvent): void => {
    if (event.kind === 'index-failed') refusal = event.reason
  }
  // An identity of its own does not say what the upstream offers: the upstream is asked all the same.
  const { refreshMs } = service.discovery
  const built = await buildService(
    { ...service, discovery: { source: 'upstream', refreshMs } },
    {
      config,
      publicUrl: config.publicUrl,
      clock: systemClock,
      metrics: { ...metrics, observe: { ...metrics.observe, discovery } },
      budget: () => unlimited,
      run: neverRun,
      mayRemember: () => true,
      serviceNamed: () => undefined,
      sharing: () => [],
    },
  )
  try {
    // The one request that building has begun.
    await built.discovery?.refresh()
    return {
      service: service.name,
      outcome:
        refusal === undefined
          ? { kind: 'compared', differences: built.discovery?.drift() ?? [] }
          : { kind: 'unread', reason: inWords[refusal] },
    }
  } finally {
    await closeServices([built], [])
  }
}

/** Asks the upstream of each site service for its index, once, and compares it with the contract. Listens nowhere public. */
export const driftReport = async (config: Config): Promise<readonly ServiceDrift[]> => {
  const reports: ServiceDrift[] = []
  for (const service of config.services) {
    if (service.contract === 'site') reports.push(await driftOf(service, config))
  }
  return reports
}
