import { createServer } from 'node:http'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { checkCommandLine } from './command-line.ts'
import { pipelinedGets } from './million/pipelined-gets.ts'
import { processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

// npm run bench:writes: what writes to an open service cost that shares its upstream with a site and another open service: on an empty
// cache, and on one with BENCH_STORED responses of the site (100,000), which the first write drops. Processor time of the gateway, all threads;
// beside it the longest that a read had to wait meanwhile.
checkCommandLine('npm run bench:writes (BENCH_STORED, BENCH_ROUNDS)')
const stored = Number(process.env['BENCH_STORED'] ?? 100_000)
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 3)
const burst = 50

const content = JSON.stringify({ text: 'x'.repeat(500) })
const upstream = createServer((request, response) => {
  request.resume()
  response.setHeader('Content-Type', 'application/json')
  response.end(content)
})
await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening))
const address = upstream.address()
const targets = [`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`]
const open = { contract: 'open', upstream: { targets } }

const gateway = await startGatewayProcess({
  cache: { maxBytes: '1GiB' },
  services: {
    site: {
      contract: 'site',
      mount: '/site',
      upstream: { targets },
      cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
    },
    files: { ...open, mount: '/files' },
    plain: { ...open, mount: '/plain' },
  },
})
const { origin, adminOrigin, program } = gateway

const write = async (target: string): Promise<void> => {
  const response = await fetch(`${origin}${target}`, { method: 'PUT', body: content })
  await response.arrayBuffer()
}

const entries = async (): Promise<number> => {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text()
  return Number(/^trellis_cache_entries\S* (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

type Cost = { readonly millis: number; readonly longestWait: number }

/** Until the gateway has nothing to do any more; `work` and a reader who asks again as soon as he has the response. */
const costOf = async (work: () => Promise<void>): Promise<Cost> => {
  const before = processorSeconds(program.pid)
  let longestWait = 0
  let isOver = false
  const reader = (async () => {
    while (!isOver) {
      const begun = performance.now()
      await (await fetch(`${origin}/site/`, { method: 'OPTIONS' })).arrayBuffer()
      longestWait = Math.max(longestWait, performance.now() - begun)
      await sleep(20)
    }
  })()
  await work()
  await sleep(1_000)
  isOver = true
  await reader
  return { millis: (processorSeconds(program.pid) - before) * 1000, longestWait }
}

const fill = async (): Promise<void> => {
  const targetOf = (turn: number): string => `/site/site/v2/posts?per_page=8&page=${turn + 1}`
  await pipelinedGets({ origin, targetOf, count: stored, connections: 32, depth: 1 })
  const found = await entries()
  if (found < stored * 0.9) throw new Error(`${found} responses are stored in place of ${stored}`)
}

const many = async (target: string): Promise<void> => {
  await Promise.all(Array.from({ length: burst }, () => write(target)))
}

const found = new Map<string, Cost[]>()
try {
  for (let warm = 0; warm < 20; warm += 1) await many('/plain/known')
  for (let round = 0; round < rounds; round += 1)
    for (const isFull of [false, true]) {
      if (isFull) await fill()
      const name = `${burst} writes, ${isFull ? stored.toLocaleString('en') : 'no'} stored responses`
      found.set(name, [...(found.get(name) ?? []), await costOf(() => many('/plain/known'))])
      if (isFull && (await entries()) > 0) throw new Error('a write left stored responses')
    }
  for (const [name, costs] of found) {
    const millis = median(costs.map((cost) => cost.millis))
    const wait = median(costs.map(({ longestWait }) => longestWait))
    console.log(
      `${name.padEnd(64)} ${millis.toFixed(0)} ms of processor time, longest wait ${wait.toFixed(0)} ms`,
    )
  }
} finally {
  await gateway.stop()
  upstream.close()
}
