/** One time series of a counter or a gauge. Holding it makes an observation one addition. */
export type NumberSeries = { value: number }

/** An exemplar: one observation of a bucket with its trace. */
export type Exemplar = {
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

/** Counts one value and returns its bucket. NaN (a clock that failed) would spoil the sum for good, so it is left out: -1. */
export const observeValue = (series: HistogramSeries, value: number): number => {
  if (!Number.isFinite(value)) return -1
  const { bounds, counts } = series
  let bucket = 0
  // Most values are in the first buckets: a scan beats a binary search.
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
  counts[bucket] = (counts[bucket] as number) + 1
  series.sum += value
  return bucket
}

/** Counts one value, and keeps its trace as the exemplar. */
export const observeTraced = (
  series: HistogramSeries,
  value: number,
  { id, epochMs }: { readonly id: string; readonly epochMs: number },
): void => {
  const bucket = observeValue(series, value)
  if (bucket === -1) return
  series.exemplars ??= []
  series.exemplars[bucket] = { labelSet: { trace_id: id }, value, timestamp: epochMs / 1000 }
}

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
    const known = exemplars[bucket]
    if (exemplar !== undefined && (known === undefined || known.timestamp < exemplar.timestamp))
      exemplars[bucket] = exemplar
  })
}
