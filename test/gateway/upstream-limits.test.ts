import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { createLatch } from '../support/latch.ts'
import { type Origin, type OriginOptions, pause, type Script, startOrigin } from '../support/origin.ts'
import { request, shortTimes, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (script?: Script, options?: OriginOptions): Promise<Origin> => {
  const origin = await startOrigin(script, options)
  onTestFinished(() => origin.close())
  return origin
}

/** An origin that answers with the target, once the test says so. */
const heldOrigin = async (): Promise<{ origin: Origin; held: (() => void)[] }> => {
  const held: (() => void)[] = []
  const origin = await originOf(async (received, wire) => {
    await new Promise<void>((resolve) => held.push(resolve))
    wire.respond({ content: received.target })
  })
  return { origin, held }
}

test('never more requests in flight than allowed, served in the order they came', async () => {
  const { origin, held } = await heldOrigin()
  const { upstream } = upstreamOf([origin.origin], { maxConcurrent: 4, queue: { max: 64, timeoutMs: 0 } })
  const asked = Array.from({ length: 60 }, (_, i) => upstream.request(request({ target: `/${i}` })))
  for (let responded = 0; responded < 60; responded += 1) {
    await origin.until(() => held.length === Math.min(4, 60 - responded))
    held.shift()?.()
  }
  expect(origin.maxInFlight).toBe(4)
  const responses = await Promise.all(asked)
  const inOrder = Array.from({ length: 60 }, (_, i) => `/${i}`)
  expect(responses.map(({ content }) => String(content))).toEqual(inOrder)
  expect(origin.accepted).toBeLessThanOrEqual(8)
  const order = origin.received.map(({ target }) => target)
  // The first four have connections to open, of which any may be ready first.
  expect(order.slice(0, 4).sort()).toEqual(inOrder.slice(0, 4))
  expect(order.slice(4)).toEqual(inOrder.slice(4))
})

test('a full queue answers upstream_busy at once and says when to come back', async () => {
  const { origin, held } = await heldOrigin()
  const { upstream, events } = upstreamOf([origin.origin], {
    maxConcurrent: 1,
    queue: { max: 1, timeoutMs: 0 },
  })
  const first = [upstream.request(request()), upstream.request(request())]
  await expect(upstream.request(request())).rejects.toMatchObject({
    code: 'upstream_busy',
    retryAfterSeconds: 1,
  })
  for (const one of first) {
    await origin.until(() => held.length === 1)
    held.shift()?.()
    await one
  }
  expect(events).toContainEqual(expect.objectContaining({ kind: 'slot-wait-finished', outcome: 'full' }))
})

test('a caller with many requests does not keep another one waiting', async () => {
  const origin = await originOf()
  const { upstream } = upstreamOf([origin.origin], { maxConcurrent: 2, queue: { max: 64, timeoutMs: 0 } })
  const many = Array.from({ length: 50 }, () =>
    upstream.request(request({ target: '/many', clientAddress: '192.0.2.1' })),
  )
  await upstream.request(request({ target: '/single', clientAddress: '192.0.2.2' }))
  expect(origin.received.findIndex(({ target }) => target === '/single')).toBeLessThanOrEqual(4)
  await Promise.all(many)
})

test('a request that waits too long in the queue is refused, and the slot is passed on', async () => {
  const { origin, held } = await heldOrigin()
  const { upstream } = upstreamOf([origin.origin], { maxConcurrent: 1, queue: { max: 9, timeoutMs: 20 } })
  const first = upstream.request(request())
  await expect(upstream.request(request())).rejects.toMatchObject({ code: 'upstream_busy' })
  await origin.until(() => held.length === 1)
  held.shift()?.()
  expect((await first).status).toBe(200)
  const next = upstream.request(request())
  await origin.until(() => held.length === 1)
  held.shift()?.()
  expect((await next).status).toBe(200)
})

test('a slot is held until the content has gone', async () => {
  const rest = createLatch()
  const origin = await originOf(async (_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab')
    await rest.opened
    wire.write('cd')
  })
  const { upstream } = upstreamOf([origin.origin], { maxConcurrent: 1 })
  const response = await upstream.request(request())
  expect(upstream.snapshot()).toMatchObject({ inFlight: 1, targets: [{ outstanding: 1 }] })
  rest.open()
  expect(await buffer(response.content as Readable)).toEqual(Buffer.from('abcd'))
  expect(upstream.snapshot()).toMatchObject({ inFlight: 0, targets: [{ outstanding: 0 }] })
})

test.each([
  ['while it waits for its answer', 20],
  ['before it was sent', 0],
])('a caller who goes %s ends the upstream request', async (_, ms) => {
  const origin = await originOf(() => {})
  const { upstream } = upstreamOf([origin.origin])
  const caller = new AbortController()
  const response = upstream.request(request({ signal: caller.signal }))
  if (ms > 0) await origin.until(() => origin.received.length === 1)
  caller.abort()
  await expect(response).rejects.toMatchObject({ code: 'client_gone' })
  await origin.until(() => upstream.snapshot().inFlight === 0)
  expect(upstream.snapshot()).toMatchObject({ queued: 0, targets: [{ outstanding: 0, state: 'unknown' }] })
  await pause(30)
  expect(origin.received).toHaveLength(ms > 0 ? 1 : 0)
})

test('a caller who goes while it queues leaves the queue', async () => {
  const { origin, held } = await heldOrigin()
  const { upstream, events } = upstreamOf([origin.origin], { maxConcurrent: 1 })
  const first = upstream.request(request())
  const caller = new AbortController()
  const response = upstream.request(request({ signal: caller.signal }))
  caller.abort()
  await expect(response).rejects.toMatchObject({ code: 'client_gone' })
  await origin.until(() => held.length === 1)
  held.shift()?.()
  await first
  expect(origin.received).toHaveLength(1)
  expect(events).toContainEqual(expect.objectContaining({ kind: 'slot-wait-finished', outcome: 'aborted' }))
})

test('a slot stays taken during the handshake of an aborted request', async () => {
  // Speaks TCP and nothing else: the TLS handshake waits.
  const silent = await originOf(() => {})
  // Longer than the test may take to look.
  const timeouts = { ...shortTimes, connectMs: 2_000 }
  const { upstream } = upstreamOf([silent.origin.replace('http:', 'https:')], { timeouts })
  const caller = new AbortController()
  const response = upstream.request(request({ signal: caller.signal }))
  await silent.until(() => silent.open === 1)
  caller.abort()
  await expect(response).rejects.toMatchObject({ code: 'client_gone' })
  expect(upstream.snapshot().inFlight).toBe(1)
  await silent.until(() => upstream.snapshot().inFlight === 0)
})

test('a caller that has left sends nothing', async () => {
  const origin = await originOf()
  const { upstream } = upstreamOf([origin.origin])
  await expect(upstream.request(request({ signal: AbortSignal.abort() }))).rejects.toMatchObject({
    code: 'client_gone',
  })
  expect(origin.accepted).toBe(0)
})

test('unread content stops the upstream, and is dropped with the caller', async () => {
  let gone = false
  const origin = await originOf((_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    const piece = Buffer.from(`10000\r\n${'a'.repeat(0x10000)}\r\n`)
    const more = () => {
      while (!wire.socket.destroyed && wire.socket.write(piece));
    }
    wire.socket.on('drain', more)
    wire.socket.on('close', () => {
      gone = true
    })
    more()
  })
  const { upstream } = upstreamOf([origin.origin], { timeouts: { ...shortTimes, totalMs: 30_000 } })
  const response = await upstream.request(request())
  const content = response.content as Readable
  await pause(100)
  expect(content.readableLength).toBeLessThan(1_000_000)
  // A slow reader is no idle upstream.
  await pause(300)
  expect(content.destroyed).toBe(false)
  content.destroy()
  await origin.until(() => gone)
  expect(upstream.snapshot()).toMatchObject({ inFlight: 0 })
})

/** A signal, and how many listen to it. */
const watchedSignal = () => {
  const { signal } = new AbortController()
  let listeners = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners -= 1
    remove(...args)
  }
  return { signal, listeners: () => listeners }
}

