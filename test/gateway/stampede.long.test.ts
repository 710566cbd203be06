import { setImmediate } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

/** Each with a connection, whose two ends are in this process: a hard limit of 4,096 descriptors suffices. */
const readers = times(500, 1_500)

const dispatcher = new Agent({ pipelining: 0 })
afterAll(() => dispatcher.destroy())

const path = '/index.php/site-json/site/v2/posts/7'

/** Asks on a connection of its own, and gives back the status of the response. */
const ask = async (gateway: TestGateway): Promise<number> => {
  const response = await request(`${gateway.publicAddress}${path}`, { dispatcher, headersTimeout: 0 })
  await response.body.dump()
  return response.statusCode
}

const stampede = async (
  script: Script,
): Promise<{ origin: Origin; gateway: TestGateway; statuses: number[] }> => {
  const origin = await startOrigin()
  // On a busy machine it takes long until all clients wait.
  const patient = { timeouts: { headers: '2m', total: '2m' }, basePath: '/index.php/wp-json' }
  const gateway = await startTestGateway({
    limits: { requestTimeout: '2m' },
    services: { site: siteService(origin.origin, { upstream: { targets: [origin.origin], ...patient } }) },
  })
  onTestFinished(async () => {
    await origin.close()
    await gateway.close()
  })
  // Answers when all clients wait: a request that was not collapsed would be counted.
  origin.script = async (received, wire, count) => {
    while ((await gateway.metric('in_flight_requests')) < readers) await pause(50)
    // Requests begin in turns of the event loop, 32 in each.
    for (let turn = 0; turn < readers / 32; turn += 1) await setImmediate()
    await script(received, wire, count)
  }
  const statuses = await Promise.all(Array.from({ length: readers }, () => ask(gateway)))
  return { origin, gateway, statuses }
}

test(`${readers} concurrent readers of one target send one request to the upstream`, async () => {
  const { origin, gateway, statuses } = await stampede((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":7}' }),
  )
  expect(statuses).toHaveLength(readers)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(origin.received).toHaveLength(1)
  expect(await gateway.metric('cache_collapsed_total')).toBe(readers - 1)
})

test('when it fails they send that request and its one retry', async () => {
  const { origin, statuses } = await stampede((_, wire) => wire.reset())
  expect(statuses).toHaveLength(readers)
  expect(new Set(statuses)).toEqual(new Set([502]))
  expect(origin.received).toHaveLength(2)
})
