import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

const connections = 500
const perConnection = 20
const readers = connections * perConnection

const path = '/index.php/site-json/site/v2/posts/7'

/** Asks so often on one connection without waiting, and gives back the statuses of the answers. */
const askOn = async (gateway: TestGateway): Promise<string[]> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(perConnection))
  let text = ''
  const statuses = (): string[] =>
    [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status as string)
  for await (const chunk of socket) {
    text += (chunk as Buffer).toString('latin1')
    // The last answer is here when its content is.
    if (text.split('}').length > perConnection && statuses().length === perConnection) break
  }
  return statuses()
}

const stampede = async (
  script: Script,
): Promise<{ origin: Origin; gateway: TestGateway; statuses: string[] }> => {
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
    // Pipelined requests begin in turns of the event loop, 64 in each.
    for (let turn = 0; turn < readers / 32; turn += 1) await setImmediate()
    await script(received, wire, count)
  }
  const answers = await Promise.all(Array.from({ length: connections }, () => askOn(gateway)))
  return { origin, gateway, statuses: answers.flat() }
}

test(`${readers} concurrent readers of one target send one request to the upstream`, async () => {
  const { origin, gateway, statuses } = await stampede((_, wire) =>
    wire.respond({ fields: { 'Content-Type': 'application/json' }, content: '{"id":7}' }),
  )
  expect(statuses).toHaveLength(readers)
  expect(new Set(statuses)).toEqual(new Set(['200']))
  expect(origin.received).toHaveLength(1)
  expect(await gateway.metric('cache_collapsed_total')).toBe(readers - 1)
}, 120_000)

test('when it fails they send that request and its one retry', async () => {
  const { origin, statuses } = await stampede((_, wire) => wire.reset())
  expect(statuses).toHaveLength(readers)
  expect(new Set(statuses)).toEqual(new Set(['502']))
  expect(origin.received).toHaveLength(2)
}, 120_000)
