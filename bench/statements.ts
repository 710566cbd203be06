import { performance } from 'node:perf_hooks'
import { Agent, request } from 'undici'
import { startCompanion } from '../test/support/companion.ts'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { programPid } from '../test/support/processes.ts'
import { checkCommandLine } from './command-line.ts'
import { pipelinedGets } from './million/pipelined-gets.ts'
import { mainThreadNanoseconds } from './processor-time.ts'
import { quantile } from './statistics.ts'

// npm run bench:statements: what a service costs the gateway more when a companion states what each write has done. Two services of
// one gateway take turns; the only difference is `changes`. For PHP: TRELLIS_TESTS=all npx vitest run test/real/companion-cost
checkCommandLine('npm run bench:statements')

const companion = await startCompanion()
const plain = await startCompanion()
const site = (mount: string, origin: string, more: object = {}) => ({
  contract: 'site',
  mount,
  names: 'same',
  discovery: { source: 'static', identity: { name: 'Site' } },
  upstream: { targets: [origin], basePath: '/wp-json' },
  cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
  ...more,
})
const gateway = await startGatewayProcess({
  services: {
    with: site('/with', companion.origin.origin, { changes: { token: companion.token, poll: '5s' } }),
    without: site('/without', plain.origin.origin),
  },
})
const dispatcher = new Agent({ connections: 8 })
const rounds = 40
const writes = 80
const reads = 1_000

const heard = async (): Promise<boolean> =>
  /trellis_changes_state\{service="with",state="heard"\} 1/.test(
    await (await fetch(`${gateway.adminOrigin}/metrics`)).text(),
  )

/** Returns how long it took. */
const post = async (mount: string): Promise<number> => {
  const began = performance.now()
  const { body, headers } = await request(`${gateway.origin}${mount}/acme/v1/ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
    dispatcher,
  })
  await body.dump()
  const status = String(headers['cache-status'])
  if (status.includes('detail=nothing') !== (mount === '/with')) throw new Error(`${mount}: ${status}`)
  return performance.now() - began
}

const postMany = async (mount: string): Promise<void> => {
  const work = async (): Promise<void> => {
    for (let sent = 0; sent < writes / 8; sent += 1) await post(mount)
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

const readMany = async (mount: string): Promise<void> => {
  const target = `${mount}/wp/v2/posts/1`
  await (await fetch(gateway.origin + target)).arrayBuffer()
  await pipelinedGets({ origin: gateway.origin, targetOf: () => target, count: reads, connections: 8 })
}

const pid = await programPid(gateway.program)

/** Microseconds of processor time of the gateway, whose main thread does all the work here, for each request. */
const microsOf = async (count: number, act: () => Promise<void>): Promise<number> => {
  const before = mainThreadNanoseconds(pid)
  await act()
  return (mainThreadNanoseconds(pid) - before) / 1000 / count
}

/** What the first costs more than the second; which of them is first changes with each pair. */
const compare = async (
  title: string,
  unit: string,
  pairs: number,
  measure: (mount: string) => Promise<number>,
): Promise<void> => {
  const more: number[] = []
  const without: number[] = []
  for (let pair = -2; pair < pairs; pair += 1) {
    const order = pair % 2 === 0 ? ['/with', '/without'] : ['/without', '/with']
    const found = new Map<string, number>()
    for (const mount of order) found.set(mount, await measure(mount))
    const base = found.get('/without') ?? Number.NaN
    if (pair < 0) continue
    without.push(base)
    more.push((found.get('/with') ?? Number.NaN) - base)
  }
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) =>
    quantile(more, share).toFixed(unit === 'ms' ? 3 : 0),
  )
  console.log(
    `${title}: ${middle} ${unit} more (quartiles ${low} and ${high}) than ${quantile(without, 0.5).toFixed(unit === 'ms' ? 3 : 0)}`,
  )
}

try {
  const until = performance.now() + 30_000
  while (!(await heard())) {
    if (performance.now() > until) throw new Error('the gateway does not hear the companion')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await compare('a POST, processor time', 'µs', rounds, (mount) => microsOf(writes, () => postMany(mount)))
  await compare('a POST alone, until its response', 'ms', 200, post)
  await compare('a hit, processor time', 'µs', rounds, (mount) => microsOf(reads, () => readMany(mount)))
} finally {
  await dispatcher.close()
  await gateway.stop()
  await Promise.all([companion.close(), plain.close()])
}
