import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { ConfigSnapshot } from '../../../src/exchange/config-snapshot.ts'
import type { Service } from '../../../src/exchange/service.ts'
import type { GatewayResponse } from '../../../src/http/message.ts'
import { createBufferedBytes } from '../../../src/server/buffered-bytes.ts'
import { createEdge } from '../../../src/server/server.ts'
import { startHttpServer } from '../../support/http-server.ts'

const service = {
  name: 'open',
  contract: 'open',
  mount: '',
  hosts: [],
  address: {},
  responses: {},
} as unknown as Service

type Edge = Parameters<typeof createEdge>[0]

const edgeOf = (
  run: Edge['handle'],
  refusedEarly: Edge['refusedEarly'],
  counts: Partial<Pick<Edge, 'inFlight' | 'unread'>> = {},
): ReturnType<typeof createEdge> =>
  createEdge({
    limits: {
      urlBytes: 1_000,
      keepAliveTimeoutMs: 5_000,
      websockets: { perService: 1, perClient: 1, idleTimeoutMs: 0, messageBytes: 1 },
    },
    trustedProxies: [],
    cors: undefined,
    poisoned: new Set(),
    snapshot: new ConfigSnapshot([service]),
    certificates: [],
    logger: pino({ level: 'silent' }),
    handle: run,
    refusedEarly,
    report: () => undefined,
    unread: { buffer: () => undefined },
    buffered: createBufferedBytes({ maxBytes: () => 1_000_000, report: () => undefined }),
    websockets: { count: () => undefined },
    revocations: { watch: () => () => {} },
    isDraining: () => false,
    turnedAway: () => undefined,
    inFlight: { enter: () => undefined, leave: () => undefined },
    ...counts,
  })

/** The origin of an edge whose requests are answered by `run`. */
const originOf = async (run: Edge['handle'], refusedEarly: Edge['refusedEarly']): Promise<string> => {
  const edge = await edgeOf(run, refusedEarly)
  const server = await startHttpServer(edge.request)
  onTestFinished(async () => {
    await server.close()
    await edge.close()
  })
  return `${server.origin}/`
}

test('when even telling of an error fails, the client sees its connection end', async () => {
  const origin = await originOf(
    () => Promise.reject(new Error('planted')),
    () => {
      throw new Error('planted as well')
    },
  )
  await expect(fetch(origin)).rejects.toThrow('fetch failed')
})

test.each(['GET', 'POST'])(
  'an error that nothing handles is a 500 for %s, and the process goes on',
  async (method) => {
    const origin = await originOf(
      () => Promise.reject(new Error('planted')),
      () => 'id',
    )
    expect((await fetch(origin, { method })).status).toBe(500)
    expect((await fetch(origin, { method })).status).toBe(500)
  },
)

test('a body that fails before its response is sent ends the connection and not the process', async () => {
  const failing = async (): Promise<GatewayResponse> => {
    const content = new PassThrough()
    // After all microtasks, so the server has the response, and before the end of the turn.
    queueMicrotask(() => process.nextTick(() => content.destroy(new Error('planted'))))
    return { status: 200, headers: [], content }
  }
  const origin = await originOf(failing, () => undefined)
  await expect(fetch(origin).then((response) => response.text())).rejects.toThrow()
})

test('a response that becomes ready when its HTTP/2 stream has just closed is neither in flight nor held', async () => {
  let current: Http2ServerResponse | undefined
  const counted: string[] = []
  const edge = await edgeOf(
    async () => {
      current?.stream.destroy()
      return { status: 200, headers: [], content: Buffer.alloc(100_000) }
    },
    () => undefined,
    {
      inFlight: { enter: () => counted.push('entered'), leave: () => counted.push('left') },
      unread: { buffer: () => counted.push('held') },
    },
  )
  const server = createServer((incoming, outgoing) => {
    current = outgoing
    edge.request(incoming as unknown as IncomingMessage, outgoing as unknown as ServerResponse)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    client.destroy()
    server.close()
    await edge.close()
  })
  await once(
    client.request({ ':path': '/' }).on('error', () => {}),
    'close',
  )
  expect(counted).toEqual([])
})
