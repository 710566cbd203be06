import { expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

const start = async (script: Script, batch: object, upstream: object = {}): Promise<void> => {
  origin = await startOrigin(script)
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        batch,
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', ...upstream },
      }),
    },
  })
}

const update = (id: number) => ({ method: 'PUT', path: `/site/v2/posts/${id}`, body: { title: 'x' } })

const send = (requests: readonly unknown[], signal?: AbortSignal) =>
  postBatch(gateway, { requests }, { 'X-Request-Deadline-Ms': '99999999' }, signal)

const respondsToAll: Script = ({ content, target }, wire) => {
  if (!target.endsWith('/batch/v1')) return wire.respond({ headers: json, content: '{}' })
  const { requests } = JSON.parse(content.toString()) as { requests: unknown[] }
  const responses = requests.map(() => '{"body":{},"status":200,"headers":[]}')
  return wire.respond({ status: 207, headers: json, content: `{"responses":[${responses.join(',')}]}` })
}

test.each(['item', 'chunk'])('with split %s the upstream gets the time that is left', async (split) => {
  await start(respondsToAll, { split, deadline: '5s' })
  const headers = { 'X-Request-Deadline-Ms': '99999999' }
  await (await send([{ ...update(1), headers }, update(2), update(3), update(4)])).arrayBuffer()
  expect(origin.received.length).toBeGreaterThan(1)
  for (const { headers } of origin.received) {
    const left = Number(headers['x-request-deadline-ms'])
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThanOrEqual(5_000)
  }
})

test('without a deadline the upstream gets no deadline header', async () => {
  await start(respondsToAll, { split: 'item', deadline: '0s' })
  await (await send([update(1)])).arrayBuffer()
  expect(origin.received[0]?.headers['x-request-deadline-ms']).toBeUndefined()
})

test.each(['item', 'chunk'])(
  'with split %s what waits for its turn at the upstream is withdrawn when the client goes; what was sent is not',
  async (split) => {
    // Batches take at most three quarters of the slots: one of two.
    const waiting = 1
    const held: (() => void)[] = []
    await start(
      async (request, wire, count) => {
        if (request.target.includes('/batch/v1') || request.method === 'PUT')
          return respondsToAll(request, wire, count)
        await new Promise<void>((resolve) => held.push(resolve))
        return wire.respond({ headers: json, content: '{}' })
      },
      { split },
      { maxConcurrent: 2, clientShare: 1 },
    )
    const single = (id: number) => fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/pages/${id}`)
    // Single requests take all slots of the upstream.
    const singles = [single(1), single(2)]
    await origin.until(() => held.length === 2)
    const client = new AbortController()
    const batch = send([update(1), update(2), update(3)], client.signal)
    batch.catch(() => {})
    const queued = () => gateway.metric('trellis_upstream_waiting_requests', 'site')
    await expect.poll(queued).toBe(waiting)
    const withdrawn = () => gateway.metric('trellis_upstream_queue_total', 'site', 'outcome="aborted"')
    expect(await withdrawn()).toBe(0)
    client.abort()
    await expect.poll(withdrawn).toBe(waiting)
    for (const release of held) release()
    await Promise.all(singles.map(async (one) => (await one).arrayBuffer()))
    await pause(100)
    expect(origin.received.map(({ method }) => method)).toEqual(['GET', 'GET'])
  },
)

test('an item with Retry-After is sent again once, after that time', async () => {
  const times: number[] = []
  await start(
    (_, wire) => {
      times.push(performance.now())
      wire.respond({ status: 429, headers: { ...json, 'Retry-After': '1' }, content: '{"code":"slow_down"}' })
    },
    { split: 'item' },
  )
  const { responses } = (await (await send([update(1)])).json()) as { responses: unknown[] }
  expect(responses).toMatchObject([{ status: 429, headers: { 'Retry-After': '1' } }])
  expect(times).toHaveLength(2)
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(900)
})

test.each([
  ['there is not that much time', { deadline: '9s' }, '10'],
  ['it is asked for too long a time', {}, '11'],
  ['it is not told how long', {}, 'soon'],
])('it is not sent again when %s', async (_, batch, retryAfter) => {
  await start(
    (_request, wire) =>
      wire.respond({ status: 429, headers: { ...json, 'Retry-After': retryAfter }, content: '{}' }),
    { split: 'item', ...batch },
  )
  await (await send([update(1)])).arrayBuffer()
  expect(origin.received).toHaveLength(1)
})
