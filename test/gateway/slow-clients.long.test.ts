import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

type Tree = { readonly [key: string]: unknown }

const large = Buffer.alloc(3 * 1024 * 1024, 'x')
/** More than the buffers of the operating system hold. */
const huge = Buffer.alloc(24 * 1024 * 1024, 'x')

let origin: Origin
let gateway: TestGateway
let sockets: Socket[]
beforeEach(async () => {
  sockets = []
  origin = await startOrigin(async ({ target }, wire) => {
    if (target.includes('slow')) await pause(900)
    if (target.includes('late-end')) {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${huge.length + 3}\r\n\r\n`)
      wire.write(huge)
      await pause(3_000)
      wire.write('end')
    } else if (target.includes('huge')) wire.respond({ content: huge })
    else wire.respond({ content: target.includes('large') ? large : 'small' })
  })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const start = async (limits: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({
    limits,
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /hit/**', ttl: '60s' }] },
      },
    },
    ...more,
  })
}
const dial = async (): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
/** Far less than the gateway's own times, of half a minute and more, and more than a busy machine takes. */
const soonMs = 60_000
/** Whether the gateway ended it within that time. */
const endedWithin = (socket: Socket, maxMs: number): Promise<boolean> =>
  Promise.race([once(socket, 'close').then(() => true), pause(maxMs).then(() => false)])
const cut = (reason: string): Promise<number> =>
  gateway.metric('trellis_connections_cut_total', `reason="${reason}"`)

describe('a client that sends slowly', () => {
  test.each([
    ['nothing at all', async () => {}],
    ['a field every now and then', (socket: Socket) => drip(socket, 'X-A: b\r\n')],
    ['one octet every now and then', (socket: Socket) => drip(socket, 'x')],
  ])('%s: the connection ends', async (_, send) => {
    await start({ headersTimeout: '300ms', requestTimeout: '600ms' })
    const socket = await dial()
    socket.resume()
    socket.write('GET / HTTP/1.1\r\nHost: a.test\r\n')
    void send(socket)
    expect(await endedWithin(socket, soonMs)).toBe(true)
    expect(origin.received).toHaveLength(0)
  })

  test('gets 408 for content that arrives too slowly, and the upstream gets no request', async () => {
    await start({ headersTimeout: '300ms', requestTimeout: '600ms' })
    const socket = await dial()
    let response = ''
    socket.on('data', (chunk: Buffer) => {
      response += chunk.toString()
    })
    socket.write('POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\n')
    void drip(socket, 'x')
    expect(await endedWithin(socket, soonMs)).toBe(true)
    expect(origin.received).toHaveLength(0)
    expect(response === '' || response.startsWith('HTTP/1.1 408')).toBe(true)
  })

  const drip = async (socket: Socket, text: string): Promise<void> => {
    while (!socket.destroyed && socket.writable) {
      socket.write(text)
      await pause(50)
    }
  }
})

describe('a client that reads nothing of a response', () => {
  test.each([
    ['that is stored', '/hit/large'],
    ['that streams', '/large'],
  ])('%s: the connection ends, and what was waiting for it is let go', async (_, path) => {
    await start({ readerTimeout: '400ms' })
    if (path.startsWith('/hit')) await (await fetch(gateway.publicAddress + path)).arrayBuffer()
    const socket = await dial()
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`.repeat(4))
    await expect.poll(() => cut('slow-reader')).toBe(1)
    await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  })

  test('a slow reader gets the whole response', async () => {
    // Less than it takes altogether, and far more than it takes nothing.
    await start({ readerTimeout: '1500ms' })
    const socket = await dial()
    let taken = 0
    socket.write('GET /large HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
    socket.on('data', (chunk: Buffer) => {
      taken += chunk.length
      socket.pause()
      setTimeout(() => socket.resume(), 50)
    })
    await once(socket, 'close')
    expect(taken).toBeGreaterThan(large.length)
    expect(await cut('slow-reader')).toBe(0)
  })

  /** Sends a request and reads nothing for most of the timeout. */
  const hesitate = async (socket: Socket, path: string): Promise<void> => {
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await pause(700)
    socket.resume()
  }

  test('a client that hesitates once is disconnected when it reads nothing of a later response', async () => {
    await start({ readerTimeout: '1s', minBytesPerSecond: '0' })
    const socket = await dial()
    await hesitate(socket, '/huge')
    await expect.poll(() => socket.bytesRead, { timeout: soonMs }).toBeGreaterThan(huge.length)
    expect(await cut('slow-reader')).toBe(0)
    socket.pause()
    // A buffer of the operating system that has grown with the first response holds one more, but not four.
    socket.write('GET /huge HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
    await expect.poll(() => cut('slow-reader'), { timeout: soonMs }).toBe(1)
  })

  test('a client that hesitates once is not disconnected while the upstream sends nothing', async () => {
    await start({ readerTimeout: '1s' })
    const socket = await dial()
    let last = ''
    socket.on('data', (chunk: Buffer) => {
      last = chunk.toString('latin1')
    })
    await hesitate(socket, '/huge/with-a-late-end')
    await expect.poll(() => last, { timeout: soonMs }).toMatch(/end$/)
    expect(await cut('slow-reader')).toBe(0)
  })

  test('a client that waits for a slow upstream does not count as a slow reader', async () => {
    await start({ readerTimeout: '200ms' })
    expect(await (await fetch(`${gateway.publicAddress}/slow`)).text()).toBe('small')
    expect(await cut('slow-reader')).toBe(0)
  })
})

describe('connections', () => {
  test('the connections of one address are bounded; other addresses and a trusted proxy have their own bound', async () => {
    await start({ connectionsPerAddress: 2 })
    await dial()
    await dial()
    expect(await endedWithin(await dial(), soonMs)).toBe(true)
    expect(await cut('address')).toBe(1)
    sockets[0]?.destroy()
    await expect.poll(() => gateway.metric('trellis_connections')).toBe(1)
    expect(await endedWithin(await dial(), 200)).toBe(false)
    const { services } = {
      services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
    }
    await gateway.put({ limits: { connectionsPerAddress: 2 }, trustedProxies: ['127.0.0.1'], services })
    expect(await endedWithin(await dial(), 200)).toBe(false)
  })

  test('the number of all connections is bounded', async () => {
    await start({ connections: 2 })
    await dial()
    await dial()
    expect(await endedWithin(await dial(), soonMs)).toBe(true)
    expect(await cut('too-many')).toBe(1)
  })
})
