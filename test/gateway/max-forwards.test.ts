import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'

test('Max-Forwards of OPTIONS is counted down, and at 0 the gateway answers', async () => {
  const origin = await startOrigin()
  const gateway = await startTestGateway({
    services: { app: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
  })
  const options = (value: string) =>
    fetch(`${gateway.publicAddress}/a`, { method: 'OPTIONS', headers: { 'Max-Forwards': value } })
  expect((await options('0')).status).toBe(204)
  expect(origin.received).toHaveLength(0)
  expect((await options('3')).status).toBe(200)
  expect(origin.received.at(-1)?.headers['max-forwards']).toBe('2')
  expect((await options('many')).status).toBe(200)
})
