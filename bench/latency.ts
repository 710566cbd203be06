import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Pin } from './cores.ts'
import { longWarmUp, measure, warmUp } from './measure.ts'
import { type Both, withBoth } from './pairs.ts'
import type { Scenario } from './scenarios.ts'
import { median, quantile } from './statistics.ts'
import { inTurns } from './turns.ts'

const connections = 32
const secondsPerTurn = 3
const execute = promisify(execFile)

type Latency = { readonly p50Ms: number; readonly p99Ms: number }

/**
 * Response times of two servers at the same fixed rate, in turns: a share (0 to 1) of what this build answers per second when
 * saturated. Needs h2load (Debian package nghttp2-client). Prints the p50 and p99 of both and the ratio of the p99, below 1 where
 * this build is faster.
 */
export async function benchLatency(against = 'nginx', named = 'hit', share = 0.5, pairs = 10): Promise<void> {
  if (spawnSync('h2load', ['--version']).status !== 0) throw new RangeError('h2load is not installed')
  await withBoth(against, named, async ({ mine, theirs, chosen, generator, loadPin }) => {
    for (const { name, title, script } of chosen) {
      if (script !== undefined) throw new RangeError(`${name} needs wrk, which sends at no fixed rate`)
      const { rate, turns } = await turnsAt(share, name, pairs, { mine, theirs, generator, loadPin })
      console.log(`${title}, ${rate * connections} requests per second: ${inWords(turns, theirs.peer.title)}`)
    }
  })
}

const turnsAt = async (
  share: number,
  name: Scenario,
  pairs: number,
  { mine, theirs, generator, loadPin }: Omit<Both, 'chosen'>,
) => {
  for (const peer of [mine, theirs]) await warmUp(peer, name, generator, longWarmUp)
  const rates: number[] = []
  while (rates.length < 3) rates.push((await measure(mine, name, generator, 1)).perSecond)
  const rate = Math.round((median(rates) * share) / connections)
  const turns = await inTurns(mine, theirs, pairs, (peer) =>
    latencyAt(loadPin, `${peer.origin}${peer.peer.targets[name]}`, rate),
  )
  return { rate, turns }
}

/** Both at half of what this build can serve. */
export async function latencyTurns(
  against: string,
  name: Scenario,
  pairs: number,
): Promise<Awaited<ReturnType<typeof turnsAt>>['turns']> {
  let turns: Awaited<ReturnType<typeof turnsAt>>['turns'] = []
  await withBoth(against, name, async (both) => {
    ;({ turns } = await turnsAt(0.5, name, pairs, both))
  })
  return turns
}

function inWords(turns: readonly (readonly [Latency, Latency])[], other: string): string {
  const of = (side: 0 | 1, which: keyof Latency) => median(turns.map((turn) => turn[side][which])).toFixed(2)
  const ratios = turns.map(([mine, theirs]) => mine.p99Ms / theirs.p99Ms)
  const spread = `quartiles ${quantile(ratios, 0.25).toFixed(2)} and ${quantile(ratios, 0.75).toFixed(2)} of ${turns.length} pairs`
  const p50 = `p50 ${of(0, 'p50Ms')} ms here, ${of(1, 'p50Ms')} ms ${other}`
  return `${p50}; p99 ${of(0, 'p99Ms')} and ${of(1, 'p99Ms')} ms: ${median(ratios).toFixed(2)} (${spread})`
}

/** Sends requests on each connection at the given rate per second, and reads how long each took. */
async function latencyAt(pinned: Pin, url: string, perConnection: number): Promise<Latency> {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-latency-'))
  const log = join(folder, 'log')
  const [command = '', ...args] = pinned([
    ...['h2load', '--h1', '-t1', `-c${connections}`, `--rps=${perConnection}`],
    ...[`-D${secondsPerTurn}`, '--warm-up-time=500ms', `--log-file=${log}`, url],
  ])
  await execute(command, args)
  const rows = (await readFile(log, 'utf8')).split('\n').filter((row) => row !== '')
  await rm(folder, { recursive: true, force: true })
  const times = rows.map((row) => {
    const [, status, microseconds] = row.split('\t')
    if (!/^[23]\d\d$/.test(status ?? '')) throw new Error(`a response of ${url} had the status ${status}`)
    return Number(microseconds) / 1000
  })
  return { p50Ms: median(times), p99Ms: quantile(times, 0.99) }
}
