/** One time series of a counter or a gauge. Holding it makes an observation one addition. */
export type NumberSeries = { value: number }

/** An observation told apart from the others of its bucket: by the trace that it was part of. */
export type Exemplar = {
  readonly labelSet: { readonly trace_id: string }
  readonly value: number
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** One time series of a histogram: how many values fell into each bucket, not added up yet. */
export type HistogramSeries = {
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last is beyond all of them. */
  readonly counts: Float64Array
  sum: number
  /** The last of each bucket; undefined until there is one. */
  exemplars: (Exemplar | undefined)[] | undefined
}

export const createHistogramSeries = (bounds: readonly number[]): HistogramSeries => ({
  bounds,
  counts: new Float64Array(bounds.length + 1),
  sum: 0,
  exemplars: undefined,
})

/** Counts one value and says in which bucket. What is no number (a clock that failed) would spoil the sum for good, so it is left out: -1. */
export const observeValue = (series: HistogramSeries, value: number): number => {
  if (!Number.isFinite(value)) return -1
  const { bounds, counts } = series
  let bucket = 0
  // Most values lie in the first buckets: a scan beats a search by halves.
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
  counts[bucket] = (counts[bucket] as number) + 1
  series.sum += value
  return bucket
}

/** Counts one value, and remembers the trace that it was part of. */
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

/** Adds all that one series has counted to another of the same bounds. */
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
