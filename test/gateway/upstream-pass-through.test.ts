import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, onTestFinished, test } from 'vitest'
import { toGatewayError } from '../../src/upstream/failure.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { startHttpServer } from '../support/http-server.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { request, shortTimes, upstreamOf } from '../unit/upstream/upstream-of.ts'

/** node:http in front of a scripted origin, by way of an upstream; contents are streams in both directions. */
const proxied = async (script?: Script, options: Partial<UpstreamOptions> = {}) => {
  const origin: Origin = await startOrigin(script)
  onTestFinished(() => origin.close())
  const room = upstreamOf([origin.origin], options)
  const server = await startHttpServer(async (incoming, outgoing) => {
    const gone = new AbortController()
    outgoing.once('close', () => outgoing.writableFinished || gone.abort())
    const length = incoming.headers['content-length']
    try {
      const response = await room.upstream.request(
        request({
          method: incoming.method as string,
          target: incoming.url as string,
          headers: length === undefined ? [] : ['content-length', length],
          content: incoming.method === 'POST' ? incoming : undefined,
          signal: gone.signal,
        }),
      )
      outgoing.writeHead(response.status, response.headers as string[])
      const { content } = response
      if (content instanceof Readable) await pipeline(content, outgoing)
      else outgoing.end(content)
    } catch (error) {
      const { code, facts } = toGatewayError(error)
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(facts.status).end(JSON.stringify({ code }))
    }
  })
  onTestFinished(server.close)
  return { origin, ...room, address: server.origin }
}

test('a response passes with its headers, and the target sees its own Host', async () => {
  const { origin, address, events } = await proxied((received, wire) =>
    wire.respond({ headers: { 'X-Hop': '1', Connection: 'X-Hop', 'X-End': '2' }, content: received.target }),
  )
  const response = await fetch(`${address}/a/b?c=1`)
  expect([response.status, await response.text()]).toEqual([200, '/a/b?c=1'])
  expect([response.headers.get('x-hop'), response.headers.get('x-end')]).toEqual([null, '2'])
  expect(origin.received[0]?.headers['host']).toBe(origin.origin.slice('http://'.length))
  expect(events).toContainEqual(expect.objectContaining({ kind: 'attempt-finished', outcome: 'answered' }))
})

test('content passes both ways as it is', async () => {
  const { origin, address } = await proxied((received, wire) => wire.respond({ content: received.content }))
  const content = Buffer.alloc(300_000, 'x')
  const response = await fetch(address, {
    method: 'POST',
    body: content,
    headers: { 'content-type': 'application/octet-stream' },
  })
  expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true)
  expect(origin.received[0]?.headers['content-length']).toBe('300000')
})

test('a 503 passes exactly once', async () => {
  const { origin, address } = await proxied((_, wire) =>
    wire.respond({ status: 503, headers: { 'Retry-After': '600' } }),
  )
  expect((await fetch(address)).status).toBe(503)
  expect(origin.received).toHaveLength(1)
})

test.each<[string, Script, number, string]>([
  ['a reset', (_, wire) => wire.reset(), 502, 'upstream_broken'],
  ['no HTTP', (_, wire) => wire.write('nonsense\r\n\r\n'), 502, 'upstream_broken'],
  ['no answer', () => {}, 504, 'upstream_timeout'],
])('%s is answered %i %s', async (_, script, status, code) => {
  const { address } = await proxied(script, {
    retry: { attempts: 1, budget: 0 },
    ...(code === 'upstream_timeout' ? { timeouts: shortTimes } : {}),
  })
  const response = await fetch(address)
  expect([response.status, await response.json()]).toEqual([status, { code }])
})

test('both paths share one set of slots, and a full queue is 503', async () => {
  const taken = createLatch()
  const { origin, upstream, address } = await proxied(
    async (_, wire) => {
      await taken.opened
      wire.respond({})
    },
    { maxConcurrent: 1, queue: { max: 1, timeoutMs: 0 } },
  )
  const forwarded = upstream.request(request())
  const passed = fetch(address)
  await origin.until(() => upstream.snapshot().queued === 1)
  const refused = await fetch(address)
  expect([refused.status, await refused.json()]).toEqual([503, { code: 'upstream_busy' }])
  taken.open()
  expect([(await forwarded).status, (await passed).status]).toEqual([200, 200])
  expect(origin.maxInFlight).toBe(1)
})

test('a response cut off by the upstream is cut off for the client too', async () => {
  const hasHead = createLatch()
  const { address } = await proxied(async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
    await hasHead.opened
    wire.reset()
  })
  const response = await fetch(address)
  hasHead.open()
  await expect(response.text()).rejects.toThrow()
})

test('a client that goes in the middle of the response frees the slot and the connection', async () => {
  let gone = false
  const { origin, upstream, address } = await proxied((_, wire) => {
    wire.socket.on('close', () => {
      gone = true
    })
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
  })
  const client = new AbortController()
  const response = await fetch(address, { signal: client.signal })
  expect(response.status).toBe(200)
  client.abort()
  await origin.until(() => gone && upstream.snapshot().inFlight === 0)
})
