import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { type Companion, postChange, startCompanion } from '../../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const site = '/index.php/site-json/site/v2'

let companion: Companion
let gateway: TestGateway
const sockets: Socket[] = []

beforeAll(async () => {
  companion = await startCompanion()
  gateway = await startTestGateway({
    services: {
      blog: siteService(companion.origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        changes: { token: companion.token, poll: '0s' },
      }),
      other: siteService(companion.origin.origin, {
        mount: '/other/index.php/site-json',
        changes: { token: 'token-of-another-service', poll: '0s' },
      }),
    },
  })
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
closeAfterAll(() => [gateway, companion])

const status = async (): Promise<string> => {
  const response = await fetch(`${gateway.publicAddress}${site}/posts/1`)
  await response.text()
  return response.headers.get('cache-status') ?? ''
}
const stored = async (): Promise<void> => {
  await status()
  expect(await status()).toContain('hit')
}

/** A connection to the admin side, and what has come from it. */
const open = async (localAddress = '127.0.0.1'): Promise<{ socket: Socket; text(): string }> => {
  const socket = connect({
    port: Number(new URL(gateway.adminAddress).port),
    host: '127.0.0.1',
    localAddress,
  })
  sockets.push(socket)
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return { socket, text: () => text }
}

const head = (headers: readonly string[]): string =>
  ['POST /changes HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', ...headers, '', ''].join(
    '\r\n',
  )

const signed = (body: string, time?: number): string =>
  `Trellis-Signature: ${companion.sign('POST', '/changes', body, time)}`
const now = (): number => Math.floor(Date.now() / 1000)

const bodyOf = (more: object = {}): string =>
  JSON.stringify({
    incarnation: companion.incarnation,
    sequence: 7,
    fingerprint: 'f1',
    changes: [postChange(1)],
    ...more,
  })

const push = async (body: string): Promise<[number, unknown]> => {
  const response = await fetch(`${gateway.adminAddress}/changes`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Trellis-Signature': companion.sign('POST', '/changes', body),
    },
    body,
  })
  return [response.status, await response.json()]
}

describe('a body that arrives slowly', () => {
  test.each<[string, () => string]>([
    ['without a credential', () => 'X: y'],
    ['with a token that no service has', () => 'Authorization: Bearer an-unknown-token'],
    ['with a signature of an unknown key', () => signed('').replace(/key=.{4}/, 'key=0000')],
    ['with a signature that has expired', () => signed('', now() - 400)],
  ])('is not waited for %s', async (_, credential) => {
    const connections = await Promise.all(Array.from({ length: 40 }, () => open()))
    for (const { socket } of connections) socket.write(`${head([credential(), 'Content-Length: 200000'])}{`)
    for (const { text } of connections) {
      await expect.poll(text).toContain('HTTP/1.1 401')
      expect(text().toLowerCase()).toContain('connection: close')
    }
    // The rest of the body is not read either.
    await expect.poll(() => connections.every(({ socket }) => socket.closed)).toBe(true)
  })

  test('is held for ten seconds, and 64 of them at a time', async () => {
    const connections = await Promise.all(Array.from({ length: 300 }, () => open()))
    const header = signed('')
    for (const { socket } of connections) socket.write(head([header, 'Content-Length: 200000']))
    const part = Buffer.alloc(100_000, 0x20)
    for (const { socket } of connections) socket.write(part)
    const turnedAway = (): number => connections.filter(({ text }) => text().includes('HTTP/1.1 429')).length
    await expect.poll(turnedAway).toBeGreaterThan(200)
    const trickle = setInterval(() => {
      for (const { socket } of connections) if (!socket.destroyed) socket.write(' ')
    }, 500)
    try {
      const closed = (): number => connections.filter(({ socket }) => socket.closed).length
      await expect.poll(closed, { interval: 200 }).toBe(300)
    } finally {
      clearInterval(trickle)
    }
    await stored()
    expect(await push(bodyOf())).toMatchObject([200, { dropped: 1 }])
  })
})

