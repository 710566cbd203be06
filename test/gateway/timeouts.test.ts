import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'

afterEach(() => void vi.useRealTimers())

/** An upstream that answers when the test says so, behind a gateway with the default time limits. */
const started = async () => {
  const responses: (() => void)[] = []
  const origin = await startOrigin((_request, wire) => {
    responses.push(() => wire.respond({ content: 'late' }))
  })
  const gateway: TestGateway = await startTestGateway({
    services: { app: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    vi.useRealTimers()
    await gateway.close()
    await origin.close()
  })
  return { origin, gateway, answers: responses }
}

/** A POST, which is sent once. */
const post = (address: string) => {
  const outgoing = request(`${address}/plugins`, { method: 'POST', agent: false })
  outgoing.end('install')
  return once(outgoing, 'response').then(async ([response]) => ({
    status: response.statusCode as number,
    content: await text(response),
  }))
}

test.each([12_000, 55_000])('a response that comes after %i ms is the response', async (ms) => {
  const { origin, gateway, answers: responses } = await started()
  // Whatever arms a timer from here on waits for the clock of the test.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
  const response = post(gateway.publicAddress)
  await vi.waitFor(() => expect(responses).toHaveLength(1), { interval: 0 })
  await vi.advanceTimersByTimeAsync(ms)
  responses[0]?.()
  expect(await response).toEqual({ status: 200, content: 'late' })
  expect(origin.received).toHaveLength(1)
})

test('a response that has not begun after a minute is 504', async () => {
  const { gateway, answers: responses } = await started()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
  const response = post(gateway.publicAddress)
  await vi.waitFor(() => expect(responses).toHaveLength(1), { interval: 0 })
  await vi.advanceTimersByTimeAsync(61_000)
  expect(await response).toMatchObject({ status: 504 })
})
