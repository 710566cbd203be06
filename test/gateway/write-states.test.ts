import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** Reads show the version. A write commits when `commit` opens, however its request or its response went. */
let origin: Origin
let gateway: TestGateway
let version: number
let commit: Latch
let sockets: Socket[]
/** The state in which the upstream leaves a write. */
let leave: 'ended' | 'cut' | 'open' | 'silent'

const open = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const event = (text: string): string => `${(text.length + 2).toString(16)}\r\n${text}\n\n\r\n`

/** Nothing ends because a busy machine is late. */
const patient = { headers: '1m', idle: '1m', total: '1m' }

const pagesOf = (more: Record<string, unknown> = {}) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin], timeouts: patient },
  cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
  ...more,
})

const services = (timeouts = patient) => ({
  pages: pagesOf({ upstream: { targets: [origin.origin], timeouts } }),
  site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /**', ttl: '1h' }] } }),
})

beforeEach(async () => {
  version = 1
  commit = createLatch()
  sockets = []
  leave = 'ended'
  origin = await startOrigin(
    async ({ method }, wire) => {
      if (method === 'GET')
        return wire.respond({
          headers: { 'Content-Type': 'application/json' },
          content: `[{"id":${version}}]`,
        })
      if (leave !== 'silent') wire.write(open + event('begun'))
      if (leave === 'cut') wire.reset()
      await commit.opened
      version += 1
      if (leave === 'ended') wire.write(`${event('done')}0\r\n\r\n`)
    },
    { respondsEarly: true },
  )
  gateway = await startTestGateway({ services: services() })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await origin.close()
})

const paths = ['/import', '/index.php/site-json/site/v2/posts'] as const
const read = async (path: string, address = gateway.publicAddress): Promise<readonly [string, string]> => {
  const response = await fetch(address + path)
  return [await response.text(), response.headers.get('cache-status') ?? '']
}
const readAll = (): Promise<readonly (readonly [string, string])[]> =>
  Promise.all(paths.map((path) => read(path)))
const contents = async (): Promise<readonly string[]> => (await readAll()).map(([text]) => text)
const one = '[{"id":1}]'
const two = '[{"id":2}]'

const store = async (): Promise<void> => {
  await readAll()
  expect((await readAll()).every(([, status]) => status.includes('hit'))).toBe(true)
}

/** What is read now is not stored, and so is right once the write has been carried out. */
const isQuarantined = async (): Promise<void> => {
  for (const [, status] of await readAll()) expect(status).toContain('unsettled')
  commit.open()
  await expect.poll(() => version).toBe(2)
  expect(await contents()).toEqual([two, two])
}

const post = (init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.publicAddress}/import`, { method: 'POST', body: 'x', ...init })

const dial = async (text: string): Promise<Socket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  return socket
}
const upload = 'POST /import HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('open: the response has begun', () => {
  test('nothing that the write may change is stored, and reads of it do not hit', async () => {
    await store()
    const response = await post()
    for (const [, status] of await readAll()) expect(status).toContain('unsettled')
    for (const [, status] of await readAll()) expect(status).not.toContain('hit')
    expect(await gateway.metric('trellis_writes_open', 'pages')).toBe(1)
    const report = await fetch(`${gateway.adminAddress}/status`)
    expect(await report.json()).toMatchObject({ openWrites: [{ service: 'pages', count: 1 }] })
    const explained = await fetch(`${gateway.adminAddress}/explain?url=${paths[1]}`)
    expect(await explained.json()).toMatchObject({
      openWrites: expect.stringMatching(/^1, the first for \d+ s/),
    })
    commit.open()
    expect(await response.text()).toContain('done')
    expect(await contents()).toEqual([two, two])
    expect((await readAll()).every(([, status]) => status.includes('hit'))).toBe(true)
    expect(await gateway.metric('trellis_writes_open', 'pages')).toBe(0)
  })

  test.each([
    ['an event', event('saved')],
    // As of a content coding, or of JSON.
    ['a piece that ends no line', '5\r\nsaved\r\n'],
  ])(
    'what %s acknowledges is shown by every read after it, also by one that joins an older fetch',
    async (_, piece) => {
      leave = 'open'
      origin.script = async ({ method }, wire) => {
        if (method !== 'GET') {
          wire.write(open)
          await commit.opened
          version += 1
          wire.write(piece)
          return
        }
        const shown = version
        // A read that shows the state before the event arrives after it.
        if (shown === 1) await new Promise((resolve) => setTimeout(resolve, 300))
        wire.respond({ headers: { 'Content-Type': 'application/json' }, content: `[{"id":${shown}}]` })
      }
      const response = await post()
      const before = contents()
      await expect.poll(() => origin.received.length).toBeGreaterThanOrEqual(3)
      commit.open()
      const reader = response.body?.getReader()
      await reader?.read()
      expect(await contents()).toEqual([two, two])
      expect(await before).toEqual([one, one])
      expect(await contents()).toEqual([two, two])
      await reader?.cancel()
    },
  )

  test('what is read before its end, and arrives after it, is not stored', async () => {
    const end = createLatch()
    const arrive = createLatch()
    origin.script = async ({ method }, wire) => {
      if (method === 'GET') {
        const shown = version
        if (shown === 1) await arrive.opened
        wire.respond({ headers: { 'Content-Type': 'application/json' }, content: `[{"id":${shown}}]` })
        return
      }
      wire.write(open + event('begun'))
      await end.opened
      version += 1
      wire.write('0\r\n\r\n')
    }
    const response = await post()
    const reader = response.body?.getReader()
    await reader?.read()
    const before = contents()
    await expect.poll(() => origin.received.length).toBeGreaterThanOrEqual(3)
    end.open()
    expect((await reader?.read())?.done).toBe(true)
    expect(await contents()).toEqual([two, two])
    arrive.open()
    expect(await before).toEqual([one, one])
    expect(await contents()).toEqual([two, two])
  })
})

describe('broken off: what may have changed is quarantined', () => {
  test('cut by the upstream', async () => {
    await store()
    leave = 'cut'
    await post()
      .then((response) => response.text())
      .catch(() => 'cut')
    await isQuarantined()
  })

  test('silent for longer than the idle timeout', async () => {
    await gateway.close()
    gateway = await startTestGateway({ services: services({ ...patient, idle: '300ms' }) })
    await store()
    leave = 'open'
    origin.script = async ({ method }, wire) => {
      if (method === 'GET')
        return wire.respond({
          headers: { 'Content-Type': 'application/json' },
          content: `[{"id":${version}}]`,
        })
      wire.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun')
      await commit.opened
      version += 1
    }
    expect(
      await post()
        .then((response) => response.text())
        .catch(() => 'cut'),
    ).toBe('cut')
    await isQuarantined()
  })

  test('left by its client', async () => {
    await store()
    leave = 'open'
    const response = await post()
    await response.body?.cancel()
    await expect.poll(() => gateway.metric('trellis_write_states_total', '"broken-off"')).toBe(1)
    await isQuarantined()
  })

  test('shorter than its declared length says', async () => {
    await store()
    origin.script = async ({ method }, wire) => {
      if (method === 'GET')
        return wire.respond({
          headers: { 'Content-Type': 'application/json' },
          content: `[{"id":${version}}]`,
        })
      wire.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nbegun')
      wire.end()
      await commit.opened
      version += 1
    }
    await post()
      .then((response) => response.text())
      .catch(() => 'cut')
    await isQuarantined()
  })

  test('without any response', async () => {
    await gateway.close()
    gateway = await startTestGateway({ services: services({ ...patient, headers: '2s' }) })
    await store()
    leave = 'silent'
    const client = new AbortController()
    const left = post({ signal: client.signal }).catch(() => 'left')
    await origin.until(() => origin.received.some(({ method }) => method === 'POST'))
    client.abort()
    expect(await left).toBe('left')
    await expect.poll(() => gateway.metric('trellis_write_states_total', '"broken-off"')).toBe(1)
    await isQuarantined()
  })
})

describe('partly sent: the upstream may act on what it has', () => {
  test('cut by the client', async () => {
    await store()
    leave = 'silent'
    const socket = await dial(`${upload}2\r\nx\n\r\n`)
    await expect.poll(() => gateway.metric('trellis_write_states_total', '"partly-sent"')).toBe(1)
    socket.resetAndDestroy()
    await expect.poll(() => gateway.metric('trellis_write_states_total', '"broken-off"')).toBe(1)
    await isQuarantined()
  })

  test('longer than the gateway takes: 413', async () => {
    await gateway.close()
    gateway = await startTestGateway({
      services: services(),
      limits: { uploadBytes: '64KiB' },
    })
    await store()
    leave = 'silent'
    const socket = await dial(upload)
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`
    socket.write(chunk)
    await expect.poll(() => gateway.metric('trellis_write_states_total', '"partly-sent"')).toBe(1)
    socket.write(chunk.repeat(3))
    expect(String(((await once(socket, 'data')) as [Buffer])[0])).toContain('413')
    await isQuarantined()
  })
})

