import { readFileSync } from 'node:fs'
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type Settings,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import type { GatewayResponse } from '../../../src/http/message.ts'
import type { UpstreamOptions } from '../../../src/upstream/options.ts'
import { startOrigin } from '../../support/origin.ts'
import { noTls, request, upstreamOf } from './upstream-of.ts'

const pem = (name: string): string =>
  readFileSync(new URL(`../../gateway/fixtures/upstream-tls/${name}`, import.meta.url), 'utf8')

const certificate = { cert: pem('good.pem'), key: pem('good.key') }

type Respond = (incoming: Http2ServerRequest, response: Http2ServerResponse) => void

/** An upstream that speaks HTTP/2, with its sessions, oldest first. */
const startHttp2 = async (respond: Respond, settings: Settings = {}) => {
  const sessions: ServerHttp2Session[] = []
  const server = createSecureServer({ ...certificate, settings }, respond)
  server.on('session', (session) => sessions.push(session))
  server.on('sessionError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, sessions }
}

const over = (origin: string, options: Partial<UpstreamOptions> = {}) =>
  upstreamOf([origin], {
    http2: true,
    tls: { ...noTls, ca: pem('ca.pem') },
    retry: { attempts: 1, budget: 0 },
    eject: { after: 1_000, forMs: 100, maxShare: 0.5 },
    ...options,
  }).upstream

const textOf = async ({ content }: GatewayResponse): Promise<string> =>
  String(content instanceof Readable ? await buffer(content) : (content ?? ''))

const echo: Respond = (incoming, response) => {
  incoming.resume()
  incoming.on('end', () => response.end('ok'))
}

test('an upstream that ends its session after each response fails at most the request that meets the end', async () => {
  const { origin, sessions } = await startHttp2((incoming, response) => {
    echo(incoming, response)
    response.stream.session?.close()
  })
  const upstream = over(origin)
  const outcomes = new Set<unknown>()
  const post = async (): Promise<void> => {
    const content = Readable.from([Buffer.from('x')])
    const outcome = await upstream
      .forward(request({ method: 'POST', content }))
      .then(textOf, (error: { code: unknown }) => error.code)
    outcomes.add(outcome)
  }
  for (let round = 0; round < 15; round += 1) {
    await Promise.all([post(), post(), post().then(post)])
    const last = sessions.at(-1)
    if (last?.destroyed === false) last.goaway()
  }
  expect([...outcomes].filter((one) => one !== 'ok' && one !== 'upstream_broken')).toEqual([])
  await expect.poll(() => upstream.forward(request()).then(textOf, String)).toBe('ok')
  await expect.poll(() => sessions.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(1)
})

test('an upstream that does not choose HTTP/2 gets its requests over HTTP/1.1, and is not offered HTTP/2 with each of them', async () => {
  const origin = await startOrigin((_, wire) => wire.respond({ content: 'plain' }), { tls: certificate })
  onTestFinished(() => origin.close())
  const upstream = over(origin.origin, { connectionMaxAgeMs: 60_000 })
  const ask = async () => textOf(await upstream.forward(request()))
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(['plain', 'plain', 'plain'])
  for (let i = 0; i < 5; i += 1) expect(await ask()).toBe('plain')
  // One that found out, and those of the three that came together.
  expect(origin.accepted).toBeLessThanOrEqual(4)
  await upstream.close()
})

test('more requests than the upstream allows at once in a session use several sessions', async () => {
  const { origin, sessions } = await startHttp2(
    (_, response) => void setTimeout(() => response.end('ok'), 100),
    { maxConcurrentStreams: 2 },
  )
  const upstream = over(origin)
  expect(await textOf(await upstream.forward(request()))).toBe('ok')
  const answers = await Promise.all(Array.from({ length: 6 }, () => upstream.forward(request()).then(textOf)))
  expect(answers).toEqual(Array(6).fill('ok'))
  expect(sessions.length).toBeGreaterThan(1)
  await upstream.close()
  expect(upstream.snapshot().targets).toMatchObject([{ connections: 0 }])
})

test('a session that has reached its age ends with its last response, and another one takes the next request', async () => {
  const held: Http2ServerResponse[] = []
  const { origin, sessions } = await startHttp2((incoming, response) => {
    if (incoming.url === '/held') held.push(response)
    else response.end('ok')
  })
  const upstream = over(origin, { connectionMaxAgeMs: 200 })
  const long = upstream.forward(request({ target: '/held' })).then(textOf)
  await expect.poll(() => held.length).toBe(1)
  const ask = async () => {
    await upstream.forward(request()).then(textOf)
    return sessions.length
  }
  await expect.poll(ask).toBeGreaterThan(1)
  held[0]?.end('late')
  expect(await long).toBe('late')
  await expect.poll(() => sessions[0]?.closed).toBe(true)
})

/** An empty SETTINGS frame (RFC 9113 §6.5). */
const settingsFrame = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])

