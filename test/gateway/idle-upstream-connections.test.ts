import { expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'

test('the gateway closes an idle connection to an upstream that says nothing about keeping it', async () => {
  const origin = await startOrigin((_, wire) => wire.respond({ content: 'ok' }))
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  const post = async (): Promise<number> =>
    (await fetch(gateway.publicAddress, { method: 'POST', body: 'x' })).status
  expect(await post()).toBe(200)
  expect(origin.accepted).toBe(1)
  // The origin closes none by itself.
  await expect.poll(() => origin.open).toBe(0)
  expect(await post()).toBe(200)
  expect(origin.accepted).toBe(2)
  await gateway.close()
  await origin.close()
})
