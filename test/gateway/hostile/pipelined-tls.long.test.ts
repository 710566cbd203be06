import { once } from 'node:events'
import { Agent, request as httpsRequest } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import { beforeAll, expect, test } from 'vitest'
import { keyPair } from '../../support/certificates.ts'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

/** `npm run soak:pipelining` sends a million. */
const requests = Number(process.env['PIPELINED'] ?? 5_000)
const isLong = requests >= 1_000_000

/** Ten responses that wait for the one before them are more than node:http keeps for a connection that it goes on to read. */
const octets = 3_000

/** While this is written to its client, node:http pauses its parser at the next request of the connection. */
const longOctets = 100_000

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  origin = await startOrigin(({ target }, wire) =>
    wire.respond({
      content: `${'x'.repeat(target.startsWith('/long') ? longOctets : octets)}<${target.slice(1)}>`,
    }),
  )
  gateway = await startTestGateway({
    listen: { port: 0, http2: true, tls: keyPair('good') },
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

/** Every number has a stored response of its own. */
const numbers = 101

const dial = async (): Promise<TLSSocket> => {
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  return socket
}

/** Sends requests without waiting, as many as `window` beyond those that are answered; resolves with how many were, in order. */
const sendPipelined = async (count: number, window: number, prefix = ''): Promise<number> => {
  const socket = await dial()
  let sent = 0
  let responded = 0
  const send = (): void => {
    // Several arrive at once.
    if (sent - responded > window / 2) return
    // Each in a TLS record of its own.
    for (; sent < count && sent - responded < window; sent += 1)
      socket.write(`GET /${prefix}${sent % numbers} HTTP/1.1\r\nHost: a\r\n\r\n`)
  }
  let rest = ''
  socket.setEncoding('latin1')
  return new Promise((resolve) => {
    const end = (): void => {
      socket.destroy()
      resolve(responded)
    }
    socket.on('error', end).on('close', end)
    socket.on('data', (chunk: string) => {
      const texts = (rest + chunk).split('>')
      rest = texts.pop() ?? ''
      for (const text of texts) {
        const isNext = text.startsWith('HTTP/1.1 200 ') && text.endsWith(`x<${prefix}${responded % numbers}`)
        if (!isNext) return end()
        responded += 1
      }
      if (responded === count) end()
      else send()
    })
    send()
  })
}

/** The longest wait of requests on other connections, one after another, in milliseconds; `failed` without a response. */
const readBeside = (until: AbortSignal) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const at = performance.now()
      httpsRequest(`${gateway.publicAddress}/beside`, { agent, rejectUnauthorized: false }, (response) =>
        response.resume().on('end', () => resolve(performance.now() - at)),
      )
        .on('error', reject)
        .end()
    })
  const times: number[] = []
  const run = async (): Promise<readonly number[]> => {
    while (!until.aborted) times.push(await ask())
    agent.destroy()
    return times.sort((a, b) => a - b)
  }
  return run()
}

test.each([
  ['ten at a time on each of 16 connections', 16, 10],
  ['hundreds at a time on each of four', 4, 300],
])(
  'valid pipelined requests over TLS are all answered, in order, beside others: %s',
  async (_, connections, window) => {
    const ended = new AbortController()
    const beside = Promise.all(Array.from({ length: 4 }, () => readBeside(ended.signal)))
    const each = Math.ceil(requests / connections)
    const responded = await Promise.all(
      Array.from({ length: connections }, () => sendPipelined(each, window)),
    )
    ended.abort()
    expect(responded).toEqual(Array.from({ length: connections }, () => each))
    const times = await beside
    for (const of of times) expect(of.length).toBeGreaterThan(0)
    const all = times.flat().sort((a, b) => a - b)
    if (isLong)
      process.stdout.write(
        `${requests} pipelined; ${all.length} beside them, p99 ${all[Math.floor(all.length * 0.99)]?.toFixed(1)} ms\n`,
      )
  },
  isLong ? 3_600_000 : 300_000,
)

test('requests that arrive over TLS while a long response is written are all answered', async () => {
  const responded = await Promise.all(Array.from({ length: 4 }, () => sendPipelined(100, 20, 'long')))
  expect(responded).toEqual([100, 100, 100, 100])
})
