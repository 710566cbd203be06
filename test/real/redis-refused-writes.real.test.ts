import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Disturbances, inTurn } from '../properties/disturbances.ts'
import { expectPromiseKept, sawEnough } from '../properties/expect-promise-kept.ts'
import { startVersionedUpstream, type VersionedUpstream } from '../properties/versioned-upstream.ts'
import { testAtLength } from '../support/at-length.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { instanceChecker, instanceFaults } from './shared/instance-checker.ts'
import { forgetAfterMs, type Instance, type Instances, leaseMs, startInstances } from './shared/instances.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 16) * 1000
const path = '/index.php/site-json/site/v2/posts/1'

const min = { hits: 20, acrossStops: 1 }

describeWith('redis', 'an instance that is cut off alone for longer than forgetAfter', () => {
  let upstream: VersionedUpstream
  let instances: Instances
  let disturbances: Disturbances<string> | undefined

  const start = async (writes: 'go-on' | 'refuse-while-cut-off'): Promise<[Instance, Instance]> => {
    instances = await startInstances({ upstream, workers: 1, writes })
    return instances.all as unknown as [Instance, Instance]
  }
  const get = async ({ gateway }: Instance): Promise<{ status: string; version: number }> => {
    const response = await fetch(gateway.origin + path)
    const { version } = (await response.json()) as { version: number }
    return { status: response.headers.get('cache-status') ?? '', version }
  }
  /** Until it is answered from memory. */
  const hit = async (instance: Instance): Promise<number> => {
    for (;;) {
      const { status, version } = await get(instance)
      if (status.includes('hit')) return version
      await pause(50)
    }
  }
  const put = ({ gateway }: Instance): Promise<Response> =>
    fetch(gateway.origin + path, {
      method: 'PUT',
      headers: { authorization: 'Bearer x', 'content-type': 'application/json', 'x-fate': 'answered' },
      body: '{"title":"x"}',
    })
  const purge = ({ gateway }: Instance): Promise<Response> =>
    fetch(`${gateway.adminOrigin}/cache/purge`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"all":true}',
    })
  const metric = async ({ gateway }: Instance, name: string): Promise<number> => {
    const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
    return Number(new RegExp(`^${name}\\S* (\\S+)$`, 'm').exec(text)?.[1])
  }
  const cutAlone = async (cut: Instance, other: Instance): Promise<void> => {
    await Promise.all([hit(cut), hit(other)])
    cut.line.state = 'broken'
    await pause(forgetAfterMs + leaseMs)
    await hit(other)
  }

  beforeEach(async () => {
    upstream = await startVersionedUpstream()
  })
  afterEach(async () => {
    await instances.stop()
    upstream.close()
  })

  test('go-on: its writes are carried out; the others see them when it is back, which the log says', async () => {
    const [cut, other] = await start('go-on')
    await cutAlone(cut, other)
    expect((await put(cut)).status).toBe(200)
    expect(await get(cut)).toMatchObject({ version: 1 })
    // From memory, unless a busy machine has cost it its lease meanwhile.
    const { status, version } = await get(other)
    expect(version).toBe(status.includes('hit') ? 0 : 1)
    expect((await put(cut)).status).toBe(200)
    await expect
      .poll(() => logLinesOf(cut.gateway.program, 'cut-off'))
      .toMatchObject([{ level: 40, writes: 'unacknowledged' }])
    cut.line.state = 'whole'
    await expect.poll(() => get(other)).toMatchObject({ version: 2 })
  })

  test('refuse-while-cut-off: its writes and purges get 503 and are not carried out; reads go on', async () => {
    const [cut, other] = await start('refuse-while-cut-off')
    await cutAlone(cut, other)
    const refused = await put(cut)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await refused.json()).toMatchObject({
      code: 'trellis_shared_store_unreachable',
      data: { status: 503 },
    })
    expect((await put(cut)).status).toBe(503)
    expect(upstream.versionOf(1)).toBe(0)
    expect(await get(cut)).toMatchObject({ version: 0 })
    const purged = await purge(cut)
    expect(purged.status).toBe(503)
    expect(purged.headers.get('retry-after')).toBe('1')
    expect(await purged.json()).toMatchObject({ code: 'not-heard' })
    await expect
      .poll(() => logLinesOf(cut.gateway.program, 'cut-off'))
      .toMatchObject([{ level: 40, writes: 'refused' }])
    expect(await metric(cut, 'trellis_writes_refused_unheard_total')).toBe(2)
    // Instances that are not cut off continue to write.
    expect((await put(other)).status).toBe(200)
    cut.line.state = 'whole'
    await expect.poll(async () => (await put(cut)).status).toBe(200)
    expect((await purge(cut)).status).toBe(200)
  })

  // Else redis-consistency, with the same faults and more, has to do.
  testAtLength(
    'refuse-while-cut-off: however long an instance is cut off, no read is stale and no purge is lost',
    async () => {
      await start('refuse-while-cut-off')
      const checker = instanceChecker({
        upstream,
        instances,
        longestMs,
        faults: () => disturbances?.history ?? [],
      })
      const { acrossStop, lineIs, storePaused } = instanceFaults(instances, () => checker)
      disturbances = inTurn(
        {
          cutBeyondForgetting: lineIs('broken', 0, forgetAfterMs + 2 * leaseMs),
          stoppedUntilAnswered: acrossStop(0),
          silentBeyondForgetting: lineIs('silent', 1, forgetAfterMs + 2 * leaseMs),
          storeRestarted: () => instances.redis.restartEmpty(300),
          storePaused: storePaused(800),
        },
        { firstMs: forgetAfterMs + leaseMs, betweenMs: 600 },
      )
      const { counts, disturb } = disturbances
      const run = await checker.run(disturb, sawEnough(min, disturbances))
      expectPromiseKept(run, counts, min)
      expect(run.refusals.get('PUT 503 trellis_shared_store_unreachable')).toBeGreaterThan(0)
    },
    longestMs * 3 + 240_000,
  )
})
