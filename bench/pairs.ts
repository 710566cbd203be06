import { resolve } from 'node:path'
import type { Pin } from './cores.ts'
import type { Generator } from './generator.ts'
import {
  fill,
  longWarmUp,
  measure,
  probe,
  type Round,
  type RunningPeer,
  startPeer,
  startWorld,
  warmUp,
} from './measure.ts'
import type { Peer, ReadyResponse } from './peer.ts'
import { peers } from './peers/index.ts'
import { otherBuild, plain, trellis } from './peers/trellis.ts'
import { readyResponses } from './ready-answers.ts'
import { factsOf, type Scenario, type ScenarioFacts } from './scenarios.ts'
import { inTurns, inWords } from './turns.ts'

/**
 * Two servers in turns of a second, so that what disturbs the machine disturbs both: what a change of some per cent needs.
 * `against`: the name of a peer, or the folder of another build (its main.js). Prints processor time a request of both, and how
 * many requests this build answers in the time in which the other one responses one.
 */
export async function benchPairs(against = 'http-proxy', named = 'pass', pairs = 14): Promise<void> {
  await withBoth(against, named, async ({ mine, theirs, chosen, generator }) => {
    for (const { name, title } of chosen) {
      const rounds = await turnsOf(name, pairs, { mine, theirs, generator })
      console.log(`${title}: ${inWords(rounds, theirs.peer.title)}`)
    }
  })
}

const turnsOf = async (
  name: Scenario,
  pairs: number,
  { mine, theirs, generator }: Pick<Both, 'mine' | 'theirs' | 'generator'>,
): ReturnType<typeof inTurns<RunningPeer, Round>> => {
  for (const peer of [mine, theirs]) await warmUp(peer, name, generator, longWarmUp)
  return inTurns(mine, theirs, pairs, (peer) => measure(peer, name, generator, 1))
}

/** The turns of one scenario. */
export async function pairedRounds(
  against: string,
  name: Scenario,
  pairs: number,
): ReturnType<typeof turnsOf> {
  let rounds: Awaited<ReturnType<typeof turnsOf>> = []
  await withBoth(against, name, async (both) => {
    rounds = await turnsOf(name, pairs, both)
  })
  return rounds
}

export type Both = {
  readonly mine: RunningPeer
  readonly theirs: RunningPeer
  readonly chosen: readonly ScenarioFacts[]
  readonly generator: Generator
  readonly loadPin: Pin
}

const settingsFor = (
  peer: Peer,
  [first]: readonly ScenarioFacts[],
): NonNullable<ScenarioFacts['settings']> => (peer === trellis ? (first?.settings ?? []) : [])

const wholeOf = (over: ScenarioFacts['over']): Scenario => (over === 'h2' ? 'hit-h2' : 'hit')

/** Starts this build and another server, probes and fills both for each of the scenarios, and stops them when the work is done. */
export async function withBoth(
  against: string,
  named: string,
  work: (both: Both) => Promise<void>,
): Promise<void> {
  const other = chooseOther(against)
  const { generator, loadPin, originPort, serverPin, origin } = await startWorld()
  const running: RunningPeer[] = []
  const responses: ReadyResponse[] = []
  try {
    const chosen = chooseScenarios(named, other, generator.runsScripts)
    for (const peer of [trellis, other]) {
      const settings = settingsFor(peer, chosen)
      const over = chosen[0]?.over
      const started = await startPeer(peer, {
        originPort,
        answers: responses,
        pin: serverPin,
        settings,
        over,
      })
      running.push(started)
      for (const { name, fill: filled, revalidates } of chosen) {
        if (filled !== undefined) await fill(started, name)
        const probed = await probe(started, name)
        if (peer !== trellis) continue
        responses.push(...readyResponses(name, probed))
        // Bare node:http makes its 304 of the whole response.
        const whole = revalidates && wholeOf(over)
        if (whole !== undefined) responses.push(...readyResponses(whole, await probe(started, whole)))
      }
    }
    const [mine, theirs] = running as [RunningPeer, RunningPeer]
    await work({ mine, theirs, chosen, generator, loadPin })
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), origin.stop(0)])
  }
}

/** The peer of that name, or the build in that folder; throws where there is neither, or where it cannot be started here. */
export function chooseOther(against: string): Peer {
  const named = [...peers, plain].find(({ name }) => name === against)
  const other = named ?? otherBuild(resolve(against, 'main.js'))
  const missing = other.missing()
  if (missing === undefined) return other
  if (named !== undefined) throw new RangeError(`${named.title}: ${missing}`)
  const names = peers.map(({ name }) => name).join(', ')
  throw new RangeError(`${against} is neither a folder with a main.js nor one of ${names}`)
}

/** The scenarios of a list; throws for one that there is not, or that cannot be measured with this peer or generator. */
export function chooseScenarios(named: string, other: Peer, runsScripts: boolean): readonly ScenarioFacts[] {
  return named.split(',').map((name) => {
    const facts = factsOf(name as Scenario)
    if (other.targets[facts.name] === undefined)
      throw new RangeError(`${other.title} takes no part in ${name}`)
    if (facts.script !== undefined && !runsScripts) throw new RangeError(`${name} needs wrk`)
    return facts
  })
}
