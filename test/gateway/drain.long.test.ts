import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { keyPair } from '../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { startRoundRobin } from '../support/round-robin.ts'

let origin: Origin
beforeEach(async () => {
  origin = await startOrigin((_, wire) => wire.respond({ content: 'here' }))
})
afterEach(() => origin.close())

type Tree = { readonly [key: string]: unknown }

const start = (drain: Tree, more: Tree = {}): Promise<TestGateway> =>
  startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /hit', ttl: '60s' }] },
      },
    },
    drain,
    ...more,
  })

/** A connection that keeps what was said on it. */
const dial = async (gateway: TestGateway) => {
  const { hostname, port } = new URL(gateway.publicAddress)
  return keeping(connect(Number(port), hostname), 'connect')
}
const keeping = async (socket: Socket, opened: string) => {
  let said = ''
  socket.on('data', (chunk) => {
    said += chunk
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, opened)
  return { socket, said: () => said, closed }
}

/** Whether the port takes connections. */
const isOpen = (gateway: TestGateway): Promise<boolean> =>
  dial(gateway).then(
    ({ socket }) => {
      socket.destroy()
      return true
    },
    () => false,
  )

/** A connection to the admin side that keeps what was said on it. */
const dialAdmin = (gateway: TestGateway) => dial({ ...gateway, publicAddress: gateway.adminAddress })

const readiness = async (gateway: TestGateway): Promise<unknown> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  return [response.status, ((await response.json()) as { reasons: unknown }).reasons]
}

describe('a gateway that drains', () => {
  test('it first fails readiness and continues to answer, on connections that close', async () => {
    const gateway = await start({ delay: '2s', timeout: '15s' })
    expect(await readiness(gateway)).toEqual([200, []])
    const before = await fetch(gateway.publicAddress)
    expect(before.headers.get('connection')).not.toBe('close')
    const drained = gateway.drain()
    expect(await readiness(gateway)).toEqual([503, ['draining']])
    expect((await fetch(`${gateway.adminAddress}/livez`)).status).toBe(200)
    const during = await fetch(gateway.publicAddress)
    expect([during.status, during.headers.get('connection')]).toEqual([200, 'close'])
    expect(await drained).toBe('finished')
    await expect(fetch(gateway.publicAddress)).rejects.toThrow()
  })

  test('then it accepts no connections and finishes requests in flight', async () => {
    const gateway = await start({ delay: '0ms', timeout: '15s' })
    let finish = (): void => {}
    origin.script = (_, wire) => {
      finish = () => wire.respond({ content: 'late' })
    }
    const slow = fetch(`${gateway.publicAddress}/slow`).then((response) => response.text())
    await origin.until(() => origin.received.length === 1)
    const drained = gateway.drain()
    await expect.poll(() => isOpen(gateway)).toBe(false)
    finish()
    expect(await slow).toBe('late')
    expect(await drained).toBe('finished')
  })

  test('after drain.timeout it cuts unfinished requests and logs their number', async () => {
    const gateway = await start({ delay: '0ms', timeout: '200ms' })
    origin.script = () => {}
    const never = fetch(`${gateway.publicAddress}/never`).then(
      () => 'answered',
      () => 'cut',
    )
    await origin.until(() => origin.received.length === 1)
    expect(await gateway.drain()).toBe('cut')
    // Its own timeout, which is longer, would have answered it.
    expect(await never).toBe('cut')
    await expect.poll(() => origin.open).toBe(0)
  })

  test('logs and counts an uncaught error', async () => {
    const gateway = await start({ delay: '0ms', timeout: '15s' })
    expect(await gateway.metric('trellis_process_faults_total')).toBe(0)
    gateway.faulted(new Error('planted'))
    expect(await gateway.metric('trellis_process_faults_total')).toBe(1)
    expect(await gateway.drain()).toBe('finished')
  })

  test('it answers a request that arrived on an idle connection', async () => {
    const gateway = await start({ delay: '500ms', timeout: '15s' })
    const { socket, said, closed } = await dial(gateway)
    socket.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\n')
    await expect.poll(said).toContain('here')
    const drained = gateway.drain()
    // The process stands still until the delay is over: timers come before what has arrived.
    setImmediate(() => {
      socket.write('GET /second HTTP/1.1\r\nHost: a\r\n\r\n')
      const until = performance.now() + 550
      while (performance.now() < until);
    })
    await closed
    expect(said().match(/HTTP\/1\.1 200/g)).toHaveLength(2)
    expect(said()).toContain('Connection: close')
    expect(await drained).toBe('finished')
  })

  test('it answers a request whose head becomes complete during the drain', async () => {
    const gateway = await start({ delay: '2s', timeout: '15s' })
    const { socket, said, closed } = await dial(gateway)
    socket.write('GET / HTTP/1.1\r\nHost:')
    const drained = gateway.drain()
    await pause(50)
    socket.write(' a\r\n\r\n')
    await closed
    expect(said()).toMatch(/^HTTP\/1\.1 200 .*here$/s)
    expect(await drained).toBe('finished')
  })

  test('it lets a slow client read the rest of a complete response', async () => {
    const content = 'x'.repeat(24 * 1024 * 1024)
    origin.script = (_, wire) => wire.respond({ content })
    const gateway = await start({ delay: '0ms', timeout: '15s' }, { cache: { maxEntryBytes: '32MiB' } })
    await fetch(`${gateway.publicAddress}/hit`).then((response) => response.text())
    const { socket, said, closed } = await dial(gateway)
    socket.write('GET /hit HTTP/1.1\r\nHost: a\r\n\r\n')
    await new Promise<void>((resolve) =>
      socket.once('data', () => {
        socket.pause()
        resolve()
      }),
    )
    const drained = gateway.drain()
    await pause(300)
    socket.resume()
    await closed
    expect(said().length).toBeGreaterThan(content.length)
    expect(await drained).toBe('finished')
  })

  test('it closes a connection after the response that had begun before', async () => {
    let finish = (): void => {}
    origin.script = (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhe')
      finish = () => wire.write('re')
    }
    const gateway = await start({ delay: '0ms', timeout: '15s' })
    const { socket, said, closed } = await dial(gateway)
    socket.write('GET /long HTTP/1.1\r\nHost: a\r\n\r\n')
    await expect.poll(said).toMatch(/he$/)
    const drained = gateway.drain()
    await expect.poll(() => isOpen(gateway)).toBe(false)
    finish()
    await closed
    expect(said()).toMatch(/here$/)
    expect(await drained).toBe('finished')
  })
})

