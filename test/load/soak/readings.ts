/** All samples of a scrape: name with labels, and value. */
export const scrape = async (adminOrigin: string): Promise<ReadonlyMap<string, number>> => {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text()
  const samples = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(
      (line) =>
        [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))] as const,
    )
  return new Map(samples)
}

/** Sum of all series of a metric whose labels contain all the texts. */
export const sumOf = (
  samples: ReadonlyMap<string, number>,
  name: string,
  ...texts: readonly string[]
): number =>
  [...samples]
    .filter(([series]) => series.split('{', 1)[0] === name && texts.every((text) => series.includes(text)))
    .reduce((sum, [, value]) => sum + value, 0)

/** One look at the process. */
export type Reading = {
  readonly seconds: number
  readonly heap: number
  /** Buffers: what V8 does not count as its own heap. */
  readonly external: number
  readonly resident: number
  /** What V8 has taken for its heap, used or not. */
  readonly committed: number
  readonly files: number
  /** Requests that have been counted. */
  readonly requests: number
}

export const readingOf = (samples: ReadonlyMap<string, number>, seconds: number): Reading => ({
  seconds,
  heap: sumOf(samples, 'nodejs_heap_size_used_bytes'),
  external: sumOf(samples, 'nodejs_external_memory_bytes'),
  resident: sumOf(samples, 'process_resident_memory_bytes'),
  committed: sumOf(samples, 'nodejs_heap_size_total_bytes'),
  files: sumOf(samples, 'process_open_fds'),
  requests: sumOf(samples, 'trellis_requests_total'),
})

/** Least value in each of `count` windows of equal length: memory after garbage collection. */
export const floors = (
  readings: readonly Reading[],
  of: (reading: Reading) => number,
  count: number,
): number[] => {
  const size = Math.ceil(readings.length / count)
  return Array.from({ length: Math.ceil(readings.length / size) }, (_, i) =>
    Math.min(...readings.slice(i * size, (i + 1) * size).map(of)),
  )
}

/** Bytes that each request leaves behind, by least squares over all readings. */
export const bytesPerRequest = (readings: readonly Reading[], of: (reading: Reading) => number): number => {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const requests = mean(readings.map((reading) => reading.requests))
  const bytes = mean(readings.map(of))
  const shares = readings.map((reading) => [reading.requests - requests, of(reading) - bytes] as const)
  return (
    shares.reduce((sum, [x, y]) => sum + x * y, 0) /
    Math.max(
      1,
      shares.reduce((sum, [x]) => sum + x * x, 0),
    )
  )
}

/** By how much the least value of the second half is above that of the first: what stays for good, whenever garbage was collected. */
export const growth = (values: readonly number[]): number => {
  const half = Math.floor(values.length / 2)
  return Math.min(...values.slice(half)) - Math.min(...values.slice(0, half))
}
