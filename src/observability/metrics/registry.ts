import { Registry } from 'prom-client'
import { cacheMetrics, coherenceMetrics, upstreamMetrics } from './cache-metrics.ts'
import { histogramValues, ReadMetric, type Value } from './read-metric.ts'
import {
  batchMetrics,
  discoveryMetrics,
  edgeMetrics,
  gatewayMetrics,
  lifecycleMetrics,
  requestMetrics,
} from './request-metrics.ts'
import { createHistogramSeries, type HistogramSeries, type NumberSeries } from './series.ts'

/** Every metric of the gateway, one row each, by area. The registry is built from it; docs/metrics.md and dashboards/ are tested against it. */
export const metricTable = {
  ...requestMetrics,
  ...cacheMetrics,
  ...upstreamMetrics,
  ...batchMetrics,
  ...discoveryMetrics,
  ...coherenceMetrics,
  ...edgeMetrics,
  ...lifecycleMetrics,
  ...gatewayMetrics,
} as const

/** A metric's key in the table. */
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
      const known = children.get(key)
      if (known !== undefined) return known.series
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

/** Most series of one metric beside the declared ones: of numbers (a line each), and of histograms (some fifteen lines each). */
type SeriesCaps = { readonly numbers: number; readonly histograms: number }

/** A registry of its own, with the series of every metric of the table. */
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
    const { family, read } =
      row.type === 'histogram'
        ? histogramFamily(row, caps.histograms, onOverflow(row.name))
        : numberFamily(row, caps.numbers, onOverflow(row.name))
    families[key] = family
    registry.registerMetric(new ReadMetric(row, read))
  }
  return { registry, families: families as Families }
}
