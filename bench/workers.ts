import { availableParallelism } from 'node:os'
import { type GatewayProcess, startGatewayProcess } from '../test/support/gateway-process.ts'
import { chooseGenerator } from './generator.ts'
import { processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

/**
 * npm run bench:workers: what a second worker brings. Nothing is pinned, so the generator takes its part of the same
 * processors: beside the requests per second stands what a request costs, which says what processors of their own would give.
 */
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
const posts = '/index.php/site-json/site/v2/posts'
// A refusal costs the gateway several times a hit and the generator less: there it is the least in the way.
const works = [
  { title: 'refused by validation, 400', target: `${posts}?per_page=1000`, status: 400 },
  { title: 'cache hit', target: `${posts}?per_page=2&_fields=id`, status: 200 },
] as const

type Round = { readonly perSecond: number; readonly micros: number }

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

const round = async ({ origin, program }: GatewayProcess, target: string): Promise<Round> => {
  const url = `${origin}${target}`
  const before = processorSeconds(program.pid)
  const { requests, seconds: took } = await generator.run({ url, seconds, fields: [], script: undefined })
  const used = processorSeconds(program.pid) - before
  return { perSecond: requests / took, micros: (used / requests) * 1e6 }
}

const gateways = { one: await start(1), two: await start(2) }
try {
  console.log(`${availableParallelism()} processors, ${generator.name}, ${rounds} rounds of ${seconds} s`)
  for (const { title, target, status } of works) {
    const seen: Record<keyof typeof gateways, Round[]> = { one: [], two: [] }
    for (let turn = 0; turn <= rounds; turn += 1) {
      for (const name of ['one', 'two'] as const) {
        const answer = await fetch(`${gateways[name].origin}${target}`)
        await answer.arrayBuffer()
        if (answer.status !== status) throw new Error(`${title}: status ${answer.status}`)
        const result = await round(gateways[name], target)
        // The first one warms up.
        if (turn > 0) seen[name].push(result)
      }
    }
    const [one, two] = [seen.one, seen.two].map((results) => ({
      perSecond: median(results.map(({ perSecond }) => perSecond)),
      micros: median(results.map(({ micros }) => micros)),
    })) as [Round, Round]
    const ratios = seen.two.map(({ perSecond }, at) => perSecond / (seen.one[at]?.perSecond ?? Number.NaN))
    console.log(title)
    console.log(
      `  1 worker:  ${one.perSecond.toFixed(0)} requests/s, ${one.micros.toFixed(1)} µs of processor time each`,
    )
    console.log(
      `  2 workers: ${two.perSecond.toFixed(0)} requests/s, ${two.micros.toFixed(1)} µs of processor time each`,
    )
    console.log(
      `  requests/s: ${median(ratios).toFixed(2)} times (${ratios.map((one) => one.toFixed(2)).join(' ')})`,
    )
    console.log(
      `  on two processors of their own, by what a request costs: ${((2 * one.micros) / two.micros).toFixed(2)} times`,
    )
  }
} finally {
  await gateways.one.stop()
  await gateways.two.stop()
}
