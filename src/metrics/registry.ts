import { Gauge, Registry } from 'prom-client'
import { createFamily, type Family } from './family.ts'
import { type MetricKey, metricTable } from './metric-table.ts'
import { createHistogramSeries, type HistogramSeries, type NumberSeries } from './series.ts'

type Table = typeof metricTable
type LabelOf<Key extends MetricKey> = Table[Key]['labels'][number]
type SeriesOf<Key extends MetricKey> = Table[Key]['type'] extends 'histogram' ? HistogramSeries : NumberSeries

/** The series of every metric of the table. */
export type Families = { readonly [Key in MetricKey]: Family<LabelOf<Key>, SeriesOf<Key>> }

type Value = {
  readonly labels: Record<string, string | number>
  readonly value: number
  readonly metricName?: string
}
type Row = Table[MetricKey]

/**
 * A metric that prom-client writes out and does not count itself. Its own counters hash the labels at each observation,
 * several times the cost of a cache hit's other accounting; here the series are resolved once and held.
 */
class ReadMetric extends Gauge<string> {
  readonly #row: Row
  readonly #values: () => Value[]

  constructor(row: Row, values: () => Value[]) {
    super({ name: row.name, help: row.help, labelNames: [...row.labels], registers: [] })
    this.#row = row
    this.#values = values
  }

  override async get(): ReturnType<Gauge<string>['get']> {
    const { name, help, type } = this.#row
    // The declared enum of types has no counterpart at run time: prom-client itself uses these words.
    const read = { name, help, type, aggregator: 'sum', values: this.#values() }
    return read as unknown as Awaited<ReturnType<Gauge<string>['get']>>
  }
}

const histogramValues = (
  name: string,
  labels: Readonly<Record<string, string>>,
  series: HistogramSeries,
): Value[] => {
  const values: Value[] = []
  let count = 0
  series.bounds.forEach((bound, index) => {
    count += series.counts[index] ?? 0
    values.push({ metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: count })
  })
  count += series.counts[series.bounds.length] ?? 0
  values.push(
    { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count },
    { metricName: `${name}_sum`, labels, value: series.sum },
    { metricName: `${name}_count`, labels, value: count },
  )
  return values
}

const numberFamily = (row: Row, maxSeries: number, onOverflow: () => void) => {
  const create = (): NumberSeries => ({ value: 0 })
  const family = createFamily<string, NumberSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  const read = (): Value[] => [...family.entries()].map(([labels, { value }]) => ({ labels, value }))
  return { family, read }
}

const histogramFamily = (row: Row, buckets: readonly number[], maxSeries: number, onOverflow: () => void) => {
  const create = () => createHistogramSeries(buckets)
  const family = createFamily<string, HistogramSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  const read = (): Value[] =>
    [...family.entries()].flatMap(([labels, series]) => histogramValues(row.name, labels, series))
  return { family, read }
}

/** Most series of one metric: of numbers (a line each), and of histograms (some fifteen lines each). */
export type SeriesCaps = { readonly numbers: number; readonly histograms: number }

/** A registry of its own, with the series of every metric of the table. */
export const createRegistry = (
  caps: SeriesCaps,
): { readonly registry: Registry; readonly families: Families } => {
  const registry = new Registry()
  const families: Record<string, unknown> = {}
  const onOverflow = (metric: string) => (): void => {
    // Bounded by the table: the metric of overflows has one series a row.
    ;(families as Families).seriesOverflow.series({ metric }).value += 1
  }
  for (const [key, row] of Object.entries(metricTable)) {
    const { family, read } =
      row.type === 'histogram'
        ? histogramFamily(row, row.buckets, caps.histograms, onOverflow(row.name))
        : numberFamily(row, caps.numbers, onOverflow(row.name))
    families[key] = family
    // A counter that has one series only shows 0 from the start, so that its first step is seen as one.
    if (row.type === 'counter' && row.labels.length === 0) family.series({})
    registry.registerMetric(new ReadMetric(row, read))
  }
  return { registry, families: families as Families }
}
