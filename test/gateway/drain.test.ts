import { afterEach, beforeEach, describe, expect, test } from 'vitest'
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

const readiness = async (gateway: TestGateway): Promise<unknown> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  return [response.status, ((await response.json()) as { reasons: unknown }).reasons]
}

describe('a gateway that goes away', () => {
  test('first says so where readiness is asked, and goes on answering, on connections that close', async () => {
    const gateway = await start({ delay: '400ms', timeout: '5s' })
    expect(await readiness(gateway)).toEqual([200, []])
    const before = await fetch(gateway.publicAddress)
    expect(before.headers.get('connection')).not.toBe('close')
    const drained = gateway.drain()
    await pause(50)
    expect(await readiness(gateway)).toEqual([503, ['draining']])
    expect((await fetch(`${gateway.adminAddress}/livez`)).status).toBe(200)
    const during = await fetch(gateway.publicAddress)
    expect([during.status, during.headers.get('connection')]).toEqual([200, 'close'])
    expect(await drained).toBe('finished')
    await expect(fetch(gateway.publicAddress)).rejects.toThrow()
  })

  test('then takes nothing new and finishes what is under way', async () => {
    const gateway = await start({ delay: '0ms', timeout: '5s' })
    origin.script = async (_, wire) => {
      await pause(400)
      wire.respond({ content: 'late' })
    }
    const slow = fetch(`${gateway.publicAddress}/slow`).then((response) => response.text())
    await origin.until(() => origin.received.length === 1)
    const drained = gateway.drain()
    await pause(100)
    await expect(fetch(gateway.publicAddress)).rejects.toThrow()
    expect(await slow).toBe('late')
    expect(await drained).toBe('finished')
  })

  test('and cuts what is not finished when its time is over, which it says', async () => {
    const gateway = await start({ delay: '0ms', timeout: '200ms' })
    origin.script = () => {}
    const never = fetch(`${gateway.publicAddress}/never`).then(
      () => 'answered',
      () => 'cut',
    )
    await origin.until(() => origin.received.length === 1)
    const began = performance.now()
    expect(await gateway.drain()).toBe('cut')
    expect(await never).toBe('cut')
    expect(performance.now() - began).toBeLessThan(4_000)
    await expect.poll(() => origin.open).toBe(0)
  })

  test('is told of an error that nothing caught, and counts it', async () => {
    const gateway = await start({ delay: '0ms', timeout: '5s' })
    expect(await gateway.metric('trellis_process_faults_total')).toBe(0)
    gateway.faulted(new Error('planted'))
    expect(await gateway.metric('trellis_process_faults_total')).toBe(1)
    expect(await gateway.drain()).toBe('finished')
  })

  test('answers a request that has come on an idle connection before it is read, with the time for it over', async () => {
    const gateway = await start({ delay: '100ms', timeout: '5s' })
    const { connect } = await import('node:net')
    const { hostname, port } = new URL(gateway.publicAddress)
    const idle = connect(Number(port), hostname)
    let said = ''
    idle.on('data', (chunk) => {
      said += chunk
    })
    idle.on('error', () => {})
    const closed = new Promise((resolve) => idle.once('close', resolve))
    idle.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\n')
    await expect.poll(() => said).toContain('here')
    const drained = gateway.drain()
    await pause(60)
    // The process stands still until the delay is over: timers come before what has arrived.
    setImmediate(() => {
      idle.write('GET /second HTTP/1.1\r\nHost: a\r\n\r\n')
      const until = performance.now() + 100
      while (performance.now() < until);
    })
    await closed
    expect(said.match(/HTTP\/1\.1 200/g)).toHaveLength(2)
    expect(said).toContain('Connection: close')
    expect(await drained).toBe('finished')
  })

  test('is not kept by a connection on which nothing has come', async () => {
    const gateway = await start({ delay: '0ms', timeout: '30s' })
    const { connect } = await import('node:net')
    const { hostname, port } = new URL(gateway.publicAddress)
    const silent = connect(Number(port), hostname)
    await new Promise((resolve) => silent.once('connect', resolve))
    await pause(50)
    const closed = new Promise((resolve) => silent.once('close', resolve))
    expect(await gateway.drain()).toBe('finished')
    await closed
  })
})

test('20 restarts of two instances behind a balancer fail no request', async () => {
  const places = await Promise.all(
    [0, 1].map(async () => ({ public: await freePort(), admin: await freePort() })),
  )
  const startAt = (place: { public: number; admin: number }): Promise<TestGateway> =>
    // Longer than this one busy process may stand still: a connection that seems idle all the while is closed.
    start({ delay: '500ms', timeout: '5s' }, { listen: { port: place.public }, admin: { port: place.admin } })
  const running = await Promise.all(places.map(startAt))
  const balancer = await startRoundRobin(
    places.map((place) => ({
      origin: `http://127.0.0.1:${place.public}`,
      adminOrigin: `http://127.0.0.1:${place.admin}`,
    })),
    20,
  )
  let isLoaded = true
  let answered = 0
  const failures: unknown[] = []
  const client = async (path: string, init: RequestInit): Promise<void> => {
    while (isLoaded) {
      try {
        const response = await fetch(balancer.origin + path, init)
        await response.text()
        if (response.status === 200) answered += 1
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
  for (let restart = 0; restart < 20; restart += 1) {
    const at = restart % 2
    ends.push(await running[at]?.drain())
    running[at] = await startAt(places[at] as (typeof places)[number])
    await pause(60)
  }
  isLoaded = false
  await Promise.all(clients)
  await balancer.close()
  await Promise.all(running.map((gateway) => gateway.close()))
  expect(failures).toEqual([])
  expect(new Set(ends)).toEqual(new Set(['finished']))
  expect(answered).toBeGreaterThan(200)
}, 60_000)