describe('an idle connection does not delay a drain', () => {
  const tls = { listen: { port: 0, tls: keyPair('good') } }
  const secure = (gateway: TestGateway) =>
    keeping(
      connectTls({
        host: '127.0.0.1',
        port: Number(new URL(gateway.publicAddress).port),
        rejectUnauthorized: false,
      }),
      'secureConnect',
    )

  test.each([
    ['on which nothing has come', {}, dial, ''],
    ['on which the head of a request is not complete', {}, dial, 'GET / HTTP/1.1\r\nHost:'],
    ['on which nothing of a handshake has come', tls, dial, ''],
    ['on which nothing has come but the handshake', tls, secure, ''],
    ['on which nothing whole has come but the handshake', tls, secure, 'GET / HTTP/1.1\r\nHost:'],
  ])('%s', async (_, more, open, sent) => {
    const gateway = await start({ delay: '0ms', timeout: '15s' }, more)
    const { socket, closed } = await open(gateway)
    if (sent !== '') socket.write(sent)
    await pause(50)
    // After drain.timeout it would be 'cut'.
    expect(await gateway.drain()).toBe('finished')
    await closed
  })
})

test('a client of the admin side that has sent half a request keeps no drain open', async () => {
  const gateway = await start({ delay: '0ms', timeout: '5s' })
  const { socket, closed } = await dialAdmin(gateway)
  socket.write('GET /metrics HTTP/1.1\r\nHost:')
  // What was sent before on another connection has been read when this one is answered.
  await readiness(gateway)
  expect(await gateway.drain()).toBe('finished')
  await closed
})

const restarts = times(4, 20)
test(`${restarts} restarts of two instances behind a balancer fail no request`, async () => {
  const places = await Promise.all(
    [0, 1].map(async () => ({ public: await freePort(), admin: await freePort() })),
  )
  const startAt = (place: { public: number; admin: number }): Promise<TestGateway> =>
    // Longer than this one busy process may stand still: a connection that seems idle all the while is closed.
    start(
      { delay: '500ms', timeout: '15s' },
      { listen: { port: place.public }, admin: { port: place.admin } },
    )
  const running = await Promise.all(places.map(startAt))
  const balancer = await startRoundRobin(
    places.map((place) => ({
      origin: `http://127.0.0.1:${place.public}`,
      adminOrigin: `http://127.0.0.1:${place.admin}`,
    })),
    20,
  )
  let isLoaded = true
  let responded = 0
  const failures: unknown[] = []
  const client = async (path: string, init: RequestInit): Promise<void> => {
    while (isLoaded) {
      try {
        const response = await fetch(balancer.origin + path, init)
        await response.text()
        if (response.status === 200) responded += 1
        else failures.push(response.status)
      } catch (error) {
        failures.push(error)
      }
      await pause(2)
    }
  }
  const clients = [
    ...Array.from({ length: 4 }, () => client('/hit', {})),
    ...Array.from({ length: 2 }, () => client('/miss', {})),
    ...Array.from({ length: 2 }, () => client('/write', { method: 'POST', body: 'x'.repeat(10_000) })),
  ]
  const ends: unknown[] = []
  for (let restart = 0; restart < restarts; restart += 1) {
    const at = restart % 2
    ends.push(await running[at]?.drain())
    running[at] = await startAt(places[at] as (typeof places)[number])
    const before = responded
    await origin.until(() => responded >= before + 10)
  }
  isLoaded = false
  await Promise.all(clients)
  await balancer.close()
  await Promise.all(running.map((gateway) => gateway.close()))
  expect(failures).toEqual([])
  expect(new Set(ends)).toEqual(new Set(['finished']))
})
