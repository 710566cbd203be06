import { describe, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { checkChanges, checkedRules } from '../support/changes-checker.ts'
import { closedAfterEach } from '../support/close.ts'
import { type Companion, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'

const forMs = Number(process.env['TRELLIS_SECONDS'] ?? times(2, 30)) * 1000
const pollMs = 400

const opened = closedAfterEach()

const services = (companion: Companion) => ({
  blog: siteService(companion.origin.origin, {
    cache: { rules: checkedRules(pollMs) },
    changes: { token: companion.token, poll: `${pollMs}ms` },
  }),
})

describe('random changes that bypass the gateway, reported by push or found by a poll', () => {
  test('one process returns no older data', async () => {
    const companion = await startCompanion()
    opened.push(companion)
    const gateway = await startTestGateway({ services: services(companion) })
    opened.push(gateway)
    const gateways = [{ origin: gateway.publicAddress, adminOrigin: gateway.adminAddress }]
    const run = await checkChanges({ companion, gateways, pollMs, forMs })
    expect(run.stale).toEqual([])
  }, 240_000)

  test('two workers return no older data, and one of them polls for both', async () => {
    const companion = await startCompanion()
    opened.push(companion)
    const gateway = await startGatewayProcess({ workers: 2, services: services(companion) })
    opened.push({ close: gateway.stop })
    const run = await checkChanges({ companion, gateways: [gateway], pollMs, forMs })
    expect(run.stale).toEqual([])
    /** On a busy machine both poll for a moment, until the second has heard from the first. */
    const meanIntervalMs = async (): Promise<number> => {
      const before = companion.polls.length
      const began = performance.now()
      await companion.origin.until(() => companion.polls.length > before + 5)
      return (performance.now() - began) / (companion.polls.length - before)
    }
    await expect.poll(meanIntervalMs).toBeGreaterThan(pollMs * 0.6)
  }, 240_000)
})
