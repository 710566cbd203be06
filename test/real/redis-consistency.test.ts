import { afterEach, beforeEach, test } from 'vitest'
import { createChecker } from '../properties/concurrency-checker.ts'
import { inTurn } from '../properties/disturbances.ts'
import { expectPromiseKept } from '../properties/expect-promise-kept.ts'
import { startVersionedUpstream, type VersionedUpstream } from '../properties/versioned-upstream.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { forgetAfterMs, type Instance, type Instances, leaseMs, startInstances } from './shared/instances.ts'

/** A long run sets it; the short ones end after their time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 30) * 1000

describeWith('redis', 'two instances on one Redis', () => {
  let upstream: VersionedUpstream
  let instances: Instances

  beforeEach(async () => {
    upstream = await startVersionedUpstream()
  })
  afterEach(async () => {
    await instances.stop()
    upstream.close()
  })

  const checkerOf = () =>
    createChecker({
      upstream,
      gateways: () =>
        instances.all.map(({ gateway: { origin, adminOrigin } }) => ({
          publicAddress: origin,
          adminAddress: adminOrigin,
        })),
      operations: 10_000_000,
      longestMs,
      readers: 24,
      writers: 6,
      lostAfterMs: 8_000,
      answeredShare: 0.99,
      hangUpShare: 0.01,
      softShare: 0,
    })

  const acrossStop = (checker: ReturnType<typeof checkerOf>, longerMs: number) => async (turn: number) => {
    const members = await instances.members()
    const stopped = members[turn % members.length]
    const other = members[(turn + 1) % members.length]
    if (stopped !== undefined && other !== undefined && stopped !== other)
      await checker.stopMidway(stopped, other, longerMs)
    for (const { line } of members) line.close()
  }

  const lineIs = (state: 'broken' | 'silent', offset: number) => async (turn: number) => {
    const { line } = instances.all[(turn + offset) % 2] as Instance
    line.state = state
    await pause(900)
    line.state = 'whole'
  }

  /** Nobody reaches it, and then one instance a little earlier than the other. */
  const pausedFor = (ms: number) => async (turn: number) => {
    const { line } = instances.all[turn % 2] as Instance
    instances.redis.signal('SIGSTOP')
    await pause(ms)
    line.state = 'silent'
    instances.redis.signal('SIGCONT')
    await pause(leaseMs)
    line.state = 'whole'
  }

  test('lines are cut, processes stopped, the store stopped, killed and emptied: no stale read, no purge lost', async () => {
    instances = await startInstances(upstream, 1)
    const checker = checkerOf()
    const { counts, disturb } = inTurn(
      {
        stoppedUntilAnswered: acrossStop(checker, 0),
        cut: lineIs('broken', 0),
        stoppedBeyondLease: acrossStop(checker, leaseMs * 1.5),
        storePaused: pausedFor(800),
        silent: lineIs('silent', 1),
        storeRestarted: () => instances.redis.restartEmpty(300),
        stoppedBeyondForgetting: acrossStop(checker, forgetAfterMs + leaseMs),
        storePausedBeyondForgetting: pausedFor(forgetAfterMs + leaseMs),
      },
      { firstMs: forgetAfterMs + leaseMs, betweenMs: 600 },
    )
    expectPromiseKept(await checker.run(disturb), counts, { hits: 20, acrossStops: 2 })
  }, 1_300_000)
})
