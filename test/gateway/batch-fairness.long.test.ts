import { expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const root = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const timeout = { timeout: 120_000 }
/** Batches of one client, each of more items than there are slots. */
const batchCount = times(10, 40)

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

type Sent = { path: string }

/** The writes that wait at the upstream, in order of arrival; GETs are answered at once. */
let held: (() => void)[] = []
let isOpen = false

const respondTo = (target: string, content: Buffer): { status: number; content: string } => {
  if (!target.endsWith('/batch/v1')) return { status: 200, content: '{"id":1}' }
  const { requests } = JSON.parse(content.toString()) as { requests: Sent[] }
  const responses = requests.map(({ path }) => ({ body: { path }, status: 200, headers: [] }))
  return { status: 207, content: JSON.stringify({ responses }) }
}

const start = async (split: string, maxConcurrent: number, clientShare = 1): Promise<void> => {
  held = []
  isOpen = false
  origin = await startOrigin(async ({ method, target, content }, wire) => {
    if (method !== 'GET' && !isOpen) await new Promise<void>((resolve) => held.push(resolve))
    wire.respond({ headers: json, ...respondTo(target, content) })
  })
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.1/32'],
    services: {
      site: {
        contract: 'site',
        mount: root,
        discovery: { source: 'static', identity: { name: 'Test' } },
        // What is held, or waits for a busy machine, is not too late.
        batch: { split, deadline: '10m' },
        upstream: {
          targets: [origin.origin],
          basePath: '/index.php/wp-json',
          maxConcurrent,
          clientShare,
          timeouts: { headers: '10m', idle: '10m', total: '10m' },
          queue: { timeout: '10m' },
        },
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
  const response = await postBatch(gateway, { requests }, { 'X-Forwarded-For': from })
  const { responses } = (await response.json()) as { responses: { status: number }[] }
  return responses.map(({ status }) => status)
}

const statusOfGet = async (from: string): Promise<number> => {
  const headers = { 'X-Forwarded-For': from }
  const response = await fetch(`${gateway.publicAddress}${root}/site/v2/pages/7`, { headers })
  await response.arrayBuffer()
  return response.status
}

/** Batches that have been cut, and so stand in line. */
const begun = async (): Promise<number> => {
  const metrics = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
  const counts = metrics.matchAll(/^trellis_batch_splits_total\{[^}]*\} (\d+)$/gm)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Answers whatever stands at the upstream, and from now on at once. */
const respondToAll = (): void => {
  isOpen = true
  for (const response of held.splice(0)) response()
}

test.each([
  ['item', 8, 1],
  ['chunk', 8, 1],
  ['auto', 8, 1],
  ['item', 16, 0.5],
  ['chunk', 16, 0.5],
] as const)(
  'many batches of 25 with split %s of %i slots and a share of %f stay within the bound, and no single GET waits behind them, not even of the same client',
  timeout,
  async (split, maxConcurrent, clientShare) => {
    await start(split, maxConcurrent, clientShare)
    let responded = 0
    const batches = Array.from({ length: batchCount }, async () => {
      const statuses = await sendBatch('10.0.0.1')
      responded += 1
      return statuses
    })
    await expect.poll(begun, timeout).toBe(batchCount)
    // Three quarters of what the client may have: all that its batches may take.
    await expect.poll(() => held.length, timeout).toBe(6)
    expect([await statusOfGet('10.0.0.2'), await statusOfGet('10.0.0.1')]).toEqual([200, 200])
    expect([responded, held.length]).toEqual([0, 6])
    respondToAll()
    expect((await Promise.all(batches)).flat()).toEqual(Array(batchCount * 25).fill(200))
    expect(origin.maxInFlight).toBeLessThanOrEqual(maxConcurrent)
  },
)

test('batches of one client do not keep the batch of another waiting', timeout, async () => {
  await start('chunk', 4)
  const many = Array.from({ length: 20 }, () => sendBatch('10.0.0.1'))
  await expect.poll(begun, timeout).toBe(20)
  await expect.poll(() => held.length, timeout).toBe(3)
  const one = sendBatch('10.0.0.2')
  await expect.poll(begun, timeout).toBe(21)
  for (const received of [4, 5]) {
    held.shift()?.()
    await expect.poll(() => origin.received.length, timeout).toBe(received)
  }
  // Right behind what was there before it: the lines are served in turn.
  const senders = origin.received.slice(3).map(({ headers }) => headers['x-forwarded-for'])
  expect(senders.filter((sender) => sender?.includes('10.0.0.2'))).toHaveLength(1)
  respondToAll()
  await Promise.all([...many, one])
})
