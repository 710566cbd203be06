import { afterAll, beforeAll, test } from 'vitest'
import { checkedService } from '../properties/checked-service.ts'
import { inTurn } from '../properties/disturbances.ts'
import { expectPromiseKept, sawEnough } from '../properties/expect-promise-kept.ts'
import { allWorkers } from '../properties/living-workers.ts'
import { createProcessChecker } from '../properties/process-checker.ts'
import { lineToEach } from '../properties/stopped-member.ts'
import { startVersionedUpstream, type VersionedUpstream } from '../properties/versioned-upstream.ts'
import { times } from '../support/breadth.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { pause } from '../support/origin.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? times(3, 16)) * 1000
const leaseMs = 500

let upstream: VersionedUpstream
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startVersionedUpstream()
  gateway = await startGatewayProcess({
    workers: 2,
    log: { level: 'info' },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    cache: { shared: { lease: `${leaseMs}ms`, forgetAfter: '2s' } },
    services: { site: checkedService(upstream) },
  })
})
afterAll(async () => {
  await gateway.stop()
  upstream.close()
})

test(
  'two workers, of which one is killed or stopped again and again: no stale read, no purge lost',
  async () => {
    const checker = createProcessChecker({ upstream, gateways: () => [gateway], longestMs })
    const both = () => allWorkers(gateway, 2)
    const acrossStop = (longerMs: number) => async (turn: number) => {
      const members = await lineToEach(gateway.origin, await both())
      const [stopped, other] = turn % 2 === 0 ? members : members.toReversed()
      if (stopped !== undefined && other !== undefined) await checker.stopMidway(stopped, other, longerMs)
      for (const { line } of members) line.close()
    }
    const disturbances = inTurn(
      {
        /** Its lease is current when it goes on, unless the write has waited for its end. */
        stoppedUntilAnswered: acrossStop(0),
        stoppedBeyondLease: acrossStop(leaseMs * 1.5),
        killed: async (turn) => {
          const pid = (await both())[turn % 2]
          if (pid !== undefined) process.kill(pid, 'SIGKILL')
          await pause(500)
        },
      },
      { firstMs: 500, betweenMs: 250 },
    )
    const min = { hits: 20, acrossStops: 2 }
    const run = await checker.run(disturbances.disturb, sawEnough(min, disturbances))
    expectPromiseKept(run, disturbances.counts, min)
  },
  longestMs * 3 + 240_000,
)