describe('bodies that never end, with the headers of a report that was seen', () => {
  /** Gives the number of those that were refused. */
  const flood = async (address: string): Promise<() => number> => {
    const header = signed('').replace(/hmac=.{8}/, 'hmac=00000000')
    const connections = await Promise.all(Array.from({ length: 80 }, () => open(address)))
    for (const { socket } of connections) socket.write(`${head([header, 'Content-Length: 200000'])}{`)
    return () => connections.filter(({ text }) => text().includes('HTTP/1.1 429')).length
  }

  test.each([
    ['from another address', '127.0.0.2', 30],
    ['from its own address', '127.0.0.1', 31],
  ])('keep no report out: %s', async (_, address, sequence) => {
    await stored()
    await expect.poll(await flood(address)).toBe(16)
    expect(await push(bodyOf({ sequence }))).toMatchObject([200, { dropped: 1 }])
  })

  test('from another address keep out no report that arrives slowly', async () => {
    const body = bodyOf({ sequence: 32 })
    const { socket, text } = await open()
    socket.write(`${head([signed(body), `Content-Length: ${body.length}`])}${body.slice(0, 5)}`)
    await expect.poll(await flood('127.0.0.2')).toBeGreaterThan(16)
    socket.write(body.slice(5))
    await expect.poll(text).toContain('HTTP/1.1 200')
  })
})

describe('a report that is not sent as others are', () => {
  test('in chunks, it is read as any other', async () => {
    await stored()
    const body = bodyOf({ sequence: 20 })
    const { socket, text } = await open()
    socket.write(head([signed(body), 'Transfer-Encoding: chunked', 'Connection: close']))
    for (const sign of body) socket.write(`1\r\n${sign}\r\n`)
    socket.write('0\r\n\r\n')
    await expect.poll(text).toContain('HTTP/1.1 200')
    expect(await status()).toContain('fwd=uri-miss')
  })

  test('with Expect: 100-continue, it is asked for and read', async () => {
    await stored()
    const body = bodyOf({ sequence: 21 })
    const { socket, text } = await open()
    socket.write(head([signed(body), `Content-Length: ${body.length}`, 'Expect: 100-continue']))
    await expect.poll(text).toContain('HTTP/1.1 100')
    socket.write(body)
    await expect.poll(text).toContain('HTTP/1.1 200')
    expect(await status()).toContain('fwd=uri-miss')
  })

  test.each<[string, (body: string) => readonly string[]]>([
    [
      'Content-Length and Transfer-Encoding',
      (body) => [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked'],
    ],
    ['two lengths', (body) => [`Content-Length: ${body.length}`, 'Content-Length: 2']],
    ['a length that is no number', () => ['Content-Length: 1e3']],
    ['another coding', () => ['Transfer-Encoding: gzip, chunked']],
    ['a length that is shorter', (body) => [`Content-Length: ${body.length - 1}`]],
  ])('with %s, it drops nothing', async (_, framing) => {
    await stored()
    const body = bodyOf({ sequence: 22 })
    const { socket, text } = await open()
    socket.write(head([signed(body), ...framing(body)]) + body)
    await expect.poll(text).toMatch(/^HTTP\/1\.1 4\d\d/)
    expect(text()).not.toContain('HTTP/1.1 200')
    expect(await status()).toContain('hit')
  })

  test('with more than 256 KiB, it is refused before it has come', async () => {
    for (const framing of ['Content-Length: 300000', 'Transfer-Encoding: chunked']) {
      const { socket, text } = await open()
      socket.write(head([signed(''), framing]))
      if (framing.startsWith('T')) socket.write(`50000\r\n${' '.repeat(0x50000)}\r\n`)
      await expect.poll(text).toContain('HTTP/1.1 413')
    }
  })
})

describe('a signed report that cannot be read drops everything of the service', () => {
  const with7 = (text: string) => (body: string) => body.replace('"sequence":7', `"sequence":${text}`)
  test.each<[string, (body: string) => string]>([
    ['a member that is there twice', (body) => body.replace('{', '{"changes":[{"kind":"user","id":1}],')],
    ['a sequence beyond 2^53', with7('9007199254740993')],
    ['a sequence beyond 2^64', with7('99999999999999999999')],
    ['a sequence that is infinite', with7('1e999')],
    ['a negative sequence', with7('-1')],
    ['a fraction as sequence', with7('7.5')],
    ['deep nesting', (body) => body.replace('[', '['.repeat(60_000))],
    ['a member __proto__', (body) => body.replace('{', '{"__proto__":{"sequence":1},')],
    ['no content', () => ''],
  ])('%s', async (_, change) => {
    await stored()
    expect(await push(change(bodyOf()))).toMatchObject([400, { code: 'unreadable' }])
    expect(await status()).toContain('fwd=uri-miss')
  })
})
