import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_, wire) => wire.respond({ content: 'x'.repeat(50_000) }))
  gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
})
closeAfterAll(() => [gateway, origin])

test('bytes are counted as they go over connections, of those that are open too', async () => {
  const sent = () => gateway.metric('trellis_sent_bytes_total')
  const open = () => gateway.metric('trellis_connections')
  const before = await sent()
  const response = await exchangeBytes(
    gateway.publicAddress,
    'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n',
  )
  await expect.poll(async () => (await sent()) - before).toBe(response.length)
  await expect.poll(open).toBe(0)
  const received = await gateway.metric('trellis_received_bytes_total')
  await fetch(gateway.publicAddress).then((response) => response.arrayBuffer())
  expect(await open()).toBe(1)
  expect((await gateway.metric('trellis_received_bytes_total')) - received).toBeGreaterThan(50)
})

test.each([
  ['two lengths', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 'framing'],
  [
    'a length and a coding',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'framing',
  ],
  [
    'a coding that is not known',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n',
    'transfer-coding',
  ],
  [
    'a size that is no number',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    'chunking',
  ],
  ['a name with a space', 'GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n', 'field'],
  ['no request line', 'hello\r\n\r\n', 'start-line'],
  ['no host', 'GET / HTTP/1.1\r\n\r\n', 'host'],
])('%s is counted by what is wrong', async (_, bytes, reason) => {
  const count = () => gateway.metric('trellis_protocol_refusals_total', `reason="${reason}"`)
  const before = await count()
  await exchangeBytes(gateway.publicAddress, bytes)
  expect((await count()) - before).toBe(1)
})
