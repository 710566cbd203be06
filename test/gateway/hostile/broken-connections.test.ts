import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'
import { readResponses } from '../../support/read-messages.ts'
import { startRecorder } from '../../support/recorder.ts'

const dialled = async (gateway: TestGateway): Promise<Socket> => {
  const { port, hostname } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const open = async (
  script: Script,
): Promise<{ gateway: TestGateway; origin: Origin; dial(): Promise<Socket> }> => {
  const origin = await startOrigin(script)
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
  })
  return { gateway, origin, dial: () => dialled(gateway) }
}

const request = 'GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n'

test('of the pipelined requests of a closed connection the first is cancelled, also at the upstream, and the others never get there', async () => {
  const asked: Socket[] = []
  const { gateway, origin, dial } = await open((_, wire) => {
    asked.push(wire.socket)
  })
  const client = await dial()
  client.write(request.repeat(5))
  await origin.until(() => asked.length === 1)
  expect(await gateway.metric('trellis_in_flight_requests')).toBe(1)
  client.destroy()
  await origin.until(() => asked.every((socket) => socket.destroyed))
  expect(asked).toHaveLength(1)
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
})

test('a response that arrives while its connection breaks affects no other request', async () => {
  const { gateway, dial } = await open(async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n')
    await pause(1)
    wire.write('x'.repeat(200_000))
  })
  for (let i = 0; i < 60; i += 1) {
    const client = await dial()
    client.write(`${request}GET /open/y HTTP/1.1\r\nHost : bad\r\n\r\n`)
    await pause(i % 6)
    client.resetAndDestroy()
  }
  expect((await fetch(`${gateway.publicAddress}/open/x`)).status).toBe(200)
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
})

test('content that turns out broken ends the request at the upstream, which never gets it whole', async () => {
  const upstream = await startRecorder()
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/open', upstream: { targets: [upstream.origin] } } },
  })
  onTestFinished(async () => {
    await gateway.close()
    await upstream.close()
  })
  const client = await dialled(gateway)
  let said = ''
  client.on('data', (chunk) => {
    said += chunk.toString('latin1')
  })
  client.write('POST /open/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
  await expect.poll(() => upstream.unfinished()).toBe(1)
  client.write('nonsense\r\n')
  await once(client, 'close')
  expect(said).toMatch(/^HTTP\/1\.1 400 /)
  await expect.poll(() => upstream.unfinished()).toBe(0)
  expect(upstream.requests).toEqual([])
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
})

test('interim responses never come behind the head of their response, also when it has waited for its turn', async () => {
  const { gateway, dial } = await open(async (received, wire) => {
    if (received.target === '/first') await pause(30)
    else wire.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
    wire.respond({ content: 'ok' })
  })
  const client = await dial()
  let said = ''
  client.on('data', (chunk) => {
    said += chunk.toString('latin1')
  })
  client.write(
    'GET /open/first HTTP/1.1\r\nHost: a\r\n\r\n' +
      'POST /open/second HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc',
  )
  await once(client, 'close')
  const { messages, rest, fault } = readResponses(Buffer.from(said, 'latin1'))
  expect({ fault, rest: rest.length }).toEqual({ fault: undefined, rest: 0 })
  const responses = messages.filter(({ startLine }) => startLine.includes(' 200 '))
  expect(responses.map(({ content }) => content.toString())).toEqual(['ok', 'ok'])
  expect(await gateway.metric('trellis_in_flight_requests')).toBe(0)
})
