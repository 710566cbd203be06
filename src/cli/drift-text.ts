import type { DriftLine, ServiceDriftLines } from './cli-ports.ts'
import { printable } from './printable.ts'
import { textTable } from './text-table.ts'

const longest = 60

const valueText = (value: unknown): string => {
  if (value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text
}

const cells = (service: string, line: DriftLine): string[] => [
  line.kind,
  line.matters ? 'yes' : '-',
  service,
  line.method ?? '-',
  line.route,
  line.argument ?? '-',
  line.keyword ?? '-',
  valueText(line.ours),
  valueText(line.theirs),
]

const header = ['KIND', 'DRIFT', 'SERVICE', 'METHOD', 'ROUTE', 'ARGUMENT', 'KEYWORD', 'CONTRACT', 'UPSTREAM']

/** One line a difference, those that matter first; what could not be asked; and how many there are, if anything was compared. */
export const driftText = (reports: readonly ServiceDriftLines[]): string => {
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
