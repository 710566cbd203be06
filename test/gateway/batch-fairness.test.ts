import { afterEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

const root = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let gateway: TestGateway
afterEach(async () => {
  await gateway?.close()
  await origin?.close()
})

type Sent = { path: string }

/** Four milliseconds for a request, or for each item of a batch. */
const start = async (split: string, maxConcurrent: number): Promise<void> => {
  origin = await startOrigin(async (request, wire) => {
    if (!request.target.endsWith('/batch/v1')) {
      await pause(4)
      wire.respond({ fields: json, content: '{"id":1}' })
      return
    }
    const { requests } = JSON.parse(request.content.toString()) as { requests: Sent[] }
    await pause(4 * requests.length)
    const responses = requests.map(({ path }) => ({ body: { path }, status: 200, headers: [] }))
    wire.respond({ status: 207, fields: json, content: JSON.stringify({ responses }) })
  })
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.1/32'],
    services: {
      site: {
        contract: 'site',
        mount: root,
        discovery: { source: 'static', identity: { name: 'Test' } },
        batch: { split },
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', maxConcurrent },
      },
    },
  })
}

const requests = Array.from({ length: 25 }, (_, at) => ({
  method: 'PUT',
  path: `/site/v2/posts/${at + 1}`,
  body: { title: 'x' },
}))

const sendBatch = async (from: string): Promise<number[]> => {
  const answer = await fetch(`${gateway.publicAddress}${root}/batch/v1`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': from },
    body: JSON.stringify({ requests }),
  })
  const { responses } = (await answer.json()) as { responses: { status: number }[] }
  return responses.map(({ status }) => status)
}

const timeOfGet = async (from: string): Promise<number> => {
  const began = performance.now()
  const answer = await fetch(`${gateway.publicAddress}${root}/site/v2/pages/7`, {
    headers: { 'X-Forwarded-For': from },
  })
  expect(answer.status).toBe(200)
  await answer.arrayBuffer()
  return performance.now() - began
}

test.each([
  ['item', 8],
  ['chunk', 8],
  ['auto', 8],
] as const)(
  '40 batches of 25 with split %s stay within the bound, and no single GET waits behind them, not even of the same client',
  async (split, maxConcurrent) => {
    await start(split, maxConcurrent)
    const began = performance.now()
    const batches = Array.from({ length: 40 }, () => sendBatch('10.0.0.1'))
    await origin.until(() => origin.received.length >= 4)
    const times = [await timeOfGet('10.0.0.2'), await timeOfGet('10.0.0.1')]
    const statuses = (await Promise.all(batches)).flat()
    const whole = performance.now() - began
    expect(statuses).toEqual(Array(1000).fill(200))
    expect(origin.mostInFlight).toBeLessThanOrEqual(maxConcurrent)
    // Behind all of them it would take about as long as all of them; all run in one process here, beside other test files.
    for (const ms of times) expect(ms).toBeLessThan(whole / 2)
  },
)

test('batches of one client do not keep the batch of another waiting', async () => {
  await start('chunk', 4)
  const many = Promise.all(Array.from({ length: 20 }, () => sendBatch('10.0.0.1')))
  await origin.until(() => origin.received.length >= 2)
  const began = performance.now()
  await sendBatch('10.0.0.2')
  const one = performance.now() - began
  await many
  expect(one).toBeLessThan((performance.now() - began) / 2)
})
