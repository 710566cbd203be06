import { Counter, Gauge, type OpenMetricsContentType, Registry } from 'prom-client'
import {
  cacheMetrics,
  changeMetrics,
  coherenceMetrics,
  downstreamMetrics,
  upstreamMetrics,
} from './cache-metrics.ts'
import type { MetricRow } from './metric-row.ts'
import {
  batchMetrics,
  discoveryMetrics,
  edgeMetrics,
  gatewayMetrics,
  lifecycleMetrics,
  requestMetrics,
} from './request-metrics.ts'

/** One time series of a counter or a gauge. Holding it makes an observation one addition. */
export type NumberSeries = { value: number }

/** An exemplar: one observation of a bucket with its trace. */
type Exemplar = {
  readonly labelSet: { readonly trace_id: string }
  readonly value: number
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** One time series of a histogram: the number of values in each bucket, not cumulative. */
export type HistogramSeries = {
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last bucket is unbounded. */
  readonly counts: Float64Array
  sum: number
  /** The last exemplar of each bucket. */
  exemplars: (Exemplar | undefined)[] | undefined
}

export const createHistogramSeries = (bounds: readonly number[]): HistogramSeries => ({
  bounds,
  counts: new Float64Array(bounds.length + 1),
  sum: 0,
  exemplars: undefined,
})

/** Adds the counts of one series to another one with the same bounds. */
export const addSeries = (sum: HistogramSeries, part: HistogramSeries): void => {
  part.counts.forEach((count, bucket) => {
    sum.counts[bucket] = (sum.counts[bucket] as number) + count
  })
  sum.sum += part.sum
  if (part.exemplars === undefined) return
  const exemplars = sum.exemplars ?? []
  sum.exemplars = exemplars
  part.exemplars.forEach((exemplar, bucket) => {
    const previous = exemplars[bucket]
    if (exemplar !== undefined && (previous === undefined || previous.timestamp < exemplar.timestamp))
      exemplars[bucket] = exemplar
  })
}

/** One line of a scrape in prom-client's form. */
type Value = {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
  readonly exemplar?: Exemplar
}

/** A metric with its values as prom-client gives them; its declared enum of types does not exist at run time. */
export type MetricSnapshot = {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly values: readonly Value[]
}

export type ScrapeFormat = 'prometheus' | 'openmetrics'

const settingsOf = ({ name, help, labels, together = 'sum' }: MetricRow) => ({
  name,
  help,
  labelNames: [...labels],
  registers: [],
  aggregator: together,
})

/**
 * A counter or gauge of prom-client that gets its values at a scrape: at each observation it would hash the labels, also bound ones,
 * which takes 0.4 µs for the five of a request.
 */
const collected = (row: MetricRow, entries: Family<string, NumberSeries>['entries']) => {
  const collect = (): void => {
    metric.reset()
    // Without labels it would be 0 before its first event.
    if (row.labels.length === 0) metric.remove()
    for (const [labels, { value }] of entries()) metric.inc(labels, value)
  }
  const settings = { ...settingsOf(row), collect }
  const metric: Counter<string> | Gauge<string> =
    row.type === 'counter' ? new Counter(settings) : new Gauge(settings)
  return metric
}

/**
 * A histogram that prom-client prints but does not count: it hashes labels here too, and cannot take the counts of buckets at a scrape.
 * Its `Histogram` prints by a method that it does not document, its `Gauge` by `get`.
 */
class ReadHistogram extends Gauge<string> {
  readonly #row: MetricRow
  readonly #values: () => Value[]

  constructor(row: MetricRow, values: () => Value[]) {
    super(settingsOf(row))
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
const histogramValues = (
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

/** Every metric of the gateway, one row each, by area. The registry is built from it; docs/metrics.md and dashboards/ are tested against it. */
export const metricTable = {
  ...requestMetrics,
  ...cacheMetrics,
  ...upstreamMetrics,
  ...batchMetrics,
  ...discoveryMetrics,
  ...coherenceMetrics,
  ...changeMetrics,
  ...downstreamMetrics,
  ...edgeMetrics,
  ...lifecycleMetrics,
  ...gatewayMetrics,
} as const

export type MetricKey = keyof typeof metricTable

/** The label value of the series for everything above the cap. */
const overflowLabel = '_overflow'

/** All series of one metric, each found by its label values. */
type Family<Label extends string, Series> = {
  /** The series of these label values; the overflow series when there are too many. */
  series(values: Readonly<Record<Label, string>>): Series
  /** Makes a series that the configuration asks for; it is not counted against the cap. */
  declare(values: Readonly<Record<Label, string>>): void
  /** Drops every series: for gauges that are set again completely. */
  clear(): void
  entries(): Iterable<readonly [labels: Readonly<Record<string, string>>, series: Series]>
}

type FamilyOptions<Label extends string, Series> = {
  readonly labels: readonly Label[]
  readonly maxSeries: number
  readonly create: () => Series
  /** Called each time the cap prevents a new series. */
  readonly onOverflow: () => void
}

/** Label values contain no control characters, so one separates them in a key. */
const separator = '\u0001'

/** Creates the series of one metric. Their number is bounded, whatever the label values. */
const createFamily = <Label extends string, Series>(
  options: FamilyOptions<Label, Series>,
): Family<Label, Series> => {
  const { labels, maxSeries, create, onOverflow } = options
  const children = new Map<string, { readonly labels: Record<string, string>; readonly series: Series }>()
  let overflow: Series | undefined
  let declared = 0

  const add = (key: string, values: Readonly<Record<string, string>>): Series => {
    const series = create()
    const named = Object.fromEntries(labels.map((label) => [label, values[label] ?? '']))
    children.set(key, { labels: named, series })
    return series
  }
  const overflowSeries = (): Series => {
    overflow ??= add(overflowLabel, Object.fromEntries(labels.map((label) => [label, overflowLabel])))
    return overflow
  }

  const keyOf = (values: Readonly<Record<Label, string>>): string => {
    let key = ''
    for (const label of labels) key += values[label] + separator
    return key
  }

  return {
    series(values) {
      const key = keyOf(values)
      const child = children.get(key)
      if (child !== undefined) return child.series
      if (children.size - declared < maxSeries) return add(key, values)
      onOverflow()
      return overflowSeries()
    },
    declare(values) {
      const key = keyOf(values)
      if (children.has(key)) return
      add(key, values)
      declared += 1
    },
    clear() {
      children.clear()
      declared = 0
      overflow = undefined
    },
    *entries() {
      for (const { labels: named, series } of children.values()) yield [named, series]
    },
  }
}

type MetricTable = typeof metricTable
type LabelOf<Key extends MetricKey> = MetricTable[Key]['labels'][number]
type SeriesOf<Key extends MetricKey> = MetricTable[Key]['type'] extends 'histogram'
  ? HistogramSeries
  : NumberSeries

export type Families = { readonly [Key in MetricKey]: Family<LabelOf<Key>, SeriesOf<Key>> }

type TableRow = MetricTable[MetricKey]

const numberFamily = (row: TableRow, maxSeries: number, onOverflow: () => void) => {
  const create = (): NumberSeries => ({ value: 0 })
  const family = createFamily<string, NumberSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  return { family, metric: collected(row, family.entries) }
}

type HistogramRow = Extract<TableRow, { type: 'histogram' }>

const histogramFamily = (row: HistogramRow, maxSeries: number, onOverflow: () => void) => {
  const create = () => createHistogramSeries(row.counted)
  const family = createFamily<string, HistogramSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  const read = (): Value[] =>
    [...family.entries()].flatMap(([labels, series]) => histogramValues(row, labels, series))
  return { family, metric: new ReadHistogram(row, read) }
}

/** Most series of one metric beside the declared ones: of numbers (a line each), and of histograms (some fifteen lines each). */
type SeriesCaps = { readonly numbers: number; readonly histograms: number }

/** Its own registry, with the series of every metric of the table. */
export const createRegistry = (
  caps: SeriesCaps,
): { readonly registry: Registry; readonly families: Families } => {
  const registry = new Registry()
  const families: Record<string, unknown> = {}
  const onOverflow = (metric: string) => (): void => {
    // Bounded by the table: the metric of overflows has one series for each row.
    ;(families as Families).seriesOverflow.series({ metric }).value += 1
  }
  for (const [key, row] of Object.entries(metricTable)) {
    const { family, metric } =
      row.type === 'histogram'
        ? histogramFamily(row, caps.histograms, onOverflow(row.name))
        : numberFamily(row, caps.numbers, onOverflow(row.name))
    families[key] = family
    registry.registerMetric(metric)
  }
  return { registry, families: families as Families }
}