test('not sent: a body of which nothing was sent drops nothing', async () => {
  await store()
  const socket = await dial(upload)
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(1)
  socket.resetAndDestroy()
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  expect((await readAll()).every(([, status]) => status.includes('hit'))).toBe(true)
})

describe('ended: what it drops is computed at its end, for the newest configuration', () => {
  test('a service that a reload has renamed meanwhile, and one that it has added', async () => {
    const response = await post()
    await gateway.put({
      services: {
        renamed: pagesOf({ mount: '/' }),
        added: siteService(origin.origin, {
          mount: '/added',
          cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        }),
      },
    })
    const shown = ['/import', '/added/site/v2/posts']
    for (const path of shown) expect((await read(path))[0]).toBe(one)
    commit.open()
    await response.text()
    for (const path of shown) expect((await read(path))[0]).toBe(two)
  })

  test('a service that a reload has given another table', async () => {
    const api = (invalidates: readonly string[]) => ({
      services: {
        api: {
          ...pagesOf({ contract: 'openapi', invalidation: 'structural' }),
          document: fileURLToPath(new URL('./openapi/structural.yaml', import.meta.url)),
          resources: [{ operation: 'closeShop', invalidates }],
        },
      },
    })
    expect(await gateway.put(api([]))).toMatchObject({ kind: 'applied' })
    const response = await fetch(`${gateway.publicAddress}/shops/1/close`, { method: 'POST' })
    expect(await gateway.put(api(['/visits/{shop}']))).toMatchObject({ kind: 'applied' })
    expect((await read('/visits/1'))[0]).toBe(one)
    commit.open()
    await response.text()
    expect((await read('/visits/1'))[0]).toBe(two)
  })
})
