import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { createClients } from './mixed-fuzz/clients.ts'
import { type FuzzUpstream, startFuzzUpstream } from './mixed-fuzz/upstream.ts'
import { floors, growth, type Reading, readingOf, scrape, sumOf } from './soak/readings.ts'

// Random and mostly valid bytes of clients and of an upstream at the same time: every valid request gets the response that belongs to
// it, the process lives on, and nothing is left behind. `npm run fuzz:mixed` makes a million exchanges.

const count = Number(process.env['MIXED_EXCHANGES'] ?? times(2_000, 10_000))
const seed = Number(process.env['MIXED_SEED'] ?? 1)
const mebibyte = 1024 * 1024

let upstream: FuzzUpstream
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startFuzzUpstream(seed)
  const target = {
    targets: [upstream.origin],
    maxConcurrent: 512,
    clientShare: 1,
    // What fails is what the plan lets fail.
    breaker: { failureRatio: 0 },
    eject: { after: 1_000 },
  }
  gateway = await startGatewayProcess(
    {
      cache: { maxBytes: '16MiB' },
      services: {
        passed: { contract: 'open', mount: '/passed', upstream: target },
        ruled: {
          contract: 'open',
          mount: '/ruled',
          upstream: target,
          cache: { rules: [{ match: 'GET /**', ttl: '2s' }] },
        },
      },
    },
    { NODE_OPTIONS: '--max-old-space-size=96' },
  )
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
})

test(`${count} exchanges with random bytes on both sides`, { timeout: 120_000 + count * 100 }, async () => {
  let end: number | string | undefined
  void gateway.program.ended.then((how) => {
    end = how
  })
  const before = readingOf(await scrape(gateway.adminOrigin), 0)
  const { tally, run } = createClients(gateway.origin, seed)
  const goesOn = (): boolean => tally.exchanges < count && tally.wrong.length === 0 && end === undefined
  const readings: Reading[] = []
  const began = performance.now()
  const elapsed = (): number => (performance.now() - began) / 1000
  const watch = async (): Promise<void> => {
    while (goesOn()) {
      // A process that ends breaks it off: `end` says how.
      const samples = await scrape(gateway.adminOrigin).catch(() => undefined)
      if (samples !== undefined) readings.push(readingOf(samples, elapsed()))
      await sleep(Math.min(1_000, count / 10))
    }
  }
  await Promise.all([run(goesOn), watch()])
  const perSecond = Math.round(tally.exchanges / elapsed())
  const settled = readings.slice(Math.floor(readings.length / 4))
  const heapGrowthMiB = growth(floors(settled, ({ heap }) => heap, 8)) / mebibyte
  process.stderr.write(
    `mixed fuzz: ${JSON.stringify({ ...tally, perSecond, heapGrowthMiB: Math.round(heapGrowthMiB * 10) / 10 })}\n`,
  )
  expect(end, gateway.program.output()).toBeUndefined()
  expect(tally.wrong).toEqual([])
  expect(upstream.wrong).toEqual([])
  expect(tally.statuses['500'] ?? 0).toBe(0)
  expect(gateway.program.output()).not.toMatch(/process-fault|internal_error/)
  // Not a test that passes because everything is refused or abandoned.
  const responded = Object.values(tally.statuses).reduce((sum, one) => sum + one, 0)
  expect(responded).toBeGreaterThan(0.8 * tally.exchanges)

  const left = async (name: string): Promise<number> => sumOf(await scrape(gateway.adminOrigin), name)
  for (const name of [
    'trellis_in_flight_requests',
    'trellis_buffered_bytes',
    'trellis_upstream_in_flight_requests',
  ])
    await expect.poll(() => left(name), { message: name }).toBe(0)
  await expect
    .poll(async () => readingOf(await scrape(gateway.adminOrigin), 0).files, { interval: 500 })
    .toBeLessThanOrEqual(before.files + upstream.open() + 4)
  // A short run is still growing into its caches.
  expect(heapGrowthMiB).toBeLessThan(count > 50_000 ? 4 : 48)
})
