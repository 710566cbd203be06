import { mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type FaultyUpstream, startFaultyUpstream } from './soak/faulty-upstream.ts'
import { createLoad } from './soak/load.ts'
import { floors, growth, type Reading, readingOf, scrape, sumOf } from './soak/readings.ts'

// Mixed load with injected faults for a long time: flat memory, no 5xx that nobody asked for, counters that add up.

/** `npm run soak` sets it to ten minutes. */
const seconds = Number(process.env['SOAK_SECONDS'] ?? 20)
const isLong = seconds >= 120
const mebibyte = 1024 * 1024

let upstream: FaultyUpstream
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startFaultyUpstream()
  const timeouts = { connect: '1s', headers: '3s', idle: '3s', total: '8s' }
  // What fails is what was asked to fail: no breaker opens by it.
  const target = { targets: [upstream.origin], timeouts, breaker: { failureRatio: 1, minRequests: 1000 } }
  gateway = await startGatewayProcess({
    cache: { maxBytes: '16MiB' },
    services: {
      plants: { contract: 'plants', mount: '/', upstream: target },
      site: {
        contract: 'site',
        mount: '/index.php/site-json',
        discovery: { source: 'static', identity: { name: 'Soak' } },
        upstream: { ...target, basePath: '/index.php/wp-json' },
        batch: { split: 'item' },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '20s' }] },
      },
      open: { contract: 'open', mount: '/open', upstream: target },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
})

test(`${seconds} seconds of mixed load`, { timeout: (seconds + 90) * 1000 }, async () => {
  const before = readingOf(await scrape(gateway.adminOrigin), 0)
  const load = createLoad(gateway.origin, 20_261_121)
  const readings: Reading[] = []
  const began = performance.now()
  const elapsed = (): number => (performance.now() - began) / 1000
  const goesOn = (): boolean => elapsed() < seconds

  const watch = async (): Promise<void> => {
    while (goesOn()) {
      readings.push(readingOf(await scrape(gateway.adminOrigin), elapsed()))
      await sleep(Math.min(1_000, seconds * 20))
    }
  }
  await Promise.all([load.run(16, goesOn), watch()])

  const { tally } = load
  expect(tally.unexpected.slice(0, 10)).toEqual([])

  // What has been begun ends: requests that clients gave up, idle connections on both sides.
  await expect
    .poll(async () => sumOf(await scrape(gateway.adminOrigin), 'trellis_in_flight_requests'), {
      timeout: 10_000,
    })
    .toBe(0)
  await expect
    .poll(async () => readingOf(await scrape(gateway.adminOrigin), 0).files, {
      timeout: 20_000,
      interval: 500,
    })
    .toBeLessThanOrEqual(before.files + 4)
  const after = await scrape(gateway.adminOrigin)

  // Memory: the second half of the time is as the first half left it.
  const settled = readings.filter((reading) => reading.seconds > seconds * 0.4)
  const windows = isLong ? 12 : 4
  const heap = floors(settled, (reading) => reading.heap, windows)
  const external = floors(settled, (reading) => reading.external, windows)
  // The allocator takes its time until it has all the room that this load needs beside the heap: its last third counts.
  const late = readings.filter((reading) => reading.seconds > (seconds * 2) / 3)
  const resident = floors(late, (reading) => reading.resident, windows)
  const report = {
    seconds,
    answered: tally.answered,
    abandoned: tally.abandoned,
    hits: tally.hits,
    malformed: tally.malformed,
    upstreamRequests: upstream.asked(),
    counted: sumOf(after, 'trellis_requests_total'),
    heapMiB: heap.map((value) => Math.round((value / mebibyte) * 10) / 10),
    externalMiB: external.map((value) => Math.round(value / mebibyte)),
    residentMiB: resident.map((value) => Math.round(value / mebibyte)),
    heapGrowthMiB: Math.round((growth(heap) / mebibyte) * 10) / 10,
    residentGrowthMiB: Math.round((growth(resident) / mebibyte) * 10) / 10,
    files: {
      before: before.files,
      most: Math.max(...readings.map(({ files }) => files)),
      after: readingOf(after, 0).files,
    },
  }
  if (isLong) {
    await mkdir('bench/results', { recursive: true })
    await writeFile('bench/results/soak.json', `${JSON.stringify(report, null, 2)}\n`)
  }
  process.stderr.write(`soak: ${JSON.stringify(report)}\n`)
  // Clients and gateway counted the same.
  const counted = (...labels: string[]): number => sumOf(after, 'trellis_requests_total', ...labels)
  const answered = Object.values(tally.answered).reduce((sum, count) => sum + count, 0)
  expect(counted() - answered).toBeGreaterThanOrEqual(0)
  expect(counted() - answered).toBeLessThanOrEqual(tally.abandoned)
  // A client that gave up may have been answered in the same moment, but never with an error.
  expect(counted('status_class="2xx"') - (tally.answered['2xx'] ?? 0)).toBeLessThanOrEqual(tally.abandoned)
  expect(counted('status_class="5xx"')).toBe(tally.answered['5xx'] ?? 0)
  expect(counted('cache="hit"')).toBe(tally.hits)
  // What is no request is refused once; it never becomes one that is counted.
  const refusedEarly = ['malformed_request', 'fields_too_large'].map((code) =>
    sumOf(after, 'trellis_refusals_total', `code="${code}"`),
  )
  expect(refusedEarly.reduce((sum, count) => sum + count, 0)).toBe(tally.malformed)

  // A leak of 100 bytes a request would show as 5 MiB of heap and more; a short run is still growing into its caches.
  expect(report.heapGrowthMiB).toBeLessThan(isLong ? 4 : 64)
  expect(report.residentGrowthMiB).toBeLessThan(isLong ? 16 : 128)
})
