import type { Explanation } from '../build/explain.ts'
import type { ServiceDrift } from '../build/upstream-findings.ts'
import type { Difference } from '../site/drift.ts'

/** Replaces control characters, which could drive a terminal: parts of the output come from URLs and upstreams. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
  text.replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '?')

/** Formats rows of cells in aligned columns; the last column is not padded. */
export const textTable = (lines: readonly (readonly string[])[]): string => {
  const widths: number[] = []
  for (const line of lines) {
    line.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  const text = lines.map((line) =>
    line
      .map((cell, column) => (column === line.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
  return text.map((line) => `${line}\n`).join('')
}

const longestCell = 60

const cellText = (value: unknown): string => {
  if (value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > longestCell ? `${text.slice(0, longestCell - 1)}…` : text
}

const cells = (service: string, line: Difference): string[] => [
  line.kind,
  line.matters ? 'yes' : '-',
  service,
  line.method ?? '-',
  line.route,
  line.argument ?? '-',
  line.keyword ?? '-',
  cellText(line.ours),
  cellText(line.theirs),
]

const header = ['KIND', 'DRIFT', 'SERVICE', 'METHOD', 'ROUTE', 'ARGUMENT', 'KEYWORD', 'CONTRACT', 'UPSTREAM']

/** One line a difference, those that matter first; what could not be asked; and how many there are, if anything was compared. */
export const driftText = (reports: readonly ServiceDrift[]): string => {
  const differences = reports.flatMap(({ service, outcome }) =>
    outcome.kind === 'compared' ? outcome.differences.map((line) => ({ service, line })) : [],
  )
  const drift = differences.filter(({ line }) => line.matters)
  const others = differences.filter(({ line }) => !line.matters)
  const lines = [...drift, ...others].map(({ service, line }) => cells(service, line))
  const unread = reports.flatMap(({ service, outcome }) =>
    outcome.kind === 'unread'
      ? [`${service}: the index of its upstream could not be read: ${outcome.reason}\n`]
      : [],
  )
  const table = lines.length === 0 ? '' : textTable([header, ...lines])
  const isCompared = reports.some(({ outcome }) => outcome.kind === 'compared')
  const count = isCompared
    ? `${lines.length} ${lines.length === 1 ? 'difference' : 'differences'}, ${drift.length} of drift\n`
    : ''
  return printable(`${table}${unread.join('')}${count}`)
}

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(1))} s`

/** Continues "closing": without it, a drain of an idle gateway looks like a program that hangs. */
export const closingNotice = (delayMs: number, timeoutMs: number): string => {
  const delay =
    delayMs === 0 ? '' : `requests are served for another ${seconds(delayMs)} (drain.delay), then `
  return `: ${delay}those in flight have ${seconds(timeoutMs)} (drain.timeout); a second signal ends it at once`
}

/** JSON for scripts, indented so that people can read it, too. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const valueText = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(valueText).join(', ')
  return value === undefined || value === null ? '-' : JSON.stringify(value)
}

/** The words of a key: `cacheKey` is `cache key`. */
const wordsOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** One line for each aspect. */
export const explanationText = (explanation: Explanation): string =>
  printable(
    textTable(Object.entries(explanation).map(([aspect, value]) => [wordsOf(aspect), valueText(value)])),
  )
