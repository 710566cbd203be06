import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { barChart } from './bar-chart.ts'
import type { Peer } from './peer.ts'
import type { ProfileGroup } from './profile.ts'
import type { Summary } from './report.ts'
import { type ScenarioFacts, scenarios } from './scenarios.ts'

/** A run, as its results file holds it. */
export type Run = {
  readonly at: string
  readonly node: string
  readonly processor: string
  readonly cores: number
  readonly loadBefore: number
  readonly loadAfter: number
  readonly generator: string
  readonly rounds: number
  readonly seconds: number
  readonly warmUpRequests: number
  readonly leftOut: readonly string[]
  readonly summaries: readonly Summary[]
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
const whole = (value: number): string => Math.round(value).toLocaleString('en')

const titleOf = (peers: readonly Peer[], name: string): string =>
  peers.find((peer) => peer.name === name)?.title ?? name

const commandOf = (name: string): string =>
  name === 'performance' ? 'npm run bench -- --docs' : `npm run bench -- --docs ${name}`

const tableRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

function scenarioSection(facts: ScenarioFacts, run: Run, peers: readonly Peer[], name: string): string[] {
  const found = run.summaries.filter(({ scenario }) => scenario === facts.name)
  if (found.length === 0) return []
  const against = titleOf(peers, facts.yardstick)
  return [
    `## ${facts.title[0]?.toUpperCase()}${facts.title.slice(1)}`,
    '',
    `![${facts.title}](${name}/${facts.name}.svg)`,
    '',
    tableRow([
      '',
      'requests per CPU second',
      'spread',
      `against ${against}`,
      'requests/s',
      'p50 ms',
      'p99 ms',
    ]),
    tableRow(['---', '---:', '---:', '---:', '---:', '---:', '---:']),
    ...found.map((each) =>
      tableRow([
        titleOf(peers, each.peer),
        whole(each.median),
        `±${percent(each.spread)}`,
        each.ratio === undefined ? '' : each.ratio.toFixed(2),
        whole(each.perSecond),
        each.p50Ms.toFixed(2),
        each.p99Ms.toFixed(2),
      ]),
    ),
    '',
  ]
}

function noise(run: Run): string {
  const spreads = run.summaries.map(({ spread }) => spread).sort((a, b) => a - b)
  const middle = percent(spreads[Math.floor(spreads.length / 2)] ?? 0)
  const busy =
    run.loadBefore > 0.5
      ? ` The machine was not quiet: its load average was ${run.loadBefore.toFixed(1)} before the run and ${run.loadAfter.toFixed(1)} after it. Ratios within a run hold better than figures.`
      : ''
  return `Half the distance between the best and the worst of ${run.rounds} rounds is the spread: ${middle} in the middle, ${percent(spreads.at(-1) ?? 0)} at worst. A difference smaller than the spreads of both is none.${busy}`
}

function profileSection(profile: readonly ProfileGroup[]): string[] {
  return [
    '## Where the time of a hit goes',
    '',
    'Self times on the main thread of a run of its own under `--cpu-prof`, while hits of 2 kB are served:',
    '',
    tableRow(['whose code', 'share']),
    tableRow(['---', '---:']),
    ...profile
      .filter(({ share }) => share >= 0.005)
      .map(({ name, share }) => tableRow([name, percent(share)])),
    '',
  ]
}

function page(run: Run, peers: readonly Peer[], profile: readonly ProfileGroup[], name: string): string {
  const unmeasured = scenarios.filter(({ name }) => !run.summaries.some(({ scenario }) => scenario === name))
  const leftOut = [...run.leftOut, ...unmeasured.map(({ title }) => title)]
  const missing = leftOut.length === 0 ? [] : ['', `Left out: ${leftOut.join('; ')}.`]
  return [
    '# Performance',
    '',
    `<!-- Written by \`${commandOf(name)}\`; figures are those of one run, none chosen by hand. -->`,
    '',
    `Run of ${run.at.slice(0, 10)}: Node ${run.node}, ${run.cores} x ${run.processor}, ${run.generator} with 32 kept-alive connections, ${run.rounds} rounds of ${run.seconds} s for each peer and scenario after ${whole(run.warmUpRequests)} requests that are not counted, one scenario after the other, peers interleaved.`,
    'Servers run on one core, the generator and the origin on another. What counts is requests per second of processor',
    'time of the whole process tree, so that a server is not made to look better by a second core.',
    ...missing,
    '',
    noise(run),
    '',
    'Trellis runs with everything on: guard, validation, canonical requests, Cache-Status, request ids, metrics, the log at',
    'its level of production. Bare node:http answers from a Map with the bytes of the answers of Trellis. Bare',
    '@fastify/http-proxy has no cache; what is a miss for others it fetches. A Fastify route that gives undici its requests and',
    'does nothing else is the most that could be reached with these parts. All peers are configured in',
    '[bench/peers](../../bench/peers).',
    '',
    ...scenarios.flatMap((facts) => scenarioSection(facts, run, peers, name)),
    ...profileSection(profile),
    '## How to repeat it',
    '',
    '```sh',
    'apt-get install -y --no-install-recommends wrk nginx-light varnish haproxy',
    'npm ci && npm run build',
    'npm run bench              # prints the tables, keeps the figures in bench/results/',
    `${commandOf(name)}    # and writes this page`,
    '```',
    '',
    '`BENCH_ROUNDS`, `BENCH_SECONDS`, `BENCH_WARM_UP`, `BENCH_PEERS` and `BENCH_SCENARIOS` make it shorter.',
    '',
  ].join('\n')
}

/** With more than that nobody can tell a gain from noise. */
const mostSpread = 0.15

/**
 * Writes docs/evidence/NAME.md from a run, unless a row of hits or misses has too wide a spread, and its pictures into docs/evidence/NAME/: `performance` for the oldest Node that is supported,
 * other names for others.
 */
export async function writePerformanceDoc(
  run: Run,
  peers: readonly Peer[],
  profile: readonly ProfileGroup[],
  name: string,
): Promise<void> {
  const noisy = run.summaries.filter(
    ({ scenario, spread }) => /^(?:hit|miss)/.test(scenario) && spread > mostSpread,
  )
  if (noisy.length > 0) {
    const rows = noisy.map(({ peer, scenario, spread }) => `${peer} ${scenario}: ${percent(spread)}`)
    throw new Error(
      `not written: the spread is above ${percent(mostSpread)} (use npm run bench pairs): ${rows.join(', ')}`,
    )
  }
  const docs = new URL('../docs/evidence/', import.meta.url)
  const pictures = new URL(`${name}/`, docs)
  await mkdir(pictures, { recursive: true })
  for (const old of await readdir(pictures)) await rm(new URL(old, pictures))
  for (const facts of scenarios) {
    const bars = run.summaries
      .filter(({ scenario }) => scenario === facts.name)
      .map(({ peer, median, spread }) => ({
        label: titleOf(peers, peer),
        value: median,
        spread: spread * median,
        isOurs: peer === 'trellis',
      }))
    if (bars.length === 0) continue
    const picture = barChart(facts.title, 'requests per CPU second', bars)
    await writeFile(new URL(`${facts.name}.svg`, pictures), picture)
  }
  const file = new URL(`${name}.md`, docs)
  await writeFile(file, page(run, peers, profile, name))
  console.log(fileURLToPath(file))
}
