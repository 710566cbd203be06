import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { startOrigin } from '../support/origin.ts'

// The responses to a list are held until the last one is there: they count as buffered.

const bytes = 300_000

test('what a list of queries holds while one of them is slow counts as buffered, until it is sent', async () => {
  const latch = createLatch()
  const origin = await startOrigin(async ({ content }, wire) => {
    const isBig = content.includes('big')
    if (!isBig) await latch.opened
    const data = isBig ? 'x'.repeat(bytes) : 'y'
    const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
    wire.respond({ headers, content: JSON.stringify({ data }) })
  })
  onTestFinished(() => origin.close())
  const gateway = await startTestGateway({
    services: {
      graph: {
        contract: 'graphql',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'query *', ttl: '1h' }] },
      },
    },
  })
  onTestFinished(() => gateway.close())
  const list = fetch(`${gateway.publicAddress}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify([{ query: '{ big }' }, { query: '{ slow }' }]),
  })
  await expect
    .poll(() => gateway.metric('trellis_buffered_bytes'), { timeout: 10_000 })
    .toBeGreaterThan(bytes)
  latch.open()
  expect(await (await list).json()).toEqual([{ data: 'x'.repeat(bytes) }, { data: 'y' }])
  await expect.poll(() => gateway.metric('trellis_buffered_bytes')).toBeLessThan(bytes)
})
