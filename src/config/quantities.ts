const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const sizeUnits = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 } as const

/** A duration as the file spells it: whole number and unit, e.g. `250ms`, `10s`, `5m`, `1h`, `30d`. */
export const durationPattern = /^(\d{1,9})(ms|s|m|h|d)$/

/** A size as the file spells it: whole number and binary unit, e.g. `512B`, `64KiB`, `256MiB`, `1GiB`. */
export const sizePattern = /^(\d{1,9})(B|KiB|MiB|GiB)$/

/** Milliseconds of a duration text; undefined for any other text. */
export const parseDuration = (text: string): number | undefined => {
  const [, digits, unit] = durationPattern.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * durationUnits[unit as keyof typeof durationUnits]
}

/** Of a rate such as `1/s`, `10/m` or `5/h`; undefined for any other text. */
export const ratePerSecond = (text: string): number | undefined => {
  const [, count, unit] = /^(\d{1,5})\/([smh])$/.exec(text) ?? []
  return count === undefined ? undefined : (Number(count) * 1_000) / durationUnits[unit as 's' | 'm' | 'h']
}

/** Bytes of a size text; undefined for any other text. */
export const parseSize = (text: string): number | undefined => {
  const [, digits, unit] = sizePattern.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * sizeUnits[unit as keyof typeof sizeUnits]
}

const otherUnits: Readonly<Record<string, keyof typeof durationUnits>> = {
  msec: 'ms',
  sec: 's',
  second: 's',
  min: 'm',
  minute: 'm',
  hr: 'h',
  hour: 'h',
  day: 'd',
}

const durationParts = /^(?:\d{1,9}(?:\.\d{1,3})?[ ]?[a-z]{1,7}[ ]?){1,4}$/i

/** The duration that another spelling means, such as `1m30s`, `1.5s` or `10 sec`; undefined for any other text. */
export const nearDuration = (text: string): string | undefined => {
  if (!durationParts.test(text)) return undefined
  let ms = 0
  for (const [, number, word = ''] of text.matchAll(/(\d+(?:\.\d+)?)[ ]?([a-z]+)/gi)) {
    const name = word.toLowerCase()
    const unit = name in durationUnits ? name : otherUnits[name.replace(/s$/, '')]
    if (unit === undefined) return undefined
    ms += Number(number) * durationUnits[unit as keyof typeof durationUnits]
  }
  const [unit, size] = Object.entries(durationUnits).findLast(([, factor]) => ms % factor === 0) ?? []
  return unit === undefined || size === undefined ? undefined : `${ms / size}${unit}`
}

/** The size that another spelling means, such as `256MB`, `1.5GiB` or `64 kib`; undefined for any other text. */
export const nearSize = (text: string): string | undefined => {
  const [, number, letter] = /^(\d{1,9}(?:\.\d{1,3})?) ?([kmg])i?b?$/i.exec(text) ?? []
  if (number === undefined || letter === undefined) return undefined
  const bytes = Number(number) * sizeUnits[`${letter.toUpperCase()}iB` as keyof typeof sizeUnits]
  const [unit, size] =
    Object.entries(sizeUnits).findLast(([, factor]) => bytes % factor === 0 && bytes >= factor) ?? []
  return unit === undefined || size === undefined ? undefined : `${bytes / size}${unit}`
}

/** Final statuses (RFC 9110 §15) from the first to the last, both included. */
export type StatusRange = readonly [first: number, last: number]

const statusRange = /^([2-5]\d\d)(?:-([2-5]\d\d))?$/
const maxStatusRanges = 32

/** Status ranges as the file spells them: `200-399`, `200,204`, `200-299,401`; undefined for any other text. */
export const parseStatusRanges = (text: string): readonly StatusRange[] | undefined => {
  const parts = text.split(',', maxStatusRanges + 1)
  if (parts.length > maxStatusRanges) return undefined
  const ranges: StatusRange[] = []
  for (const part of parts) {
    const [, first, last = first] = statusRange.exec(part.trim()) ?? []
    if (first === undefined || Number(first) > Number(last)) return undefined
    ranges.push([Number(first), Number(last)])
  }
  return ranges
}

const inLargestUnit = (value: number, units: Readonly<Record<string, number>>): string => {
  let text = `${value}${Object.keys(units)[0]}`
  for (const [unit, factor] of Object.entries(units))
    if (value % factor === 0 && value >= factor) text = `${value / factor}${unit}`
  return text
}

/** Milliseconds as the file spells them, in the largest unit that gives a whole number. */
export const durationText = (ms: number): string => (ms === 0 ? '0s' : inLargestUnit(ms, durationUnits))

/** Bytes as the file spells them, in the largest unit that gives a whole number. */
export const sizeText = (bytes: number): string => inLargestUnit(bytes, sizeUnits)

export const statusRangesText = (ranges: readonly StatusRange[]): string =>
  ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
