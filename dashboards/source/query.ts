import { type MetricKey, metricTable } from '../../src/observability/metrics/registry.ts'

type Table = typeof metricTable
/** Labels that Prometheus adds. */
type ScrapeLabel = 'instance' | 'job'
type LabelOf<Key extends MetricKey> = Table[Key]['labels'][number] | ScrapeLabel
type KeyOf<Type extends string> = {
  [Key in MetricKey]: Table[Key]['type'] extends Type ? Key : never
}[MetricKey]

/** A value to be equal to; `~` in front makes it a pattern. */
type Where<Key extends MetricKey> = { readonly [Label in LabelOf<Key>]?: string }

/** A metric's samples by name and labels; a name or a label that the table has not is a compile error. */
export type Selection<Key extends MetricKey> = { readonly key: Key; readonly text: string }

const matcher = (label: string, value: string): string =>
  value.startsWith('~') ? `${label}=~"${value.slice(1)}"` : `${label}="${value}"`

const selectorOf = (labels: readonly string[], where: Readonly<Record<string, string>>): string => {
  const chosen = labels.includes('service') ? { service: '~$service', ...where } : where
  const matchers = Object.entries(chosen).map(([label, value]) => matcher(label, value))
  return matchers.length === 0 ? '' : `{${matchers.join(',')}}`
}

const named = (key: MetricKey, suffix: string, where: Readonly<Record<string, string>>): string =>
  `${metricTable[key].name}${suffix}${selectorOf(metricTable[key].labels, where)}`

/** Samples of a counter or a gauge, of the services chosen at the top of the dashboard. */
export const series = <Key extends KeyOf<'counter' | 'gauge'>>(
  key: Key,
  where: Where<Key> = {},
): Selection<Key> => ({ key, text: named(key, '', where as Record<string, string>) })

const by = (labels: readonly string[]): string => (labels.length === 0 ? '' : ` by (${labels.join(', ')}) `)

/** Increase a second, added up. */
export const rate = <Key extends KeyOf<'counter'>>(
  { text }: Selection<Key>,
  labels: readonly LabelOf<Key>[] = [],
): string => `sum${by(labels)}(rate(${text}[$__rate_interval]))`

/** Values now, put together. */
export const total = <Key extends KeyOf<'gauge'>>(
  { text }: Selection<Key>,
  labels: readonly LabelOf<Key>[] = [],
  operation: 'sum' | 'min' | 'max' = 'sum',
): string => `${operation}${by(labels)}(${text})`

/** The value below which this share of the observations lies. */
export const quantile = <Key extends KeyOf<'histogram'>>(
  share: number,
  key: Key,
  labels: readonly LabelOf<Key>[] = [],
  where: Where<Key> = {},
): string => {
  const text = named(key, '_bucket', where as Record<string, string>)
  return `histogram_quantile(${share}, sum by (${[...labels, 'le'].join(', ')}) (rate(${text}[$__rate_interval])))`
}

/** The mean of the observations. */
export const mean = <Key extends KeyOf<'histogram'>>(
  key: Key,
  labels: readonly LabelOf<Key>[] = [],
  where: Where<Key> = {},
): string => {
  const part = (suffix: string): string =>
    `sum${by(labels)}(rate(${named(key, suffix, where as Record<string, string>)}[$__rate_interval]))`
  return `${part('_sum')} / ${part('_count')}`
}

/** The first as a share of the second: 0 without a value of the first, no value without one of the second. */
export const share = (part: string, whole: string): string => `(${part} or 0 * ${whole}) / (${whole} > 0)`

/** Names that prom-client gives to what it measures of the process. */
type ProcessMetric =
  | 'nodejs_active_handles'
  | 'nodejs_active_requests'
  | 'nodejs_active_resources'
  | 'nodejs_eventloop_lag_mean_seconds'
  | 'nodejs_eventloop_lag_p50_seconds'
  | 'nodejs_eventloop_lag_p99_seconds'
  | 'nodejs_eventloop_lag_max_seconds'
  | 'nodejs_external_memory_bytes'
  | 'nodejs_gc_duration_seconds_sum'
  | 'nodejs_gc_duration_seconds_count'
  | 'nodejs_heap_size_total_bytes'
  | 'nodejs_heap_size_used_bytes'
  | 'nodejs_heap_space_size_used_bytes'
  | 'process_cpu_seconds_total'
  | 'process_cpu_system_seconds_total'
  | 'process_cpu_user_seconds_total'
  | 'process_max_fds'
  | 'process_open_fds'
  | 'process_resident_memory_bytes'
  | 'process_start_time_seconds'

/** Samples of the process's own metrics. */
export const ofProcess = (name: ProcessMetric): string => `${name}{job="trellis"}`

/** Their increase a second. */
export const processRate = (name: ProcessMetric): string => `rate(${ofProcess(name)}[$__rate_interval])`
