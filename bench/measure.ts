import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../test/support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../test/support/processes.ts'
import type { Generator } from './generator.ts'
import type { Peer, ReadyAnswer, Scenario } from './peer.ts'
import { processorSeconds } from './processor-time.ts'

/** One round of one peer in one scenario. */
export type Round = {
  readonly peer: string
  readonly scenario: Scenario
  readonly perProcessorSecond: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A peer that is up, ready to be measured in any of its scenarios. */
export type RunningPeer = {
  readonly peer: Peer
  url(scenario: Scenario): string
  /** Reads the processor time of its whole process tree. */
  processorSeconds(): number
  stop(): Promise<void>
}

type Pin = (command: readonly string[]) => readonly string[]

/** Starts a peer on the server's core and waits until it answers. */
export async function startPeer(
  peer: Peer,
  context: { originPort: number; answer: ReadyAnswer | undefined; pin: Pin },
): Promise<RunningPeer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'trellis-bench-'))
  const command = await peer.command({ ...context, port, folder })
  const program = await launch(context.pin(command), `http://127.0.0.1:${port}/`)
  return {
    peer,
    url: (scenario) => `http://127.0.0.1:${port}${peer.target(scenario)}`,
    processorSeconds: () => processorSeconds(program.pid),
    stop: async () => {
      await program.stop(2000)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a server and waits until it answers anything at all. */
export async function launch(command: readonly string[], url: string): Promise<RunningProcess> {
  const [program = '', ...args] = command
  const running = startProcess(program, args)
  await untilReady(running, async () => (await fetch(url)).arrayBuffer())
  return running
}

/** Asks twice (the first answer may fill a cache) and returns the second, when it came the way the scenario says. */
export async function probe(running: RunningPeer, scenario: Scenario): Promise<Response> {
  await (await fetch(running.url(scenario))).arrayBuffer()
  const answer = await fetch(running.url(scenario))
  const wrong = answer.status === 200 ? running.peer.check(scenario, answer) : `status ${answer.status}`
  if (wrong !== undefined) throw new Error(`${running.peer.title}, ${scenario}: ${wrong}`)
  return answer
}

export async function measure(
  running: RunningPeer,
  scenario: Scenario,
  generator: Generator,
  seconds: number,
): Promise<Round> {
  const before = running.processorSeconds()
  const load = await generator.run(running.url(scenario), seconds)
  const used = running.processorSeconds() - before
  if (load.failures > 0)
    throw new Error(`${running.peer.title}, ${scenario}: ${load.failures} requests failed`)
  return {
    peer: running.peer.name,
    scenario,
    perProcessorSecond: load.requests / used,
    perSecond: load.requests / load.seconds,
    p50Ms: load.p50Ms,
    p99Ms: load.p99Ms,
  }
}
