/** One time series of a counter or a gauge. Holding it makes an observation one addition. */
export type NumberSeries = { value: number }

/** One time series of a histogram: how many values fell into each bucket, not added up yet. */
export type HistogramSeries = {
  readonly bounds: readonly number[]
  /** One more than there are bounds: the last is beyond all of them. */
  readonly counts: Float64Array
  sum: number
}

export const createHistogramSeries = (bounds: readonly number[]): HistogramSeries => ({
  bounds,
  counts: new Float64Array(bounds.length + 1),
  sum: 0,
})

/** Counts one value. What is no number (a clock that failed) would spoil the sum for good, so it is left out. */
export const observeValue = (series: HistogramSeries, value: number): void => {
  if (!Number.isFinite(value)) return
  const { bounds, counts } = series
  let bucket = 0
  // Most values lie in the first buckets: a scan beats a search by halves.
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
  counts[bucket] = (counts[bucket] as number) + 1
  series.sum += value
}
