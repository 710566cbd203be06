import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

// The upstream of all rows whose times are measured: its own process. The last words of the path say what it does.

const large = Buffer.alloc(4 * 1024 * 1024, 'l')
const list = Buffer.from('[{"id":1,"slug":"a"}]')
const batchList = Buffer.from(`[{"id":1,"slug":"${'m'.repeat(2_500_000)}"}]`)
const piece = Buffer.alloc(64 * 1024, 'h')
const hugeBytes = 80_000_000
const slowMs = 3_000

type HeaderValues = Record<string, string>

const reply = (response: ServerResponse, content: Buffer, headers: HeaderValues = {}): void => {
  response.writeHead(200, {
    'Content-Type': 'application/json; charset=UTF-8',
    'Content-Length': content.length,
    ...headers,
  })
  response.end(content)
}

const sendHuge = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Length': hugeBytes, 'Cache-Control': 'no-store' })
  let left = hugeBytes
  const more = (): void => {
    while (left > 0) {
      const next = left < piece.length ? piece.subarray(0, left) : piece
      left -= next.length
      if (!response.write(next)) {
        response.once('drain', more)
        return
      }
    }
    response.end()
  }
  more()
}

let count = 0
/** As many tags as are taken, each as long as may be and never seen before. */
const newTags = (): string => {
  count += 1
  return Array.from({ length: 120 }, (_, at) => `${count}-${at}-`.padEnd(120, 't')).join(' ')
}

const reactions: readonly (readonly [pattern: RegExp, react: (response: ServerResponse) => void])[] = [
  [/\/slow/, (response) => void setTimeout(() => reply(response, list), slowMs)],
  [/\/huge/, sendHuge],
  [/\/large/, (response) => reply(response, large, { 'Content-Type': 'application/octet-stream' })],
  [/\/pages/, (response) => reply(response, batchList)],
  [/\/private/, (response) => reply(response, list, { 'Cache-Control': 'no-store' })],
  [/\/by-language/, (response) => reply(response, list, { Vary: 'Accept-Language' })],
  [/\/tagged/, (response) => reply(response, list, { 'Surrogate-Key': newTags() })],
]

const server = createServer(
  { maxHeaderSize: 64 * 1024, requestTimeout: 0, headersTimeout: 0 },
  (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {})
    request.on('error', () => {})
    request.resume()
    const react = () => {
      const path = request.url ?? ''
      const found = request.method === 'GET' ? reactions.find(([pattern]) => pattern.test(path)) : undefined
      if (found === undefined) reply(response, list)
      else found[1](response)
    }
    if (request.method === 'GET') react()
    else request.once('end', react)
  },
)
server.on('clientError', (_, socket) => socket.destroy())
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit(0))
