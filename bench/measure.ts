import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { freePort } from '../test/support/ports.ts'
import { programPid, type RunningProcess, startProcess, untilReady } from '../test/support/processes.ts'
import { type Pin, pins } from './cores.ts'
import { chooseGenerator, type Generator } from './generator.ts'
import type { Peer, PeerContext, Probe } from './peer.ts'
import { processorSeconds } from './processor-time.ts'
import { factsOf, type Scenario, type ScenarioFacts } from './scenarios.ts'
import { serveCommand } from './serve-command.ts'

/** One round of one peer in one scenario. */
export type Round = {
  readonly peer: string
  readonly scenario: Scenario
  readonly requests: number
  readonly perProcessorSecond: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A peer that is up, ready to be measured in any of its scenarios. */
export type RunningPeer = {
  readonly peer: Peer
  readonly origin: string
  readonly pid: number
  /** Reads the processor time of its whole process tree. */
  processorSeconds(): number
  stop(): Promise<void>
}

/** What peers are measured with. The origin shares the generator's core: what it costs is not the server's. */
export async function startWorld() {
  const [serverPin, loadPin] = pins()
  const generator = chooseGenerator(loadPin)
  const originPort = await freePort()
  const origin = await launch(loadPin(serveCommand('origin', originPort)), `http://127.0.0.1:${originPort}/`)
  return { serverPin, loadPin, generator, originPort, origin }
}

/** Starts a peer on the server's core and waits until it answers. */
export async function startPeer(
  peer: Peer,
  context: Pick<PeerContext, 'originPort' | 'answers' | 'settings' | 'over'> & { readonly pin: Pin },
): Promise<RunningPeer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'trellis-bench-'))
  const command = await peer.command({ ...context, port, folder })
  const origin = `${context.over === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  const program = await launch(context.pin(command), `${origin}/`, context.over)
  return {
    peer,
    origin,
    pid: await programPid(program),
    processorSeconds: () => processorSeconds(program.pid),
    stop: async () => {
      await program.stop(4000)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Starts a server and waits until it answers anything at all. */
async function launch(
  command: readonly string[],
  url: string,
  over: ScenarioFacts['over'] = undefined,
): Promise<RunningProcess> {
  const [program = '', ...args] = command
  const running = startProcess(program, args)
  await untilReady(running, async () => (await request(url, { dispatcher: clientOver(over) })).body.dump())
  return running
}

const connect = { rejectUnauthorized: false }
const http1 = new Agent({ connect })
const http2 = new Agent({ connect, allowH2: true })
const clientOver = (over: ScenarioFacts['over']): Agent => (over === 'h2' ? http2 : http1)

/** Asks once and reads the answer as it was sent. */
async function ask(
  { peer, origin }: RunningPeer,
  scenario: Scenario,
  suffix: string,
  headerLines: readonly string[],
): Promise<Probe> {
  const headers = Object.fromEntries(headerLines.map((line) => line.split(/: (.*)/s, 2)))
  const url = `${origin}${peer.targets[scenario]}${suffix}`
  const response = await request(url, { headers, dispatcher: clientOver(factsOf(scenario).over) })
  const content = Buffer.from(await response.body.arrayBuffer())
  const flat = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
  return { status: response.statusCode, headers: Object.fromEntries(flat), content }
}

/** Additional headers of a client: to revalidate, the tag from a response of the same peer (peers change tags). */
async function headersOf(running: RunningPeer, scenario: Scenario): Promise<readonly string[]> {
  const { headers = [], revalidates } = factsOf(scenario)
  if (revalidates === undefined) return headers
  const { etag } = (await ask(running, scenario, '', headers)).headers
  return [...headers, `If-None-Match: ${etag}`]
}

/** Asks (the first responses may fill a cache, or make a coded form) until one comes as the scenario says, and returns it. */
export async function probe(running: RunningPeer, scenario: Scenario): Promise<Probe> {
  const { expects, script, name, revalidates } = factsOf(scenario)
  let wrong: string | undefined
  for (let tries = 0; tries < 20; tries += 1) {
    const isNew = expects === 'forwarded' && script === 'distinct.lua'
    const isNumbered = script !== undefined && script !== 'upload.lua' && script !== 'write.lua'
    const suffix = isNumbered ? String(isNew ? tries + 1 : 1) : ''
    const response = await ask(running, scenario, suffix, await headersOf(running, scenario))
    wrong = running.peer.check(scenario, response)
    if (revalidates !== undefined && response.status !== 304) wrong = `status ${response.status}`
    const isCoded = name !== 'hit-192k-gzip' || response.headers['content-encoding'] === 'gzip'
    if (wrong === undefined && isCoded) return response
    wrong ??= 'not gzipped'
    await sleep(50)
  }
  throw new Error(`${running.peer.title}, ${scenario}: ${wrong}`)
}

/** Has a working set stored, so that what is measured are hits. */
export async function fill(running: RunningPeer, scenario: Scenario): Promise<void> {
  const { fill: count = 0 } = factsOf(scenario)
  let next = 1
  const one = async (): Promise<void> => {
    while (next <= count) {
      next += 1
      await ask(running, scenario, String(next - 1), [])
    }
  }
  await Promise.all(Array.from({ length: 32 }, one))
}

/** V8 compiles an upload's code until about the fifty-thousandth. */
export const longWarmUp = { requests: 60_000, seconds: 20 }

/**
 * Lets a peer compile its code and grow its memory: some requests more than V8 waits for, or so long. Counted and not timed,
 * since a busy machine serves few in a second.
 */
export async function warmUp(
  running: RunningPeer,
  scenario: Scenario,
  generator: Generator,
  limits: { readonly requests: number; readonly seconds: number },
): Promise<void> {
  let responded = 0
  for (let second = 0; second < limits.seconds && responded < limits.requests; second += 1) {
    responded += (await measure(running, scenario, generator, 1)).requests
  }
}

/** Targets that are new in every round. */
let newTargets = 1_000

async function purging(peer: Peer, scenario: Scenario, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await peer.purge?.(scenario)
    await sleep(20)
  }
}

export async function measure(
  running: RunningPeer,
  scenario: Scenario,
  generator: Generator,
  seconds: number,
): Promise<Round> {
  const { peer, origin } = running
  const { expects, script, scriptArguments = [], purges, over } = factsOf(scenario)
  const headers = await headersOf(running, scenario)
  newTargets += 10_000_000
  const program =
    script === undefined ? undefined : { name: script, args: [String(newTargets), ...scriptArguments] }
  const storm = new AbortController()
  const stormed = purges === true ? purging(peer, scenario, storm.signal) : undefined
  const before = running.processorSeconds()
  const url = `${origin}${peer.targets[scenario]}`
  const load = await generator.run({ url, seconds, headers, script: program, over })
  const used = running.processorSeconds() - before
  storm.abort()
  await stormed
  const wrong = expects === 'refused' ? load.requests - load.failures : load.failures
  // A machine that starves the gateway makes it shed a few; more would be another thing than what is to be measured.
  if (load.requests === 0 || wrong > load.requests / 100) {
    throw new Error(`${peer.title}, ${scenario}: ${wrong} of ${load.requests} answers were wrong`)
  }
  return {
    peer: peer.name,
    scenario,
    requests: load.requests,
    perProcessorSecond: load.requests / used,
    perSecond: load.requests / load.seconds,
    p50Ms: load.p50Ms,
    p99Ms: load.p99Ms,
  }
}
