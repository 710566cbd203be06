import { expect, test } from 'vitest'
import { testAtLength } from '../support/at-length.ts'
import { times } from '../support/breadth.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { startVarnish } from '../support/varnish.ts'
import { type PromiseResult, type PromiseRun, runPromise } from './varnish/promise-run.ts'

/** `TRELLIS_TESTS=all DOWNSTREAM_READS=100000 DOWNSTREAM_WRITES=1000 npx vitest run test/real/varnish-promise.real.test.ts` is the long form. */
const reads = Number(process.env['DOWNSTREAM_READS'] ?? times(300, 1_000))
const writes = Number(process.env['DOWNSTREAM_WRITES'] ?? times(6, 20))
const seed = Number(process.env['SEED'] ?? 7)
const isLong = process.env['DOWNSTREAM_READS'] !== undefined

const run = async (
  name: string,
  more: Pick<PromiseRun, 'downstream' | 'faults' | 'gateways' | 'killed' | 'until'>,
): Promise<PromiseResult> => {
  const result = await runPromise({ seed, reads, writes, ...more })
  if (isLong) process.stdout.write(`${name}: ${JSON.stringify(result)}\n`)
  expect(result.reads).toBeGreaterThanOrEqual(reads)
  expect(result.acknowledged).toBeGreaterThanOrEqual(writes)
  return result
}

const timeout = isLong ? 1_800_000 : 600_000

describeWith('varnish', 'a Varnish in front, configured as docs/cdn.md shows', () => {
  test(
    'shows nothing older than an acknowledged write, whatever becomes of the purges: refuse',
    async () => {
      const result = await run('refuse, faults', {
        downstream: { onFailure: 'refuse', settle: '250ms' },
        faults: true,
        until: ({ refused }) => refused > 0,
      })
      expect(result.older).toBe(0)
      expect(result.refused).toBeGreaterThan(0)
    },
    timeout,
  )

  testAtLength(
    'shows nothing older while purges are confirmed: wait',
    async () => {
      const result = await run('wait', { downstream: { onFailure: 'wait', settle: '250ms' }, faults: false })
      expect(result.older).toBe(0)
      expect(result.refused).toBe(0)
    },
    timeout,
  )

  testAtLength(
    'lag: is behind for as long as the purges fail',
    async () => {
      const result = await run('lag, faults', {
        downstream: { onFailure: 'lag', settle: '250ms' },
        faults: true,
      })
      expect(result.refused).toBe(0)
    },
    timeout,
  )

  test(
    'without settle, responses on their way arrive after the purge: the check finds them',
    async () => {
      const result = await run('no settle', {
        downstream: { onFailure: 'wait', settle: '0ms' },
        faults: false,
        until: ({ older }) => older > 0,
      })
      expect(result.older).toBeGreaterThan(0)
    },
    timeout,
  )

  testAtLength(
    'without downstream it shows older data for as long as it keeps it',
    async () => {
      const result = await run('without', { faults: false, until: ({ older }) => older > 0 })
      expect(result.older).toBeGreaterThan(0)
    },
    timeout,
  )
})

describeWith('redis', 'a Varnish in front of two gateways on one Redis', () => {
  test(
    'shows nothing older than an acknowledged write, whichever gateway it goes through',
    async () => {
      const result = await run('two gateways, refuse, faults', {
        downstream: { onFailure: 'refuse', settle: '250ms' },
        faults: true,
        gateways: 2,
      })
      expect(result.older).toBe(0)
    },
    timeout,
  )

  testAtLength(
    'shows nothing older while the gateways, of two workers each, are killed in the middle of their writes',
    async () => {
      const result = await run('two gateways of two workers, killed, refuse', {
        downstream: { onFailure: 'refuse', settle: '250ms' },
        faults: false,
        gateways: 2,
        killed: true,
        until: ({ kills }) => kills > 0,
      })
      expect(result.older).toBe(0)
      expect(result.kills).toBeGreaterThan(0)
    },
    timeout,
  )

  test('keeps what the upstream answers to http apart from what it answers to https', async () => {
    const site = await startOrigin(({ headers }, wire) =>
      wire.respond({
        headers: { 'Content-Type': 'text/plain' },
        content: headers['x-forwarded-proto'] ?? '',
      }),
    )
    const port = await freePort()
    const varnish = await startVarnish(port)
    const gateway = await startTestGateway({
      listen: { port },
      trustedProxies: ['127.0.0.1'],
      services: {
        blog: {
          contract: 'open',
          mount: '/',
          upstream: { targets: [site.origin] },
          cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
          downstream: { settle: '1ms', tags: 'xkey', receivers: [{ type: 'varnish', url: varnish.address }] },
        },
      },
    })
    try {
      await expect.poll(() => gateway.metric('trellis_downstream_behind')).toBe(0)
      // For a moment Varnish does not ask a server that has refused a connection.
      await expect.poll(async () => (await fetch(`${varnish.address}/ready`)).status).toBe(200)
      for (const scheme of ['http', 'https', 'http', 'https'])
        expect(
          await (await fetch(`${varnish.address}/a`, { headers: { 'X-Forwarded-Proto': scheme } })).text(),
        ).toBe(scheme)
      expect(site.received.filter(({ target }) => target === '/a')).toHaveLength(2)
    } finally {
      await gateway.close()
      await varnish.close()
      await site.close()
    }
  })
})