test('listeners on the signal of a caller do not pile up', async () => {
  const origin = await originOf()
  const { upstream } = upstreamOf([origin.origin])
  const { signal, listeners } = watchedSignal()
  for (let i = 0; i < 5; i += 1) await upstream.request(request({ signal }))
  expect(listeners()).toBe(0)
})

test('however they end', async () => {
  const origin = await originOf((_, wire, count) => (count % 2 === 0 ? wire.reset() : wire.respond({})))
  const { upstream } = upstreamOf([origin.origin], { retry: { attempts: 1, budget: 0 } })
  const { signal, listeners } = watchedSignal()
  for (let i = 0; i < 6; i += 1) await upstream.request(request({ signal })).catch(() => undefined)
  expect(origin.received).toHaveLength(6)
  expect(listeners()).toBe(0)
})

test('an upload streams through in pieces, and its length is sent when it is known', async () => {
  const origin = await originOf((received, wire) =>
    wire.respond({ content: String(received.content.length) }),
  )
  const { upstream } = upstreamOf([origin.origin])
  const stream = () => Readable.from([Buffer.alloc(70_000), Buffer.alloc(30_000)])
  const chunked = await upstream.request(request({ method: 'POST', content: stream() }))
  const counted = await upstream.request(
    request({ method: 'POST', content: stream(), headers: ['content-length', '100000'] }),
  )
  expect([String(chunked.content), String(counted.content)]).toEqual(['100000', '100000'])
  expect(
    origin.received.map(({ headers }) => headers['content-length'] ?? headers['transfer-encoding']),
  ).toEqual(['chunked', '100000'])
})

