import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { readRequests, type WireMessage } from './read-messages.ts'

/** An upstream that keeps every byte it gets, reads it strictly, and says in each response which request it answers. */
export type Recorder = {
  readonly origin: string
  /** Complete requests, in the order they came. */
  readonly requests: WireMessage[]
  /** What a strict reader could not take for a request. */
  readonly faults: string[]
  /** Connections that hold the beginning of a request. */
  unfinished(): number
  close(): Promise<void>
}

/** Answers a request with a complete message, or not at all. */
export type Reply = (request: WireMessage) => string

/** `GET /x` or `POST /x "content"`: what a request says, in short. */
export const inShort = ({ startLine, content }: WireMessage): string => {
  const [method, target] = startLine.split(' ')
  return content.length === 0
    ? `${method} ${target}`
    : `${method} ${target} ${JSON.stringify(content.toString('latin1'))}`
}

/** The default answer: its content is the request in short; what lies under /kept may be stored. */
const echo: Reply = (request) => {
  const content = JSON.stringify({ saw: inShort(request) })
  const kept = request.startLine.includes(' /kept') ? 'max-age=3600' : 'no-store'
  const bodiless = request.startLine.startsWith('HEAD ')
  return [
    'HTTP/1.1 200 OK',
    'Content-Type: application/json',
    `Cache-Control: ${kept}`,
    `Content-Length: ${Buffer.byteLength(content)}`,
    '',
    bodiless ? '' : content,
  ].join('\r\n')
}

/** Starts a recorder on a free port of 127.0.0.1. */
export const startRecorder = async (response: Reply = echo): Promise<Recorder> => {
  const requests: WireMessage[] = []
  const faults: string[] = []
  const waiting = new Map<Socket, Buffer>()
  const server = createServer((socket) => {
    waiting.set(socket, Buffer.alloc(0))
    socket.on('error', () => {})
    socket.on('close', () => waiting.delete(socket))
    socket.on('data', (chunk) => {
      const reading = readRequests(Buffer.concat([waiting.get(socket) ?? Buffer.alloc(0), chunk]))
      waiting.set(socket, reading.rest)
      for (const request of reading.messages) {
        requests.push(request)
        socket.write(Buffer.from(response(request), 'latin1'))
      }
      if (reading.fault === undefined) return
      faults.push(`${reading.fault}: ${JSON.stringify(reading.rest.toString('latin1').slice(0, 400))}`)
      socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    unfinished: () => [...waiting.values()].filter((bytes) => bytes.length > 0).length,
    close: async () => {
      server.close()
      for (const socket of waiting.keys()) socket.destroy()
      await once(server, 'close')
    },
  }
}
