import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkedService, createChecker, startVersionedUpstream } from '../properties/concurrency-checker.ts'
import type { VersionedUpstream } from '../properties/versioned-upstream.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { pause } from '../support/origin.ts'

/** A long run sets it; the short one ends after its time. */
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 8) * 1000

let upstream: VersionedUpstream
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startVersionedUpstream()
  gateway = await startGatewayProcess({
    workers: 2,
    log: { level: 'info' },
    cache: { shared: { lease: '500ms', forgetAfter: '2s' } },
    services: { site: checkedService(upstream) },
  })
}, 60_000)
afterAll(async () => {
  await gateway.stop()
  upstream.close()
})

const livingWorkers = (): readonly number[] => {
  const ended = new Set(logLinesOf(gateway.program, 'worker-ended').map(({ pid }) => pid))
  return logLinesOf(gateway.program, 'worker-ready')
    .map(({ pid }) => pid as number)
    .filter((pid) => !ended.has(pid))
}

const faults = { killed: 0, stopped: 0 }

/** Kills one worker, or stops one for longer than a lease, again and again. */
const disturb = async (goesOn: () => boolean): Promise<void> => {
  await pause(1_000)
  for (let turn = 0; goesOn(); turn += 1) {
    const pid = livingWorkers()[turn % 2]
    if (pid === undefined) {
      await pause(100)
    } else if (turn % 2 === 0) {
      process.kill(pid, 'SIGSTOP')
      await pause(1_000)
      process.kill(pid, 'SIGCONT')
      faults.stopped += 1
    } else {
      process.kill(pid, 'SIGKILL')
      faults.killed += 1
      await pause(1_500)
    }
    await pause(500)
  }
}

test('two workers, of which one is killed or stopped again and again: no stale read, no purge lost', async () => {
  const checker = createChecker({
    upstream,
    gateways: () => [{ publicAddress: gateway.origin, adminAddress: gateway.adminOrigin }],
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
  expect(faults.killed).toBeGreaterThan(0)
  expect(faults.stopped).toBeGreaterThan(0)
  expect(seen.hits).toBeGreaterThan(20)
  expect(seen.answeredWrites).toBeGreaterThan(5)
  expect(seen.purges).toBeGreaterThan(1)
}, 1_300_000)
