import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkedService, createChecker, startVersionedUpstream } from '../properties/concurrency-checker.ts'
import type { VersionedUpstream } from '../properties/versioned-upstream.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type CutLine, startCutLine } from './shared/cut-line.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 12) * 1000

describeWith('redis', 'two instances on one Redis', () => {
  let upstream: VersionedUpstream
  let redis: RedisServer
  const lines: CutLine[] = []
  const gateways: GatewayProcess[] = []

  const startInstance = async (): Promise<void> => {
    const line = await startCutLine(redis.port)
    lines.push(line)
    gateways.push(
      await startGatewayProcess({
        cache: { shared: { url: `redis://127.0.0.1:${line.port}`, lease: '500ms', forgetAfter: '3s' } },
        services: { site: checkedService(upstream) },
      }),
    )
  }

  beforeAll(async () => {
    upstream = await startVersionedUpstream()
    redis = await startRedisServer()
    await Promise.all([startInstance(), startInstance()])
  }, 60_000)
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop()
    for (const line of lines) line.close()
    await redis.stop()
    upstream.close()
  })

  const faults = { cut: 0, silent: 0, stopped: 0, restarted: 0, paused: 0 }

  /** One fault after the other, each shorter than `forgetAfter`. */
  const disturbances: readonly ((turn: number) => Promise<void>)[] = [
    async (turn) => {
      const line = lines[turn % 2] as CutLine
      line.state = 'broken'
      await pause(800)
      line.state = 'whole'
      faults.cut += 1
    },
    async () => {
      await redis.restartEmpty(300)
      faults.restarted += 1
    },
    async (turn) => {
      const { pid } = (gateways[turn % 2] as GatewayProcess).program
      process.kill(-pid, 'SIGSTOP')
      await pause(900)
      process.kill(-pid, 'SIGCONT')
      faults.stopped += 1
    },
    async (turn) => {
      const line = lines[(turn + 1) % 2] as CutLine
      line.state = 'silent'
      await pause(900)
      line.state = 'whole'
      faults.silent += 1
    },
    async () => {
      redis.signal('SIGSTOP')
      await pause(800)
      redis.signal('SIGCONT')
      faults.paused += 1
    },
  ]

  const disturb = async (goesOn: () => boolean): Promise<void> => {
    // A new ledger grants nothing for a while.
    await pause(3_500)
    for (let turn = 0; goesOn(); turn += 1) {
      await disturbances[turn % disturbances.length]?.(turn)
      await pause(600)
    }
  }

  test('lines are cut, processes stopped, the store killed and emptied: no stale read, no purge lost', async () => {
    const checker = createChecker({
      upstream,
      gateways: () =>
        gateways.map(({ origin, adminOrigin }) => ({ publicAddress: origin, adminAddress: adminOrigin })),
      operations: 10_000_000,
      longestMs,
      readers: 24,
      writers: 6,
    })
    const { seen, staleReads, wrong } = await checker.run(disturb)
    process.stdout.write(`${JSON.stringify({ ...seen, ...faults })}\n`)
    expect(staleReads).toEqual([])
    expect(wrong).toEqual([])
    expect(seen).toMatchObject({ stale: 0, crossed: 0 })
    // Else it would have proved nothing.
    expect(faults.cut).toBeGreaterThan(0)
    expect(faults.restarted).toBeGreaterThan(0)
    expect(faults.stopped).toBeGreaterThan(0)
    expect(seen.hits).toBeGreaterThan(20)
    expect(seen.answeredWrites).toBeGreaterThan(5)
    expect(seen.purges).toBeGreaterThan(1)
  }, 1_300_000)
})
