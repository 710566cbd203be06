import { Registry } from 'prom-client'
import { createFamily, type Family } from './family.ts'
import { type MetricKey, metricTable } from './metric-table.ts'
import { histogramValues, ReadMetric, type Value } from './read-metric.ts'
import { createHistogramSeries, type HistogramSeries, type NumberSeries } from './series.ts'

type Table = typeof metricTable
type LabelOf<Key extends MetricKey> = Table[Key]['labels'][number]
type SeriesOf<Key extends MetricKey> = Table[Key]['type'] extends 'histogram' ? HistogramSeries : NumberSeries

/** The series of every metric of the table. */
export type Families = { readonly [Key in MetricKey]: Family<LabelOf<Key>, SeriesOf<Key>> }

type Row = Table[MetricKey]

const numberFamily = (row: Row, maxSeries: number, onOverflow: () => void) => {
  const create = (): NumberSeries => ({ value: 0 })
  const family = createFamily<string, NumberSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  const read = (): Value[] => [...family.entries()].map(([labels, { value }]) => ({ labels, value }))
  return { family, read }
}

type HistogramRow = Extract<Row, { type: 'histogram' }>

const histogramFamily = (row: HistogramRow, maxSeries: number, onOverflow: () => void) => {
  const create = () => createHistogramSeries(row.counted)
  const family = createFamily<string, HistogramSeries>({ labels: row.labels, maxSeries, create, onOverflow })
  const read = (): Value[] =>
    [...family.entries()].flatMap(([labels, series]) => histogramValues(row, labels, series))
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
        ? histogramFamily(row, caps.histograms, onOverflow(row.name))
        : numberFamily(row, caps.numbers, onOverflow(row.name))
    families[key] = family
    // A counter that has one series only shows 0 from the start, so that its first step is seen as one.
    if (row.type === 'counter' && row.labels.length === 0) family.series({})
    registry.registerMetric(new ReadMetric(row, read))
  }
  return { registry, families: families as Families }
}