test('an upload that breaks off is the fault of the client, and is not tried again', async () => {
  const origin = await originOf((_, wire) => wire.respond({}))
  const { upstream } = upstreamOf([origin.origin])
  const content = new Readable({ read() {} })
  content.push('begin')
  const response = upstream.request(request({ method: 'PUT', content, headers: ['content-length', '100'] }))
  setTimeout(() => content.destroy(new Error('aborted')), 20)
  await expect(response).rejects.toMatchObject({ code: 'client_gone' })
  expect(upstream.snapshot()).toMatchObject({ inFlight: 0, targets: [{ state: 'unknown', outstanding: 0 }] })
})

test('an upload whose connection the upstream breaks is the fault of the upstream', async () => {
  const origin = await startOrigin((_, wire) => wire.reset(), { respondsEarly: true })
  onTestFinished(() => origin.close())
  const { upstream, events } = upstreamOf([origin.origin])
  const content = new Readable({
    read() {
      setTimeout(() => this.push(Buffer.alloc(65_536)), 1)
    },
  })
  await expect(upstream.request(request({ method: 'POST', content }))).rejects.toMatchObject({
    code: 'upstream_broken',
  })
  expect(events).toContainEqual(expect.objectContaining({ kind: 'attempt-finished', outcome: 'broken' }))
})

test('a response that comes while the content is still going up reaches the caller', async () => {
  const origin = await originOf((_, wire) => wire.respond({ status: 413, content: 'too large' }), {
    respondsEarly: true,
  })
  const { upstream } = upstreamOf([origin.origin])
  const content = new Readable({ read() {} })
  content.push(Buffer.alloc(1_000))
  const response = await upstream.request(request({ method: 'POST', content }))
  expect([response.status, String(response.content)]).toEqual([413, 'too large'])
  content.destroy()
})

test('an upload that the upstream does not take ends in time', async () => {
  const origin = await originOf((_, wire) => void wire.socket.pause(), { respondsEarly: true })
  const { upstream } = upstreamOf([origin.origin], { timeouts: shortTimes })
  const endless = new Readable({
    read() {
      this.push(Buffer.alloc(65_536))
    },
  })
  await expect(upstream.request(request({ method: 'POST', content: endless }))).rejects.toMatchObject({
    code: 'upstream_timeout',
  })
  expect(endless.destroyed).toBe(true)
})

test('headers of the connection end here, and Host is the one of the target', async () => {
  const origin = await originOf((_, wire) =>
    wire.write(
      'HTTP/1.1 200 OK\r\nConnection: close, X-Hop, Cache-Control\r\nX-Hop: 1\r\nCache-Control: private\r\n' +
        'Keep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n',
    ),
  )
  const { upstream } = upstreamOf([origin.origin])
  const response = await upstream.request(request({ headers: ['host', 'evil.example', 'accept', '*/*'] }))
  expect(response.headers).toEqual([
    'Cache-Control',
    'private',
    'Set-Cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
    'Content-Length',
    '0',
  ])
  expect(origin.received[0]?.headers).toEqual({
    host: origin.origin.slice(7),
    connection: 'keep-alive',
    accept: '*/*',
  })
})

test.each([
  ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'],
  ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n'],
])('%s: %j has no content', async (method, response) => {
  const origin = await originOf((_, wire) => wire.write(response))
  const { upstream } = upstreamOf([origin.origin])
  const headers = ['if-none-match', '"x"']
  expect((await upstream.request(request({ method, headers }))).content).toBeUndefined()
})

test('close finishes requests in flight and refuses new ones', async () => {
  const { origin, held } = await heldOrigin()
  const { upstream } = upstreamOf([origin.origin])
  const under = upstream.request(request())
  const closed = upstream.close()
  await expect(upstream.request(request())).rejects.toMatchObject({ code: 'shutting_down' })
  await origin.until(() => held.length === 1)
  held.shift()?.()
  expect((await under).status).toBe(200)
  await closed
  await origin.until(() => origin.open === 0)
})

test('destroy ends requests in flight', async () => {
  const origin = await originOf(() => {})
  const { upstream } = upstreamOf([origin.origin])
  const under = upstream.request(request())
  await origin.until(() => origin.received.length === 1)
  const failed = expect(under).rejects.toMatchObject({ code: 'shutting_down' })
  await upstream.destroy()
  await failed
  await origin.until(() => origin.open === 0)
})
