import { Gauge, type OpenMetricsContentType, Registry } from 'prom-client'
import type { MetricRow } from './metric-row.ts'
import type { Exemplar, HistogramSeries } from './series.ts'

/** One line of a scrape in prom-client's form. */
export type Value = {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
  readonly exemplar?: Exemplar
}

/** The formats of a scrape. */
export type ScrapeFormat = 'prometheus' | 'openmetrics'

/**
 * A metric that prom-client prints but does not count. Its own counters hash the labels at each observation, which costs several
 * times the other accounting of a cache hit; here the series are resolved once.
 */
export class ReadMetric extends Gauge<string> {
  readonly #row: MetricRow
  readonly #values: () => Value[]

  constructor(row: MetricRow, values: () => Value[]) {
    super({ name: row.name, help: row.help, labelNames: [...row.labels], registers: [] })
    this.#row = row
    this.#values = values
  }

  override async get(): ReturnType<Gauge<string>['get']> {
    const { name, help, type, together = 'sum' } = this.#row
    // The declared enum of types does not exist at run time: prom-client itself uses these words.
    const read = { name, help, type, aggregator: together, values: this.#values() }
    return read as unknown as Awaited<ReturnType<Gauge<string>['get']>>
  }
}

/**
 * The metrics of one registry, printed as OpenMetrics by another one. OpenMetrics names a counter without the suffix of its
 * samples; prom-client would rename the metric for good, so copies are renamed.
 */
export const openMetricsOf = (registry: Registry): Registry => {
  const other = new Registry()
  ;(other as unknown as Registry<OpenMetricsContentType>).setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name)
    if (metric === undefined) continue
    const standIn = {
      name,
      async get() {
        const read = await metric.get()
        return String(read.type) === 'counter' ? { ...read, name: name.replace(/_total$/, '') } : read
      },
    }
    other.registerMetric(standIn as unknown as typeof metric)
  }
  return other
}

/** The lines of one histogram series: the written buckets, the sum and the count. */
export const histogramValues = (
  { name, buckets }: { readonly name: string; readonly buckets: readonly number[] },
  labels: Readonly<Record<string, string>>,
  series: HistogramSeries,
): Value[] => {
  const values: Value[] = []
  const metricName = `${name}_bucket`
  let count = 0
  let written = 0
  let exemplar: Exemplar | undefined
  series.bounds.forEach((bound, index) => {
    count += series.counts[index] ?? 0
    exemplar = series.exemplars?.[index] ?? exemplar
    if (bound !== buckets[written]) return
    written += 1
    const line = { metricName, labels: { le: bound, ...labels }, value: count }
    values.push(exemplar === undefined ? line : { ...line, exemplar })
    exemplar = undefined
  })
  const beyond = series.bounds.length
  count += series.counts[beyond] ?? 0
  exemplar = series.exemplars?.[beyond] ?? exemplar
  const last = { metricName, labels: { le: '+Inf', ...labels }, value: count }
  values.push(
    exemplar === undefined ? last : { ...last, exemplar },
    { metricName: `${name}_sum`, labels, value: series.sum },
    { metricName: `${name}_count`, labels, value: count },
  )
  return values
}
