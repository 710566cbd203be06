import { mkdir, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type FaultyUpstream, startFaultyUpstream } from './soak/faulty-upstream.ts'
import { createLoad } from './soak/load.ts'
import { bytesPerRequest, floors, growth, type Reading, readingOf, scrape, sumOf } from './soak/readings.ts'

// Mixed load with injected faults for a long time: flat memory, no unexplained 5xx, matching counters.

/** `npm run soak` sets it to ten minutes. */
const seconds = Number(process.env['SOAK_SECONDS'] ?? 20)
const isLong = seconds >= 120
const mebibyte = 1024 * 1024
/**
 * Without a limit V8 lets garbage grow to several times the live data (45 MiB) and reaches its level after some 100,000 requests;
 * until then resident memory grows. With a limit of twice the live data, memory that still grows is leaked.
 */
const oldSpace = '--max-old-space-size=96'

let upstream: FaultyUpstream
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startFaultyUpstream()
  const timeouts = { connect: '1s', headers: '3s', idle: '3s', total: '8s' }
  // What fails is what was asked to fail: no breaker opens by it.
  const target = { targets: [upstream.origin], timeouts, breaker: { failureRatio: 1, minRequests: 1000 } }
  gateway = await startGatewayProcess(
    {
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
    },
    { NODE_OPTIONS: oldSpace },
  )
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
    .poll(async () => sumOf(await scrape(gateway.adminOrigin), 'trellis_in_flight_requests'))
    .toBe(0)
  await expect
    .poll(async () => readingOf(await scrape(gateway.adminOrigin), 0).files, {
      interval: 500,
    })
    .toBeLessThanOrEqual(before.files + 4)
  const after = await scrape(gateway.adminOrigin)

  // Half of the time is for caches, memos, pools and compiled code to be what this load makes of them.
  const settled = isLong ? readings.filter((reading) => reading.seconds > seconds / 2) : readings
  const windows = isLong ? 12 : 4
  /** What is resident beside V8's heap: buffers, sockets, TLS, zlib, code of the program, what the allocator keeps. */
  const native = (reading: Reading): number => reading.resident - reading.committed
  const heap = floors(settled, (reading) => reading.heap, windows)
  const perRequest = {
    native: Math.round(bytesPerRequest(settled, native)),
    resident: Math.round(bytesPerRequest(settled, (reading) => reading.resident)),
  }
  const mebibytes = (of: (reading: Reading) => number): number[] =>
    floors(readings, of, windows).map((value) => Math.round((value / mebibyte) * 10) / 10)
  const report = {
    seconds,
    responded: tally.responded,
    abandoned: tally.abandoned,
    hits: tally.hits,
    malformed: tally.malformed,
    upstreamRequests: upstream.asked(),
    counted: sumOf(after, 'trellis_requests_total'),
    // The whole run in windows of equal length, the least value of each.
    heapMiB: mebibytes((reading) => reading.heap),
    committedMiB: mebibytes((reading) => reading.committed),
    nativeMiB: mebibytes(native),
    externalMiB: mebibytes((reading) => reading.external),
    residentMiB: mebibytes((reading) => reading.resident),
    heapGrowthMiB: Math.round((growth(heap) / mebibyte) * 10) / 10,
    bytesPerRequest: perRequest,
    files: {
      before: before.files,
      max: Math.max(...readings.map(({ files }) => files)),
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
  const responded = Object.values(tally.responded).reduce((sum, count) => sum + count, 0)
  expect(counted() - responded).toBeGreaterThanOrEqual(0)
  expect(counted() - responded).toBeLessThanOrEqual(tally.abandoned)
  // A client that gave up may have been answered in the same moment, but never with an error.
  expect(counted('status_class="2xx"') - (tally.responded['2xx'] ?? 0)).toBeLessThanOrEqual(tally.abandoned)
  expect(counted('status_class="5xx"')).toBe(tally.responded['5xx'] ?? 0)
  expect(counted('cache="hit"')).toBe(tally.hits)
  // What is no request is refused once; it never becomes one that is counted.
  const refusedEarly = ['malformed_request', 'fields_too_large'].map((code) =>
    sumOf(after, 'trellis_refusals_total', `code="${code}"`),
  )
  expect(refusedEarly.reduce((sum, count) => sum + count, 0)).toBe(tally.malformed)

  if (!isLong) {
    // A short run is still growing into its caches.
    expect(report.heapGrowthMiB).toBeLessThan(64)
    const late = readings.filter((reading) => reading.seconds > (seconds * 2) / 3)
    expect(growth(floors(late, (reading) => reading.resident, windows)) / mebibyte).toBeLessThan(128)
    return
  }
  // What lives on the heap; held, 100 bytes a request are more than that.
  expect(report.heapGrowthMiB).toBeLessThan(4)
  // 11 were seen; a planted buffer of a kilobyte held for each request made 1,406.
  expect(perRequest.native).toBeLessThan(128)
  // All of it, with the heap that caches still grow into: 213 were seen in a run of no more than 66,000 requests, 1,925 with the leak.
  expect(perRequest.resident).toBeLessThan(512)
})
