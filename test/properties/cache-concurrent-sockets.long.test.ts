import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { checkedService } from './checked-service.ts'
import { createChecker } from './concurrency-checker.ts'
import { expectPromiseKept, sawEnough } from './expect-promise-kept.ts'
import { startVersionedUpstream, type VersionedUpstream } from './versioned-upstream.ts'

/** A long run sets it to a million; it ends earlier after its time limit. */
const operations = Number(process.env['TRELLIS_OPERATIONS'] ?? times(2_000, 10_000))
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 600) * 1000

let upstream: VersionedUpstream
let gateway: TestGateway

beforeAll(async () => {
  upstream = await startVersionedUpstream()
  gateway = await startTestGateway({ services: { site: checkedService(upstream) } })
})
afterAll(async () => {
  await gateway.close()
  upstream.close()
})

test(
  'with readers that disconnect, writes that break off and purges, no read is stale and no caller gets the response of another',
  async () => {
    const checker = createChecker({
      upstream,
      gateways: () => [gateway],
      operations,
      longestMs,
      readers: 200,
      writers: 8,
      lostAfterMs: 60_000,
      respondedShare: 0.85,
      hangUpShare: 0.05,
      readerRestMs: 16,
      softShare: 0.3,
    })
    const min = { hits: 200, acrossStops: 0 }
    const undisturbed = { isComplete: () => true }
    const run = await checker.run(() => Promise.resolve(), sawEnough(min, undisturbed))
    expectPromiseKept(run, {}, min)
    const { seen, fates, refusals } = run
    /** What a busy machine makes time out is no refusal. */
    const refused = (method: string): number =>
      [...refusals]
        .filter(([name]) => name.startsWith(method) && !name.includes('timeout'))
        .reduce((sum, [, count]) => sum + count, 0)
    expect(seen.confirmed).toBeGreaterThan(seen.reads / 100)
    expect(seen.failedPurges).toBe(0)
    // Every client that stayed got a response, whatever the upstream did.
    expect(seen.lost).toBe(0)
    expect(refused('GET')).toBeLessThan(seen.reads / 50)
    expect(refused('PUT')).toBeLessThan((fates.get('answered') ?? 0) / 5)
    expect(fates.size).toBeGreaterThan(2)
  },
  longestMs + 240_000,
)
