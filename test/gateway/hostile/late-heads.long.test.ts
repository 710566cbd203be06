import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

test('requests that arrive behind an overdue head are not answered, and do not count as in flight', async () => {
  const origin = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'stored' }),
  )
  onTestFinished(() => origin.close())
  const gateway = await startTestGateway({
    limits: { headersTimeout: '200ms' },
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
  onTestFinished(() => gateway.close())
  await (await fetch(`${gateway.publicAddress}/x`, { headers: { connection: 'close' } })).text()
  const socket = connect({
    port: Number(new URL(gateway.publicAddress).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  await once(socket, 'connect')
  socket.write('GET /x HTTP/1.1\r\n')
  await expect.poll(() => text).toContain('HTTP/1.1 408')
  socket.write('Host: a\r\n\r\n')
  socket.write('GET /x HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000))
  await new Promise((resolve) => setTimeout(resolve, 500))
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  // The client leaves its half of the connection open.
  expect(socket.closed).toBe(false)
  await expect.poll(() => gateway.metric('trellis_connections ')).toBe(0)
})
