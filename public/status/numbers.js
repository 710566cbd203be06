// Numbers made from two reports: pure functions, so that tests need no page.

/**
 * @typedef {{ le: number | null, count: number }} Bucket
 * @typedef {{ count: number } & Record<string, unknown>} Row
 */

/**
 * Steps of a counter per second. A counter that is smaller than before began anew with its process.
 * @param {number} now
 * @param {number} before
 * @param {number} seconds
 */
export const rate = (now, before, seconds) =>
  seconds > 0 ? Math.max(0, now >= before ? now - before : now) / seconds : 0

/**
 * Sum of the rows whose `name` is one of `values`.
 * @param {readonly Row[]} rows
 * @param {string} name
 * @param {readonly string[]} values
 */
export const countOf = (rows, name, values) =>
  rows.reduce((sum, row) => sum + (values.includes(String(row[name])) ? row.count : 0), 0)

/**
 * Where `share` of the observations between two reports lie below, in seconds, by linear interpolation within a bucket
 * as Prometheus does it; undefined without observations.
 * @param {readonly Bucket[]} now
 * @param {readonly Bucket[]} before
 * @param {number} share
 */
export const quantile = (now, before, share) => {
  const began = now.some(({ count }, at) => count < (before[at]?.count ?? 0))
  const counts = now.map(({ le, count }, at) => ({
    le,
    count: count - (began ? 0 : (before[at]?.count ?? 0)),
  }))
  const rank = share * (counts.at(-1)?.count ?? 0)
  if (rank === 0) return undefined
  const at = counts.findIndex(({ count }) => count >= rank)
  const bucket = counts[at]
  const below = counts[at - 1]
  // Above the last bound nothing is known but the bound.
  if (bucket === undefined || bucket.le === null) return below?.le ?? undefined
  const from = below?.le ?? 0
  const under = below?.count ?? 0
  return from + ((bucket.le - from) * (rank - under)) / (bucket.count - under || 1)
}

/**
 * The same as text. Below the first bound and above the last one only the bound is known.
 * @param {readonly Bucket[]} now
 * @param {readonly Bucket[]} before
 * @param {number} share
 */
export const quantileText = (now, before, share) => {
  const seconds = quantile(now, before, share)
  if (seconds === undefined) return '–'
  const bounds = now.flatMap(({ le }) => (le === null ? [] : [le]))
  const [first = 0] = bounds
  const last = bounds.at(-1) ?? 0
  return seconds >= last ? `> ${duration(last)}` : durationFrom(first, seconds)
}

/**
 * The first bound below which `share` of the observations lie: for few, wide buckets it says no more than is known. While there is none
 * between the reports, since the start.
 * @param {readonly Bucket[]} now
 * @param {readonly Bucket[]} before
 * @param {number} share
 * @returns {string}
 */
export const withinText = (now, before, share) => {
  const began = now.some(({ count }, at) => count < (before[at]?.count ?? 0))
  const counts = now.map(({ count }, at) => count - (began ? 0 : (before[at]?.count ?? 0)))
  const rank = share * (counts.at(-1) ?? 0)
  if (rank === 0) return before.length === 0 ? '–' : withinText(now, [], share)
  const bound = now[counts.findIndex((count) => count >= rank)]?.le
  return bound === null || bound === undefined ? `> ${duration(now.at(-2)?.le ?? 0)}` : duration(bound)
}

/**
 * What the last columns of the history amount to. Of the times, those that the share of the requests stays within, each taken for as
 * slow as that share of its column.
 * @param {{ seconds: number, requests: readonly (number | null)[], errors: readonly (number | null)[], hitRatio: readonly (number | null)[], p50: readonly (number | null)[], p99: readonly (number | null)[] }} history
 * @param {number} columns
 */
export const lately = ({ seconds, requests, errors, hitRatio, p50, p99 }, columns) => {
  const last = requests.slice(-columns)
  const sum = (/** @type {readonly (number | null)[]} */ values) =>
    values.reduce((/** @type {number} */ all, value) => all + (value ?? 0), 0)
  const ratios = hitRatio.slice(-columns)
  const within = (/** @type {readonly (number | null)[]} */ values, /** @type {number} */ share) => {
    const times = values
      .slice(-columns)
      .flatMap((time, at) => (time === null ? [] : [{ time, count: last[at] ?? 0 }]))
      .sort((a, b) => a.time - b.time)
    let left = share * sum(times.map(({ count }) => count))
    return times.find(({ count }) => {
      left -= count
      return left <= 0
    })?.time
  }
  return {
    asked: sum(last),
    hits: Math.round(sum(last.map((count, at) => (count ?? 0) * (ratios[at] ?? 0)))),
    failed: sum(errors.slice(-columns)),
    seconds: Math.max(1, last.filter((count) => count !== null).length) * seconds,
    p50: within(p50, 0.5),
    p99: within(p99, 0.99),
  }
}

/** Few requests are counted by the minute: `0 /s` would say that there are none. @param {number} perSecond */
export const rateText = (perSecond) =>
  perSecond === 0 || perSecond >= 0.1 ? `${decimals(perSecond)} /s` : `${decimals(perSecond * 60)} /min`

/** @param {number} value */
export const decimals = (value) => value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 })

/**
 * A number and what it counts; the plural is made with an s.
 * @param {number} value
 * @param {string} one
 */
export const counted = (value, one) => `${decimals(value)} ${value === 1 ? one : `${one}s`}`

/** @param {number | undefined} seconds */
export const duration = (seconds) => {
  if (seconds === undefined) return '–'
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`
  return seconds < 1 ? `${decimals(seconds * 1000)} ms` : `${decimals(seconds)} s`
}

/** Times below `finest` are not told apart. @param {number} finest @param {number | undefined} seconds */
export const durationFrom = (finest, seconds) =>
  seconds !== undefined && seconds < finest ? `< ${duration(finest)}` : duration(seconds)

/** @param {number} bytes */
export const size = (bytes) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  return `${decimals(bytes / 1024 ** power)} ${units[power]}`
}

/** @param {number} part @param {number} whole */
export const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '–')

/** @param {number} seconds */
export const age = (seconds) => {
  if (seconds < 120) return `${Math.floor(seconds)} s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`
}
