import type { Round } from './measure.ts'
import type { Peer } from './peer.ts'
import { scenarios } from './scenarios.ts'
import { median } from './statistics.ts'

export type Summary = {
  readonly peer: string
  readonly scenario: string
  readonly rounds: number
  /** Requests per second of processor time of the server's process tree. */
  readonly median: number
  /** Half the distance between the extremes, as a share of the median: the noise of this run. */
  readonly spread: number
  readonly ratio: number | undefined
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Medians over the rounds, and each peer's ratio to the yardstick of its scenario. */
export function summarise(rounds: readonly Round[], yardsticks: Readonly<Record<string, string>>): Summary[] {
  const groups = new Map<string, Round[]>()
  for (const round of rounds) {
    const name = `${round.scenario} ${round.peer}`
    groups.set(name, [...(groups.get(name) ?? []), round])
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    return [summary(first, group, groups.get(`${first.scenario} ${yardsticks[first.scenario]}`) ?? [])]
  })
}

const perProcessorSecond = (group: readonly Round[]): number[] =>
  group.map((round) => round.perProcessorSecond)

/** Round by round where both have all: what disturbed one has mostly disturbed the other. */
function ratioOf(values: readonly number[], floor: readonly number[]): number | undefined {
  if (floor.length === 0) return undefined
  if (floor.length !== values.length) return median(values) / median(floor)
  return median(values.map((value, i) => value / (floor[i] as number)))
}

function summary(first: Round, group: readonly Round[], floor: readonly Round[]): Summary {
  const values = perProcessorSecond(group)
  const middle = median(values)
  return {
    peer: first.peer,
    scenario: first.scenario,
    rounds: group.length,
    median: middle,
    spread: (Math.max(...values) - Math.min(...values)) / 2 / middle,
    ratio: ratioOf(values, perProcessorSecond(floor)),
    perSecond: median(group.map((round) => round.perSecond)),
    p50Ms: median(group.map((round) => round.p50Ms)),
    p99Ms: median(group.map((round) => round.p99Ms)),
  }
}

/** The table that `npm run bench` prints. */
export function table(summaries: readonly Summary[], peers: readonly Peer[]): string {
  const lines: string[] = []
  for (const scenario of scenarios.filter(({ name }) => summaries.some((one) => one.scenario === name))) {
    lines.push('', scenario.title)
    lines.push(row('', 'req/CPU s', 'spread', 'ratio', 'req/s', 'p50 ms', 'p99 ms'))
    for (const each of summaries.filter((one) => one.scenario === scenario.name)) {
      const title = peers.find((peer) => peer.name === each.peer)?.title ?? each.peer
      lines.push(
        row(
          title,
          each.median.toFixed(0),
          `±${(each.spread * 100).toFixed(1)} %`,
          each.ratio === undefined ? '-' : each.ratio.toFixed(2),
          each.perSecond.toFixed(0),
          each.p50Ms.toFixed(2),
          each.p99Ms.toFixed(2),
        ),
      )
    }
  }
  return lines.join('\n')
}

function row(title: string, ...cells: string[]): string {
  return `  ${title.padEnd(28)}${cells.map((cell) => cell.padStart(11)).join('')}`
}