test.each([
  ['no response', settingsFrame, 'headers'],
  ['no settings', Buffer.alloc(0), 'connect'],
])(
  'after an upstream has sent %s in time, the next request takes another connection',
  async (_, first, late) => {
    let connections = 0
    const server = createTlsServer({ ...certificate, ALPNProtocols: ['h2'] }, (socket) => {
      connections += 1
      socket.on('error', () => undefined).resume()
      socket.write(first)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const upstream = over(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, {
      timeouts: { connectMs: late === 'connect' ? 200 : 3_000, headersMs: 200, idleMs: 100, totalMs: 3_000 },
    })
    for (let i = 1; i < 4; i += 1) {
      await expect(upstream.forward(request())).rejects.toMatchObject({ code: 'upstream_timeout' })
      expect(connections).toBe(i)
    }
    await expect.poll(() => upstream.snapshot().targets).toMatchObject([{ connections: 0 }])
  },
)

/** GOAWAY without an error, behind stream 0 (RFC 9113 §6.8). */
const goAwayFrame = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])

test.each([
  ['is silent', settingsFrame, 0],
  ['says GOAWAY', Buffer.concat([settingsFrame, goAwayFrame]), 0],
  ['is silent until the session is too old', settingsFrame, 100],
])('an upstream that %s and does not close its side keeps no connection', async (_, first, maxAgeMs) => {
  const open = new Set<Socket>()
  let accepted = 0
  const server = createTlsServer({ ...certificate, ALPNProtocols: ['h2'], allowHalfOpen: true }, (socket) => {
    accepted += 1
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    socket.resume()
    socket.write(first)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const upstream = over(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    timeouts: { connectMs: 3_000, headersMs: 300, idleMs: 300, totalMs: 3_000 },
    connectionMaxAgeMs: maxAgeMs,
  })
  for (let i = 0; i < 3; i += 1) await expect(upstream.forward(request())).rejects.toBeDefined()
  expect(accepted).toBeGreaterThan(0)
  await expect.poll(() => upstream.snapshot().targets, { timeout: 3_000 }).toMatchObject([{ connections: 0 }])
})

test('fields keep their repetitions and octets; Host becomes the authority, and cookies one field', async () => {
  let received: unknown
  const { origin } = await startHttp2((incoming, response) => {
    received = incoming.headers
    response.writeHead(200, { 'set-cookie': ['a=1', 'b=2'], 'x-octets': 'caf\u00e9' })
    response.end()
  })
  const upstream = over(origin, { hostField: 'shop.example' })
  const fields = ['Cookie', 'a=1', 'Cookie', 'b=2', 'X-A', '1', 'x-a', '2']
  const answer = await upstream.forward(request({ fields: [...fields, '__proto__', 'x'] }))
  await textOf(answer)
  expect(received).toMatchObject({ ':authority': 'shop.example', cookie: 'a=1; b=2', 'x-a': '1, 2' })
  const values = (name: string) =>
    answer.fields.filter((_, at) => at % 2 === 1 && answer.fields[at - 1]?.toLowerCase() === name)
  expect(values('set-cookie')).toEqual(['a=1', 'b=2'])
  expect(values('x-octets')).toEqual(['caf\u00e9'])
})

test('a long response waits for its reader and arrives whole', async () => {
  const bytes = 8 * 1024 * 1024
  let sent = 0
  const { origin } = await startHttp2((_, response) => {
    const content = Readable.from(Array.from({ length: 128 }, () => Buffer.alloc(bytes / 128)))
    content.on('data', (chunk: Buffer) => (sent += chunk.length)).pipe(response)
  })
  const upstream = over(origin, { timeouts: { connectMs: 3_000, headersMs: 3_000, idleMs: 0, totalMs: 0 } })
  const { content } = await upstream.forward(request())
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(sent).toBeLessThan(bytes / 2)
  expect((await buffer(content as Readable)).length).toBe(bytes)
})

test('a closed upstream ends its sessions, and one that is destroyed fails the requests that wait for a connection', async () => {
  const { origin, sessions } = await startHttp2(echo)
  const upstream = over(origin)
  await upstream.forward(request()).then(textOf)
  await upstream.close()
  await expect.poll(() => sessions[0]?.closed).toBe(true)
  const other = over(origin)
  const waiting = other.forward(request())
  await Promise.all([expect(waiting).rejects.toMatchObject({ code: 'shutting_down' }), other.destroy()])
})
