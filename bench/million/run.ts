import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { startGatewayProcess } from '../../test/support/gateway-process.ts'
import { programPid } from '../../test/support/processes.ts'
import { checkCommandLine, words } from '../command-line.ts'
import { processorSeconds } from '../processor-time.ts'
import { median, quantile } from '../statistics.ts'
import { type Pauses, watchCollector } from './collector-watch.ts'
import { startListOrigin } from './list-origin.ts'
import { pipelinedGets } from './pipelined-gets.ts'

// npm run bench:million              fills the memory tier of a gateway with 1,000,000 lists of 2 kB over sockets
// npm run bench:million -- 50000     a short look
// What follows is handed to node: npm run bench:million -- 1000000 --max-semi-space-size=64
const usage = 'npm run bench:million -- [ENTRIES [OPTION OF NODE]...]'
checkCommandLine(usage, {}, [words.count], process.argv.slice(2, 3))
const [wanted = '1000000', ...nodeOptions] = process.argv.slice(2)
checkCommandLine(
  usage,
  {},
  [],
  nodeOptions.filter((option) => !/^--\w/.test(option) || option === '--help'),
)
const entries = Number(wanted)
const few = 1_000
const rounds = 5
const hitsInRound = 6_000
const connections = 16

const target = (n: number): string => `/index.php/site-json/site/v2/posts?page=${n + 1}`

const startGateway = async (upstream: string) => {
  const collector = await watchCollector()
  const settings = {
    cache: { maxBytes: '16GiB' },
    services: {
      site: {
        contract: 'site',
        mount: '/index.php/site-json',
        discovery: { source: 'static', identity: { name: 'Bench' } },
        upstream: {
          targets: [upstream],
          basePath: '/index.php/wp-json',
          maxConcurrent: 512,
          queue: { max: 10_000, timeout: '1m' },
          // What is measured is the cost of what is stored, not how long the gateway waits.
          timeouts: { connect: '10s', headers: '1m', total: '2m' },
          eject: { after: 1000 },
          breaker: { failureRatio: 0 },
        },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10h' }] },
      },
    },
  }
  const gateway = await startGatewayProcess(settings, {}, [...nodeOptions, collector.argument])
  const close = async (): Promise<void> => {
    await gateway.kill()
    collector.close()
  }
  return { ...gateway, pid: await programPid(gateway.program), collector, close }
}

type Started = Awaited<ReturnType<typeof startGateway>>

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

const metric = async ({ adminOrigin }: Started, name: string): Promise<number> => {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text()
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1])
}

/** Microseconds of processor time of one request, collector included. */
const cost = async (gateway: Started, count: number, targetOf: (turn: number) => string): Promise<number> => {
  const before = processorSeconds(gateway.pid)
  const successes = await pipelinedGets({ origin: gateway.origin, targetOf, count, connections })
  if (successes < count) throw new Error(`${count - successes} of ${count} requests failed`)
  return ((processorSeconds(gateway.pid) - before) / count) * 1e6
}

const told = (kind: string, sorted: readonly number[]): string =>
  `${kind}: ${sorted.length} pauses, median ${median(sorted).toFixed(1)} ms, p99 ${quantile(sorted, 0.99).toFixed(1)} ms, longest ${(sorted.at(-1) ?? 0).toFixed(1)} ms`

const tellPauses = (when: string, { minor, major }: Pauses): void => {
  const all = [...minor, ...major].sort((a, b) => a - b)
  for (const line of [told('all', all), told('young', minor), told('old', major)]) {
    console.log(`  ${when}, ${line}`)
  }
}

const fill = async (gateway: Started, count: number): Promise<void> => {
  const began = performance.now()
  const processorMicros = await cost(gateway, count, target)
  const seconds = (performance.now() - began) / 1000
  console.log(
    `filled ${count} in ${seconds.toFixed(0)} s, ${processorMicros.toFixed(0)} us of processor time each`,
  )
}

const upstream = await startListOrigin()
const [small, large] = [await startGateway(upstream.origin), await startGateway(upstream.origin)]
try {
  // Compiled and warm before the first reading; both do the same work but for what they hold.
  await fill(small, few)
  for (let turn = 0; turn < rounds; turn += 1) await cost(small, hitsInRound, (n) => target(n % few))
  await fill(large, few)
  for (let turn = 0; turn < rounds; turn += 1) await cost(large, hitsInRound, (n) => target(n % few))
  const [emptyRss, load] = [residentBytes(large.pid), loadavg()[0] ?? 0]
  large.collector.take()
  await fill(large, entries)
  tellPauses('while filling', large.collector.take())
  const stored = await metric(large, 'trellis_cache_entries')
  const counted = await metric(large, 'trellis_cache_bytes')
  const rss = residentBytes(large.pid)
  console.log(
    `${stored} stored, ${(counted / stored).toFixed(0)} bytes each as counted, ${((rss - emptyRss) / stored).toFixed(0)} resident`,
  )
  // A stride that is prime to the number: each one is asked for once before any is asked for again.
  const spread = (n: number): string => target((n * 611_953) % entries)
  const costs = { small: [] as number[], same: [] as number[], spread: [] as number[] }
  for (let turn = 0; turn < rounds; turn += 1) {
    costs.small.push(await cost(small, hitsInRound, (n) => target(n % few)))
    costs.same.push(await cost(large, hitsInRound, (n) => target(n % few)))
    costs.spread.push(await cost(large, hitsInRound, (n) => spread(n + turn * hitsInRound)))
  }
  tellPauses('while answering hits', large.collector.take())
  const [base, same, all] = [median(costs.small), median(costs.same), median(costs.spread)]
  console.log(`a hit of ${few} stored: ${base.toFixed(1)} us`)
  console.log(
    `the same ${few} targets with ${entries} stored: ${same.toFixed(1)} us, ${(same / base).toFixed(2)} times`,
  )
  console.log(`targets that are each asked for once: ${all.toFixed(1)} us, ${(all / base).toFixed(2)} times`)
  console.log(
    `load average ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after; node ${process.version}`,
  )
  process.exitCode = same / base <= 1.3 && stored === entries ? 0 : 1
} finally {
  await small.close()
  await large.close()
  upstream.close()
}
