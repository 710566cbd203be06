import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'
import { readResponses } from '../../support/read-messages.ts'

/** Heads of responses that end with their connection, with and without another mark of their end. */
const forms: Readonly<Record<string, (content: string) => string>> = {
  'HTTP/1.1': (content) => `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`,
  'HTTP/1.0': (content) => `HTTP/1.0 200 OK\r\n\r\n${content}`,
  chunked: (content) =>
    `HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
  length: (content) =>
    `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
}

describe('a long response that ends with its connection while it waits for its turn', () => {
  let origin: Origin
  let gateway: TestGateway

  beforeAll(async () => {
    origin = await startOrigin(async ({ target }, wire) => {
      if (target.startsWith('/slow')) {
        await pause(100)
        wire.respond({ content: 'slow' })
        return
      }
      const [, form = '', length = ''] = /^\/big\/([^/]+)\/(\d+)/.exec(target) ?? []
      let rest = forms[decodeURIComponent(form)]?.('x'.repeat(Number(length))) ?? ''
      // In pieces, so that the gateway has read all of them, and has paused, when the end arrives.
      const piece = 6_000 + (Number(length) % 59) * 1_000
      while (rest !== '') {
        wire.write(rest.slice(0, piece))
        rest = rest.slice(piece)
        await pause(2)
      }
      await pause(20)
      wire.end()
    })
    gateway = await startTestGateway({
      services: { files: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
    })
  })
  afterAll(async () => {
    await gateway?.close()
    await origin?.close()
  })

  /** Lengths of the contents of the responses on one connection, until the gateway closes it. */
  const pipelined = (form: string, length: number): Promise<readonly number[]> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(gateway.publicAddress)
      const socket = connect(Number(port), hostname)
      const received: Buffer[] = []
      socket.on('data', (chunk: Buffer) => received.push(chunk))
      socket.on('error', reject)
      socket.on('close', () =>
        resolve(readResponses(Buffer.concat(received)).messages.map(({ content }) => content.length)),
      )
      socket.write(
        'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n' +
          `GET /big/${encodeURIComponent(form)}/${length} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      )
    })

  test.concurrent.for(Object.keys(forms))(
    '%s: arrives whole, again and again, on several connections',
    async (form, { expect }) => {
      for (let round = 0; round < 3; round += 1) {
        const lengths = Array.from({ length: 12 }, (_, i) => 60_000 + (round * 12 + i) * 4_501)
        const read = await Promise.all(lengths.map((length) => pipelined(form, length)))
        expect(read).toEqual(lengths.map((length) => [4, length]))
      }
    },
  )
})

test('requests that waited on connections whose clients have left count no more', {
  timeout: 60_000,
}, async () => {
  let held = 0
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const origin = await startOrigin(async ({ target }, wire) => {
    if (target === '/held') {
      held += 1
      await released
    }
    wire.respond({ content: 'x' })
  })
  const gateway = await startTestGateway({
    services: { files: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    release()
    await gateway.close()
    await origin.close()
  })
  const { hostname, port } = new URL(gateway.publicAddress)
  const pipeline = (behind: number): Socket => {
    const socket = connect(Number(port), hostname).on('error', () => {})
    const request = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`
    socket.write(request('/held') + request('/a').repeat(behind))
    return socket
  }
  // More than may wait in all (8,192). With more than 16 a connection is not read, and nobody sees that its client leaves.
  for (let round = 1; round <= 27; round += 1) {
    const sockets = Array.from({ length: 20 }, () => pipeline(16))
    await expect.poll(() => held).toBe(round * 20)
    for (const socket of sockets) socket.destroy()
  }
  const socket = pipeline(100)
  onTestFinished(() => void socket.destroy())
  const received: Buffer[] = []
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  await expect.poll(() => held).toBe(541)
  release()
  const responses = () => readResponses(Buffer.concat(received)).messages.length
  await expect.poll(responses).toBe(101)
})
