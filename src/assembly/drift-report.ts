import { systemClock } from '../clock.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import type { Difference } from '../discovery/drift.ts'
import type { DiscoveryEvent, IndexRefusal } from '../discovery/events.ts'
import { unlimited } from '../http/byte-budget.ts'
import { createMetrics } from '../metrics/create-metrics.ts'
import { type BuiltService, buildService, closeServices } from './build-service.ts'

/** What asking the upstream of one service came to. */
export type ServiceDrift = {
  readonly service: string
  readonly outcome:
    | { readonly kind: 'compared'; readonly differences: readonly Difference[] }
    /** The reason in words, for a person. */
    | { readonly kind: 'unread'; readonly reason: string }
}

const inWords: Readonly<Record<IndexRefusal, string>> = {
  unreachable: 'no connection, or the connection broke',
  timeout: 'no response in time',
  status: 'the status was not 200; check upstream.basePath',
  'too-large': 'the response is too large',
  'too-deep': 'the response is nested too deep',
  'too-many-routes': 'it has too many routes',
  'not-json': 'the response is not JSON; check upstream.basePath',
  'not-an-index': 'the response has no routes; check upstream.basePath',
  unusable: 'it could not be used',
}

/** No request is served while upstreams are looked at. */
const neverRun = (): never => {
  throw new Error('nothing is served')
}

/** A service that was built to be looked at, and why the index of its upstream could not be read, if it could not. */
type Asked = { readonly built: BuiltService; readonly refusal: string | undefined }

const ask = async (service: ServiceConfig, config: Config): Promise<Asked> => {
  let refusal: IndexRefusal | undefined
  const metrics = createMetrics({ version: '', configHash: '', processMetrics: false })
  const discovery = (event: DiscoveryEvent): void => {
    if (event.kind === 'index-failed') refusal = event.reason
  }
  // An identity of its own does not say what the upstream offers: the upstream is asked all the same.
  const asked: ServiceConfig =
    service.contract === 'site'
      ? { ...service, discovery: { source: 'upstream', refreshMs: service.discovery.refreshMs } }
      : service
  const built = await buildService(asked, {
    config,
    publicUrl: config.publicUrl,
    clock: systemClock,
    metrics: { ...metrics, observe: { ...metrics.observe, discovery } },
    budget: () => unlimited,
    run: neverRun,
    mayRemember: () => true,
    serviceNamed: () => undefined,
    sharing: () => [],
  })
  // The one request that building has begun.
  await built.discovery?.refresh()
  return { built, refusal: refusal === undefined ? undefined : inWords[refusal] }
}

/** Builds these services one after the other, asks the upstream of each site for its index, once, and ends them after `use`. Listens nowhere public. */
export const withAskedServices = async <Value>(
  services: readonly ServiceConfig[],
  config: Config,
  use: (asked: readonly Asked[]) => Value,
): Promise<Value> => {
  const asked: Asked[] = []
  try {
    for (const service of services) asked.push(await ask(service, config))
    return use(asked)
  } finally {
    await closeServices(
      asked.map(({ built }) => built),
      [],
    )
  }
}

/** Compares what the upstream of each site service announces with the contract. */
export const driftReport = (config: Config): Promise<readonly ServiceDrift[]> =>
  withAskedServices(
    config.services.filter(({ contract }) => contract === 'site'),
    config,
    (asked) =>
      asked.map(({ built, refusal }) => ({
        service: built.config.name,
        outcome:
          refusal === undefined
            ? { kind: 'compared', differences: built.discovery?.drift() ?? [] }
            : { kind: 'unread', reason: refusal },
      })),
  )
