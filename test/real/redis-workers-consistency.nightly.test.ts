import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Disturbances, inTurn } from '../properties/disturbances.ts'
import { expectPromiseKept, sawEnough } from '../properties/expect-promise-kept.ts'
import { allWorkers } from '../properties/living-workers.ts'
import { startVersionedUpstream, type VersionedUpstream } from '../properties/versioned-upstream.ts'
import { isAll, times } from '../support/breadth.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { instanceChecker, instanceFaults } from './shared/instance-checker.ts'
import { forgetAfterMs, type Instances, leaseMs, startInstances } from './shared/instances.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? times(3, 16)) * 1000

const min = { hits: 20, acrossStops: 1 }

describeWith('redis', 'two workers on each of two instances on one Redis', () => {
  let upstream: VersionedUpstream
  let instances: Instances
  let disturbances: Disturbances<string> | undefined

  beforeEach(async () => {
    upstream = await startVersionedUpstream()
    // A write goes on after three leases without the store, which a busy machine may need to reach it again.
    instances = await startInstances({ upstream, workers: 2, writes: 'refuse-while-cut-off' })
  })
  afterEach(async () => {
    await instances.stop()
    upstream.close()
  })

  test(
    'workers are killed and stopped, an instance and the store are killed: no stale read, no purge lost',
    async () => {
      const checker = instanceChecker({
        upstream,
        instances,
        longestMs,
        faults: () => disturbances?.history ?? [],
      })
      const { acrossStop, lineIs, oneOf, storePaused } = instanceFaults(instances, () => checker)
      // In a short run redis-consistency has those of the store.
      const ofStore = {
        storeRestarted: () => instances.redis.restartEmpty(300),
        cut: lineIs('broken', 1),
        storePaused: storePaused(800),
      }
      disturbances = inTurn<string>(
        {
          workerStoppedUntilAnswered: acrossStop(0),
          workerKilled: async (turn) => {
            const [pid] = await allWorkers(oneOf(turn).gateway, 2)
            if (pid !== undefined) process.kill(pid, 'SIGKILL')
            await pause(800)
          },
          workerStoppedBeyondLease: acrossStop(leaseMs * 1.5),
          instanceKilled: (turn) => instances.replace(oneOf(turn)),
          ...(isAll ? ofStore : {}),
        },
        { firstMs: forgetAfterMs + leaseMs, betweenMs: 600 },
      )
      const { counts, disturb } = disturbances
      expectPromiseKept(await checker.run(disturb, sawEnough(min, disturbances)), counts, min)
      // A member that was only stopped was not removed.
      const ends = instances.all.flatMap(({ gateway }) => logLinesOf(gateway.program, 'worker-ended'))
      expect(ends.filter(({ end }) => end === 'stuck')).toEqual([])
    },
    longestMs * 3 + 240_000,
  )
})
