import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/support/ports.ts'
import { type Pin, pins } from './cores.ts'
import { chooseGenerator, type Generator } from './generator.ts'
import { fill, launch, measure, probe, type Round, type RunningPeer, startPeer, warmUp } from './measure.ts'
import type { Peer, ReadyAnswer } from './peer.ts'
import { peers } from './peers/index.ts'
import { fileTargets } from './peers/targets.ts'
import { trellis } from './peers/trellis.ts'
import { writePerformanceDoc } from './performance-doc.ts'
import { profileScenario } from './profile.ts'
import { readyAnswers } from './ready-answers.ts'
import { summarise, table } from './report.ts'
import { scenarios } from './scenarios.ts'
import { serveCommand } from './serve-command.ts'

const setting = (name: string): string | undefined => process.env[`BENCH_${name}`]
const rounds = Number(setting('ROUNDS') ?? 7)
const seconds = Number(setting('SECONDS') ?? 4)
const chosenPeers = setting('PEERS')?.split(',')
const chosenScenarios = setting('SCENARIOS')?.split(',')
const warm = { requests: Number(setting('WARM_UP') ?? 30_000), seconds: 20 }

type World = { readonly originPort: number; readonly serverPin: Pin; readonly generator: Generator }

/** Every peer beside every other, in one run. Prints a table, keeps the figures, and with `page` writes docs/evidence/PAGE.md. */
export async function benchServers(options: { readonly page?: string }): Promise<void> {
  const [loadBefore = 0] = loadavg()
  const [serverPin, loadPin] = pins()
  const generator = chooseGenerator(loadPin)
  const originPort = await freePort()
  // The origin shares the generator's core: what it costs is not the server's.
  const origin = await launch(loadPin(serveCommand('origin', originPort)), `http://127.0.0.1:${originPort}/`)
  const world = { originPort, serverPin, generator }
  const running: RunningPeer[] = []
  const leftOut: string[] = []
  try {
    await startAll(world, running, leftOut)
    console.log(describeRun(generator.name, loadBefore))
    const results = await measureAll(running, generator)
    const summaries = summarise(results, yardsticks())
    console.log(table(summaries, peers))
    const run = {
      at: new Date().toISOString(),
      node: process.version,
      processor: cpus()[0]?.model.trim() ?? 'unknown',
      cores: cpus().length,
      loadBefore,
      loadAfter: loadavg()[0] ?? 0,
      generator: generator.name,
      rounds,
      seconds,
      warmUpRequests: warm.requests,
      leftOut,
      summaries,
    }
    await save({ ...run, results })
    const { page } = options
    if (page !== undefined) {
      const { owners } = await profileScenario(world, 'hit', warm)
      await writePerformanceDoc(run, peers, owners, page)
    }
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), origin.stop(0)])
  }
}

async function startAll(world: World, running: RunningPeer[], leftOut: string[]): Promise<void> {
  const answers: ReadyAnswer[] = []
  for (const peer of peers.filter((one) => chosenPeers?.includes(one.name) ?? true)) {
    const missing = peer.missing()
    if (missing !== undefined) {
      leftOut.push(`${peer.title} (${missing})`)
      console.log(`${peer.title} is left out, it needs: ${missing}`)
      continue
    }
    const started = await startPeer(peer, { ...world, answers, pin: world.serverPin })
    running.push(started)
    for (const { name, fill: filled } of partOf(peer, world.generator)) {
      if (filled !== undefined) await fill(started, name)
      const probed = await probe(started, name)
      if (peer === trellis) answers.push(...readyAnswers(name, probed))
    }
    // Bare node:http serves one content for a whole working set.
    if (peer === trellis)
      answers.sort((a, b) => Number(b.target === fileTargets.hit) - Number(a.target === fileTargets.hit))
  }
}

function partOf(peer: Peer, generator: Generator) {
  return scenarios.filter(
    ({ name, script }) =>
      peer.targets[name] !== undefined &&
      (chosenScenarios?.includes(name) ?? true) &&
      (script === undefined || generator.runsScripts),
  )
}

/**
 * One scenario after the other, since a process that was asked something else the moment before is another one for a second
 * (docs/decisions/0015); in it round by round, so that what disturbs the machine for a while disturbs all peers.
 */
async function measureAll(running: readonly RunningPeer[], generator: Generator): Promise<Round[]> {
  const results: Round[] = []
  for (const { name, title } of scenarios) {
    const takePart = running.filter(({ peer }) => partOf(peer, generator).some((one) => one.name === name))
    for (const peer of takePart) await warmUp(peer, name, generator, warm)
    for (let done = 0; done < rounds; done += 1) {
      for (const peer of takePart) results.push(await measure(peer, name, generator, seconds))
    }
    if (takePart.length > 0) console.log(`measured: ${title}`)
  }
  return results
}

const yardsticks = (): Record<string, string> =>
  Object.fromEntries(scenarios.map(({ name, yardstick }) => [name, yardstick]))

function describeRun(generator: string, load: number): string {
  const machine = `Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown processor'}`
  const plan = `${generator}, 32 connections, ${rounds} rounds of ${seconds} s, peers interleaved`
  const busy =
    load > 0.5
      ? [`load average ${load.toFixed(1)} before the start: other programs disturb these numbers`]
      : []
  return [machine, plan, ...busy].join('\n')
}

async function save(result: object): Promise<void> {
  const folder = fileURLToPath(new URL('./results/', import.meta.url))
  await mkdir(folder, { recursive: true })
  const file = join(folder, `${new Date().toISOString().replaceAll(':', '-')}.json`)
  await writeFile(file, JSON.stringify(result, null, 2))
  console.log(`\n${file}`)
}
