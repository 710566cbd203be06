import { afterEach, beforeEach, test } from 'vitest'
import { type Disturbances, inTurn } from '../properties/disturbances.ts'
import { expectPromiseKept, sawEnough } from '../properties/expect-promise-kept.ts'
import { startVersionedUpstream, type VersionedUpstream } from '../properties/versioned-upstream.ts'
import { isAll, times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { instanceChecker, instanceFaults } from './shared/instance-checker.ts'
import { forgetAfterMs, type Instances, leaseMs, startInstances } from './shared/instances.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? times(4, 24)) * 1000
const maxMs = longestMs * 3 + 240_000

const min = { hits: 20, acrossStops: 2 }

describeWith('redis', 'two instances on one Redis', () => {
  let upstream: VersionedUpstream
  let instances: Instances
  let disturbances: Disturbances<string> | undefined

  beforeEach(async () => {
    upstream = await startVersionedUpstream()
  })
  afterEach(async () => {
    await instances.stop()
    upstream.close()
  })
  const checkerOf = () =>
    instanceChecker({ upstream, instances, longestMs, faults: () => disturbances?.history ?? [] })

  // In the clear redis-workers-consistency has the same faults.
  test.each([
    ['a Redis by TLS whose content is signed', true],
    ...(isAll ? [['a Redis in the clear', false] as const] : []),
  ] as const)(
    '%s: lines are cut, processes stopped, the store stopped, killed and emptied: no stale read, no purge lost',
    async (_, secured) => {
      // A write goes on after three leases without the store, which a busy machine may need to reach it again.
      instances = await startInstances({ upstream, workers: 1, secured, writes: 'refuse-while-cut-off' })
      const checker = checkerOf()
      const { acrossStop, lineIs, storePaused } = instanceFaults(instances, () => checker)
      disturbances = inTurn(
        {
          stoppedUntilAnswered: acrossStop(0),
          cut: lineIs('broken', 0),
          stoppedBeyondLease: acrossStop(leaseMs * 1.5),
          storePaused: storePaused(800),
          silent: lineIs('silent', 1),
          storeRestarted: () => instances.redis.restartEmpty(300),
          stoppedBeyondForgetting: acrossStop(forgetAfterMs + leaseMs),
          storePausedBeyondForgetting: storePaused(forgetAfterMs + leaseMs),
        },
        { firstMs: forgetAfterMs + leaseMs, betweenMs: 600 },
      )
      const { counts, disturb } = disturbances
      expectPromiseKept(await checker.run(disturb, sawEnough(min, disturbances)), counts, min)
    },
    maxMs,
  )
})
