import type { ContractName } from '../../contracts/method.ts'
import { closedLabels, each, type Labels, pairs } from './closed-labels.ts'
import { type Families, type MetricKey, metricTable } from './registry.ts'
import { batchMetrics, discoveryMetrics, documentMetrics } from './request-metrics.ts'

/** No 0 before their first value: a time, what only several processes have, and what only services with a setting have. */
const withoutZero: ReadonlySet<MetricKey> = new Set([
  'certificateExpiry',
  'workersWanted',
  'workersReady',
  'changesLag',
  'websocketsOpen',
])

/** The facts of a configuration that decide which series there are. */
export type DeclaredServices = {
  readonly services: readonly {
    readonly name: string
    readonly contract: ContractName
    /** Origins. */
    readonly targets: readonly string[]
  }[]
  /** Names of the rate limits. */
  readonly limits: readonly string[]
}

const ofSites: ReadonlySet<string> = new Set([...Object.keys(batchMetrics), ...Object.keys(discoveryMetrics)])
const ofDocuments: ReadonlySet<string> = new Set(Object.keys(documentMetrics))

const hasSeries = (contract: ContractName, key: MetricKey): boolean => {
  if (ofDocuments.has(key)) return contract === 'openapi'
  return contract === 'site' || !ofSites.has(key)
}

const fromConfig = (key: MetricKey, { services, limits }: DeclaredServices): readonly Labels[] => {
  const labels: readonly string[] = metricTable[key].labels
  if (labels.includes('limit')) return each('limit', limits)
  if (!labels.includes('service')) return [{}]
  const concerned = services.filter(({ contract }) => hasSeries(contract, key))
  return concerned.flatMap(({ name: service, targets }) =>
    labels.includes('target') ? targets.map((target) => ({ service, target })) : [{ service }],
  )
}

/**
 * Makes the series of every metric whose labels are closed lists or come from the configuration. A counter that appears with its
 * first event hides that event from `rate()`, and a panel without series shows "No data" instead of 0.
 */
export const declareSeries = (families: Families, declared: DeclaredServices): void => {
  for (const key of Object.keys(metricTable) as MetricKey[]) {
    if (withoutZero.has(key)) continue
    const closed = key in closedLabels ? closedLabels[key as keyof typeof closedLabels] : [{}]
    if (closed === 'open') continue
    const family: { declare(values: Labels): void } = families[key]
    for (const values of pairs<Labels, Labels>(fromConfig(key, declared), closed)) family.declare(values)
  }
}
