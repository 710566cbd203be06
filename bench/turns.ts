import type { Round } from './measure.ts'
import { median, quantile } from './statistics.ts'

/** One turn of each: ours, theirs. */
type Pair<Turn> = readonly [Turn, Turn]

/** Each of them goes first every other time. */
export async function inTurns<Contestant, Turn>(
  mine: Contestant,
  theirs: Contestant,
  pairs: number,
  turn: (contestant: Contestant) => Promise<Turn>,
): Promise<Pair<Turn>[]> {
  const done: Pair<Turn>[] = []
  while (done.length < pairs) {
    const early = done.length % 2 === 0 ? await turn(mine) : undefined
    const other = await turn(theirs)
    done.push([early ?? (await turn(mine)), other])
  }
  return done
}

type Cost = Pick<Round, 'perProcessorSecond'>

const microseconds = (rounds: readonly Cost[]): string =>
  `${(1e6 / median(rounds.map(({ perProcessorSecond }) => perProcessorSecond))).toFixed(1)} µs`

/** Processor time a request of both, and the ratio of the two with its quartiles. */
export function inWords(rounds: readonly Pair<Cost>[], other: string): string {
  const ratios = rounds.map(([mine, theirs]) => mine.perProcessorSecond / theirs.perProcessorSecond)
  const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
  const times = `${microseconds(rounds.map(([mine]) => mine))} here, ${microseconds(rounds.map(([, theirs]) => theirs))} ${other}`
  return `${times}: ${median(ratios).toFixed(2)} (quartiles ${low.toFixed(2)} and ${high.toFixed(2)} of ${rounds.length} pairs)`
}
