import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keyPair } from '../../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { pause } from '../../support/origin.ts'

const kibibyte = 1024

/** The end of a body: marked by its length, by its last chunk, or by the end of the connection. */
const framings: Readonly<Record<string, (content: string) => string>> = {
  length: (content) => `Content-Length: ${content.length}\r\n\r\n${content}`,
  chunks: (content) =>
    `Transfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
  end: (content) => `\r\n${content}`,
  'broken length': (content) => `Content-Length: ${content.length + 1}\r\n\r\n${content}`,
  'broken chunk': (content) =>
    `Transfer-Encoding: chunked\r\n\r\n${(content.length + 1).toString(16)}\r\n${content}`,
}

// The gateway pauses a response after 128 KiB, to serve others: some of these lengths end there.
const lengths = Array.from({ length: 40 }, (_, i) => (120 + 2 * i) * kibibyte - 7 * i)

describe.each(['http', 'https'])(
  'an upstream that ends its %s connection right behind a response',
  (scheme) => {
    let upstream: Server
    let gateway: TestGateway

    beforeAll(async () => {
      const accept = (socket: Socket): void => {
        socket.on('error', () => {})
        socket.once('data', async (request: Buffer) => {
          const [, name = '', length = ''] =
            /^GET \/files\/([^/]+)\/(\d+)/.exec(request.toString('latin1')) ?? []
          const framed = framings[decodeURIComponent(name)]?.('x'.repeat(Number(length))) ?? ''
          // In two parts, so that the end arrives while the gateway has paused.
          const response = `HTTP/1.1 200 OK\r\nConnection: close\r\n${framed}`
          socket.write(response.slice(0, 64 * kibibyte))
          await pause(1)
          socket.end(response.slice(64 * kibibyte))
        })
      }
      upstream = scheme === 'http' ? createServer(accept) : createTlsServer(keyPair('good'), accept)
      upstream.listen(0, '127.0.0.1')
      await once(upstream, 'listening')
      const target = `${scheme}://127.0.0.1:${(upstream.address() as AddressInfo).port}`
      gateway = await startTestGateway({
        services: {
          files: {
            contract: 'open',
            mount: '/files',
            upstream: {
              targets: [target],
              basePath: '/files',
              // Forty connections at once, both ends of them in this process.
              timeouts: { connect: '20s' },
              tls: { acceptAnyCertificate: true },
            },
          },
        },
      })
    })
    afterAll(async () => {
      await gateway?.close()
      upstream?.close()
    })

    const read = async (name: string, length: number): Promise<number | 'cut'> => {
      const response = await fetch(`${gateway.publicAddress}/files/${encodeURIComponent(name)}/${length}`)
      return response.arrayBuffer().then(
        (content) => content.byteLength,
        () => 'cut',
      )
    }

    test.each(['length', 'chunks', 'end'])(
      'its end marked by %s: bodies of all lengths arrive whole',
      async (name) => {
        expect(await Promise.all(lengths.map((length) => read(name, length)))).toEqual(lengths)
      },
    )

    test.each(['broken length', 'broken chunk'])('after a %s a body counts as cut', async (name) => {
      expect(await Promise.all(lengths.map((length) => read(name, length)))).toEqual(lengths.map(() => 'cut'))
    })
  },
)
