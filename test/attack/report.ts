import type { Readings } from './attack-row.ts'
import type { Outcome } from './run-row.ts'

const ms = (value: number): string => (Number.isNaN(value) ? '-' : String(Math.round(value)))

const failuresOf = ({ failures }: Readings): number =>
  Object.values(failures).reduce((one, other) => one + other, 0)

const heads = [
  'attack',
  'requests',
  'failed',
  'miss p99 idle > attack (ms)',
  'worst miss (ms)',
  'hit p99 idle > attack (ms)',
  'upstream alone (ms)',
  'RSS before > peak (MiB)',
  'cache (MiB)',
  'longest turn (ms)',
  'verdict',
]

const cellsOf = ({
  name,
  verdict,
  idle,
  meanwhile,
  memory,
  turnMs = 0,
  tries,
}: Outcome): readonly string[] => {
  if (idle === undefined || meanwhile === undefined || memory === undefined) {
    return [name, '', '', '', '', '', '', '', '', '', verdict]
  }
  return [
    name,
    String(meanwhile.requests),
    String(failuresOf(meanwhile)),
    `${ms(idle.missP99)} > ${ms(meanwhile.missP99)}`,
    `${ms(idle.missMax)} > ${ms(meanwhile.missMax)}`,
    `${ms(idle.hitP99)} > ${ms(meanwhile.hitP99)}`,
    `${ms(idle.directP99)} > ${ms(meanwhile.directP99)}`,
    `${ms(memory.beforeMiB)} > ${ms(memory.peakMiB)}`,
    ms(memory.cacheMiB),
    turnMs === 0 ? '< 20' : ms(turnMs),
    tries > 1 ? `${verdict} (try ${tries})` : verdict,
  ]
}

const width = (at: number): number => [28, 8, 6, 27, 15, 26, 19, 23, 11, 17, 0][at] ?? 0

const line = (cells: readonly string[]): string =>
  cells
    .map((cell, at) => cell.padEnd(width(at)))
    .join(' | ')
    .trimEnd()

export const headLine = (): string => line(heads)

/** One line, and below it the reasons. */
export const outcomeText = (outcome: Outcome): string =>
  [line(cellsOf(outcome)), ...outcome.reasons.map((reason) => `    ${reason}`)].join('\n')
