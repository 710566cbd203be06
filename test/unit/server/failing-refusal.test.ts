import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Service } from '../../../src/pipeline/service.ts'
import { createEdge } from '../../../src/server/server.ts'

const service = {
  name: 'open',
  contract: 'open',
  mount: '/',
  hosts: [],
  upstream: { placeholderOrigin: 'http://127.0.0.1:1' },
} as unknown as Service

test('when even telling of an error fails, the client sees its connection end', async () => {
  const edge = await createEdge({
    limits: { urlBytes: 1_000 },
    trustedProxies: [],
    http2: false,
    cors: undefined,
    distrusted: new Set(),
    services: [service],
    certificates: [],
    logger: pino({ level: 'silent' }),
    run: () => Promise.reject(new Error('planted')),
    refusedEarly: (): never => {
      throw new Error('planted as well')
    },
    report: () => undefined,
    unread: { hold: () => undefined },
    websockets: { count: () => undefined },
    isDraining: () => false,
    turnedAway: () => undefined,
    inFlight: { enter: () => undefined, leave: () => undefined },
  })
  const server = createServer(edge.request).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed')
  server.close()
  await edge.close()
})
