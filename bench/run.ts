import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/support/ports.ts'
import { benchBatches } from './batch.ts'
import { generate } from './bundled-generator.ts'
import { listContent } from './content.ts'
import { chooseGenerator, type Generator } from './generator.ts'
import { launch, measure, probe, type Round, type RunningPeer, startPeer } from './measure.ts'
import { pacedGets } from './paced-gets.ts'
import { type ReadyAnswer, scenarios } from './peer.ts'
import { peers, yardsticks } from './peers/index.ts'
import { summarise, table } from './report.ts'
import { serveCommand } from './serve-command.ts'
import { servers } from './servers.ts'

// npm run bench                                    the whole run
// BENCH_ROUNDS=1 BENCH_SECONDS=2 npm run bench     a short look
// npm run bench batch                              batches: see bench/batch.ts
// BENCH_PEERS=trellis,node-http npm run bench      some of the peers
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const seconds = Number(process.env['BENCH_SECONDS'] ?? 5)
const chosen = process.env['BENCH_PEERS']?.split(',')

const [mode, ...rest] = process.argv.slice(2)
if (mode === 'serve') await servers[rest[0] ?? '']?.(Number(rest[1]), rest[2] ?? '')
else if (mode === 'generate') {
  console.log(JSON.stringify(await generate(rest[0] ?? '', Number(rest[1]), Number(rest[2]))))
} else if (mode === 'batch') await benchBatches()
else if (mode === 'paced-gets') {
  console.log(JSON.stringify(await pacedGets(rest[0] ?? '', Number(rest[1]))))
} else await bench()

async function bench(): Promise<void> {
  const [loadBefore = 0] = loadavg()
  const [serverPin, loadPin] = pins()
  const generator = chooseGenerator(loadPin)
  const originPort = await freePort()
  // The origin shares the generator's core: what it costs is not the server's.
  const origin = await launch(loadPin(serveCommand('origin', originPort)), `http://127.0.0.1:${originPort}/`)
  const running: RunningPeer[] = []
  try {
    let answer: ReadyAnswer | undefined
    for (const peer of peers.filter((one) => chosen?.includes(one.name) ?? true)) {
      const missing = peer.missing()
      if (missing !== undefined) {
        console.log(`${peer.title} is left out, it needs ${missing}`)
        continue
      }
      const started = await startPeer(peer, { originPort, answer: answer ?? standIn(), pin: serverPin })
      running.push(started)
      for (const scenario of peer.scenarios) {
        const probed = await probe(started, scenario)
        if (peer.name === 'trellis' && scenario === 'hit') answer = await readyAnswer(probed)
      }
    }
    console.log(describeRun(generator.name, loadBefore))
    // Not counted: code is compiled and memory grows to its size in the first second or two.
    await round(running, generator, 2)
    const results: Round[] = []
    for (let done = 0; done < rounds; done += 1) {
      results.push(...(await round(running, generator, seconds)))
      console.log(`round ${done + 1} of ${rounds}`)
    }
    const summaries = summarise(results, yardsticks)
    console.log(table(summaries, peers))
    await save({
      node: process.version,
      processor: cpus()[0]?.model,
      loadBefore,
      generator: generator.name,
      summaries,
      results,
    })
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), origin.stop(0)])
  }
}

/** Every peer once, then all of them again: what disturbs the machine for a while disturbs all of them. */
async function round(
  running: readonly RunningPeer[],
  generator: Generator,
  length: number,
): Promise<Round[]> {
  const results: Round[] = []
  for (const { name } of scenarios) {
    for (const peer of running.filter((each) => each.peer.scenarios.includes(name))) {
      results.push(await measure(peer, name, generator, length))
    }
  }
  return results
}

/** Server on the first core, generator and origin on the second; unpinned where there is one core or no taskset. */
function pins(): [Pin, Pin] {
  const canPin = cpus().length > 1 && spawnSync('sh', ['-c', 'taskset -c 0 true']).status === 0
  if (!canPin) console.log('no taskset or one core only: server and generator share what there is')
  const to = (core: number): Pin =>
    canPin ? (command) => ['taskset', '-c', String(core), ...command] : (c) => c
  return [to(0), to(1)]
}

type Pin = (command: readonly string[]) => readonly string[]

async function readyAnswer(answer: Response): Promise<ReadyAnswer> {
  const connection = ['connection', 'keep-alive', 'date', 'transfer-encoding']
  const fields = Object.fromEntries([...answer.headers].filter(([name]) => !connection.includes(name)))
  return { fields, content: await answer.text() }
}

/** Without Trellis to copy: about what it would send. */
function standIn(): ReadyAnswer {
  return {
    fields: {
      'content-type': 'application/json; charset=UTF-8',
      etag: '"0"',
      'cache-status': 'trellis; hit',
    },
    content: listContent,
  }
}

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
