import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Pin } from './cores.ts'
import type { Generator } from './generator.ts'
import {
  fill,
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
import { fileTargets } from './peers/targets.ts'
import { trellis } from './peers/trellis.ts'
import { readyResponses } from './ready-answers.ts'
import { summarise, table } from './report.ts'
import { scenarios } from './scenarios.ts'

const setting = (name: string): string | undefined => process.env[`BENCH_${name}`]
const rounds = Number(setting('ROUNDS') ?? 7)
const seconds = Number(setting('SECONDS') ?? 4)
const chosenPeers = setting('PEERS')?.split(',')
const chosenScenarios = setting('SCENARIOS')?.split(',')
const warm = { requests: Number(setting('WARM_UP') ?? 30_000), seconds: 20 }

type World = { readonly originPort: number; readonly serverPin: Pin; readonly generator: Generator }

/** Every peer beside every other, in one run. Prints a table and keeps the figures. */
export async function benchServers(): Promise<void> {
  const [loadBefore = 0] = loadavg()
  const { origin, ...world } = await startWorld()
  const { generator } = world
  const running: RunningPeer[] = []
  const leftOut: string[] = []
  try {
    await startAll(world, running, leftOut)
    console.log(describeRun(generator.name, loadBefore))
    const results = await measureAll(running, generator)
    const summaries = summarise(results, yardsticks())
    console.log(table(summaries, peers))
    await save({
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
      results,
    })
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), origin.stop(0)])
  }
}

async function startAll(world: World, running: RunningPeer[], leftOut: string[]): Promise<void> {
  const responses: ReadyResponse[] = []
  for (const peer of peers.filter((one) => chosenPeers?.includes(one.name) ?? true)) {
    const missing = peer.missing()
    if (missing !== undefined) {
      leftOut.push(`${peer.title} (${missing})`)
      console.log(`${peer.title} is left out, it needs: ${missing}`)
      continue
    }
    const started = await startPeer(peer, { ...world, answers: responses, pin: world.serverPin })
    running.push(started)
    for (const { name, fill: filled } of partOf(peer, world.generator)) {
      if (filled !== undefined) await fill(started, name)
      const probed = await probe(started, name)
      if (peer === trellis) responses.push(...readyResponses(name, probed))
    }
    // Bare node:http serves one content for a whole working set.
    if (peer === trellis)
      responses.sort((a, b) => Number(b.target === fileTargets.hit) - Number(a.target === fileTargets.hit))
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
