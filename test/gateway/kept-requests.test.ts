import { beforeAll, beforeEach, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

// How a request is framed on both sides; reasons are in docs/evidence/reported-faults.md.

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

const send = async (head: string, content = '') => {
  const bytes = `${head}\r\nHost: a\r\nConnection: close\r\n\r\n${content}`
  expect(await exchangeBytes(gateway.publicAddress, bytes)).toMatch(/^HTTP\/1\.1 200 /)
  return origin.received[0]
}

test('an upload in chunks is sent in chunks, its trailers are not', async () => {
  const chunks = '3\r\nabc\r\n0\r\nX-Trailer: planted\r\n\r\n'
  const sent = await send('POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trailer', chunks)
  expect(sent?.headers['transfer-encoding']).toBe('chunked')
  expect(sent?.content.toString()).toBe('abc')
  expect(sent?.head).not.toMatch(/trailer/i)
})

test('a POST without content has its length, a DELETE has none', async () => {
  expect((await send('POST /a HTTP/1.1\r\nContent-Length: 0'))?.headers['content-length']).toBe('0')
  origin.received.length = 0
  expect((await send('DELETE /a HTTP/1.1\r\nContent-Length: 0'))?.headers['content-length']).toBeUndefined()
})

test.each([
  ['br;q=abc', /^br(?!;\s*q=0)/],
  ['br;q=0', /br;\s*q=0/],
])('Accept-Encoding: %s', async (accepted, forwarded) => {
  const sent = await send(`GET /a HTTP/1.1\r\nAccept-Encoding: ${accepted}`)
  expect(sent?.headers['accept-encoding']).toMatch(forwarded)
})
