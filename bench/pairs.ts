import { resolve } from 'node:path'
import { freePort } from '../test/support/ports.ts'
import { pins } from './cores.ts'
import { chooseGenerator } from './generator.ts'
import { fill, launch, measure, probe, type Round, type RunningPeer, startPeer, warmUp } from './measure.ts'
import type { Peer, ReadyAnswer } from './peer.ts'
import { peers } from './peers/index.ts'
import { otherBuild, trellis } from './peers/trellis.ts'
import { readyAnswers } from './ready-answers.ts'
import { factsOf, type Scenario } from './scenarios.ts'
import { serveCommand } from './serve-command.ts'
import { median, quantile } from './statistics.ts'

/**
 * Two servers in turns of a second, so that what disturbs the machine disturbs both: what a change of some per cent needs.
 * `against`: the name of a peer, or the folder of another build (its main.js). Prints processor time a request of both, and how
 * many requests this build answers in the time in which the other one answers one.
 */
export async function benchPairs(against = 'http-proxy', named = 'pass', pairs = 14): Promise<void> {
  const [serverPin, loadPin] = pins()
  const generator = chooseGenerator(loadPin)
  const originPort = await freePort()
  const origin = await launch(loadPin(serveCommand('origin', originPort)), `http://127.0.0.1:${originPort}/`)
  const other: Peer = peers.find(({ name }) => name === against) ?? otherBuild(resolve(against, 'main.js'))
  const chosen = named.split(',').map((name) => factsOf(name as Scenario))
  const running: RunningPeer[] = []
  const answers: ReadyAnswer[] = []
  try {
    for (const peer of [trellis, other]) {
      const started = await startPeer(peer, { originPort, answers, pin: serverPin })
      running.push(started)
      for (const { name, fill: filled } of chosen) {
        if (filled !== undefined) await fill(started, name)
        const probed = await probe(started, name)
        if (peer === trellis) answers.push(...readyAnswers(name, probed))
      }
    }
    const [mine, theirs] = running as [RunningPeer, RunningPeer]
    for (const { name, title } of chosen) {
      for (const peer of running) await warmUp(peer, name, generator, { requests: 30_000, seconds: 10 })
      const rounds = await inTurns(mine, theirs, pairs, async (peer) => measure(peer, name, generator, 1))
      console.log(`${title}: ${inWords(rounds, other)}`)
    }
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), origin.stop(0)])
  }
}

type Pair = readonly [Round, Round]

/** Each of them goes first every other time. */
async function inTurns(
  mine: RunningPeer,
  theirs: RunningPeer,
  pairs: number,
  turn: (peer: RunningPeer) => Promise<Round>,
): Promise<Pair[]> {
  const rounds: Pair[] = []
  for (let done = 0; done < pairs; done += 1) {
    const early = done % 2 === 0 ? await turn(mine) : undefined
    const other = await turn(theirs)
    rounds.push([early ?? (await turn(mine)), other])
  }
  return rounds
}

const microseconds = (rounds: readonly Round[]): string =>
  `${(1e6 / median(rounds.map(({ perProcessorSecond }) => perProcessorSecond))).toFixed(1)} µs`

function inWords(rounds: readonly Pair[], other: Peer): string {
  const ratios = rounds.map(([mine, theirs]) => mine.perProcessorSecond / theirs.perProcessorSecond)
  const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
  const times = `${microseconds(rounds.map(([mine]) => mine))} here, ${microseconds(rounds.map(([, theirs]) => theirs))} ${other.title}`
  return `${times}: ${median(ratios).toFixed(2)} (quartiles ${low.toFixed(2)} and ${high.toFixed(2)} of ${rounds.length} pairs)`
}
