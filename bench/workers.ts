import { availableParallelism } from 'node:os'
import { type GatewayProcess, startGatewayProcess } from '../test/support/gateway-process.ts'
import { checkCommandLine } from './command-line.ts'
import { chooseGenerator } from './generator.ts'
import { childrenOf, processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

/**
 * npm run bench:workers: what a second worker brings. Nothing is pinned, so the generator takes its part of the same
 * processors: the less a request costs it beside what it costs the gateway, the less it is in the way. Beside the requests per
 * second stands what a request costs in processor time, of all processes of the gateway and of the parent alone: the parent
 * is what workers share, so its part says from how many of them on another one would bring nothing.
 */
checkCommandLine('npm run bench:workers (BENCH_ROUNDS, BENCH_SECONDS)')
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
const posts = '/index.php/site-json/site/v2/posts'
const hit = `${posts}?per_page=2&_fields=id`

type Work = {
  readonly title: string
  readonly target: string
  readonly status: number
  readonly headers: readonly string[]
}
const works: readonly Work[] = [
  { title: 'refused by validation', target: `${posts}?per_page=1000`, status: 400, headers: [] },
  { title: 'cache hit', target: hit, status: 200, headers: [] },
  { title: 'cache hit, a connection for each', target: hit, status: 200, headers: ['Connection: close'] },
]

/** Times are processor time of one request. */
type Round = { readonly perSecond: number; readonly micros: number; readonly parentMicros: number }

const start = (workers: number): Promise<GatewayProcess> =>
  startGatewayProcess({
    workers,
    overload: { eventLoopDelay: '0s' },
    services: {
      site: {
        contract: 'site',
        mount: '/index.php/site-json',
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
      },
    },
  })

const generator = chooseGenerator((command) => command)

/** What processes have used that have workers, without those. The shell of a test has another child, which has none. */
const parentSeconds = (shell: number): number =>
  childrenOf(shell)
    .map((parent) => ({ parent, workers: childrenOf(parent) }))
    .filter(({ workers }) => workers.length > 1)
    .map(({ parent, workers }) =>
      workers.reduce((left, worker) => left - processorSeconds(worker), processorSeconds(parent)),
    )
    .reduce((sum, one) => sum + one, 0)

const round = async ({ origin, program }: GatewayProcess, { target, headers }: Work): Promise<Round> => {
  const used = () => ({ all: processorSeconds(program.pid), parent: parentSeconds(program.pid) })
  const before = used()
  const load = await generator.run({ url: `${origin}${target}`, seconds, headers, script: undefined })
  const after = used()
  return {
    perSecond: load.requests / load.seconds,
    micros: ((after.all - before.all) / load.requests) * 1e6,
    parentMicros: ((after.parent - before.parent) / load.requests) * 1e6,
  }
}

type Name = 'one' | 'two'

const middle = (results: readonly Round[], of: (round: Round) => number): number => median(results.map(of))

const tell = (title: string, { one, two }: Readonly<Record<Name, readonly Round[]>>): void => {
  const ratios = two.map(({ perSecond }, at) => perSecond / (one[at]?.perSecond ?? Number.NaN))
  const [cost, costOfTwo] = [one, two].map((results) => middle(results, ({ micros }) => micros))
  const parent = middle(two, ({ parentMicros }) => parentMicros)
  const perSecond = [one, two].map((results) => middle(results, (each) => each.perSecond).toFixed(0))
  console.log(title)
  console.log(
    `  requests/s: ${perSecond.join(' and ')}, ${median(ratios).toFixed(2)} times (${ratios.map((each) => each.toFixed(2)).join(' ')})`,
  )
  console.log(
    `  processor time of each: ${cost?.toFixed(1)} and ${costOfTwo?.toFixed(1)} µs, of which the parent ${parent.toFixed(2)}`,
  )
  const workers = Number(costOfTwo) - parent
  console.log(`  on processors of their own, by that: ${((2 * Number(cost)) / workers).toFixed(2)} times`)
  console.log(
    `  workers that one parent keeps busy: ${parent < 0.005 ? 'any number' : (workers / parent).toFixed(0)}`,
  )
}

const gateways = { one: await start(1), two: await start(2) }
try {
  console.log(`${availableParallelism()} processors, ${generator.name}, ${rounds} rounds of ${seconds} s`)
  for (const work of works) {
    const seen: Record<Name, Round[]> = { one: [], two: [] }
    for (let turn = 0; turn <= rounds; turn += 1) {
      for (const name of ['one', 'two'] as const) {
        const response = await fetch(`${gateways[name].origin}${work.target}`)
        await response.arrayBuffer()
        if (response.status !== work.status) throw new Error(`${work.title}: status ${response.status}`)
        const result = await round(gateways[name], work)
        // The first one warms up.
        if (turn > 0) seen[name].push(result)
      }
    }
    tell(work.title, seen)
  }
} finally {
  await gateways.one.stop()
  await gateways.two.stop()
}
