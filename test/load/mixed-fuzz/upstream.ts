import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { randomFrom } from '../../support/random.ts'
import { type Message, MessageReader } from './messages.ts'
import { contentOf, inChunks, type Plan, planOf, writeCut } from './plan.ts'

/** An upstream of raw sockets that answers each exchange by its plan. */
export type FuzzUpstream = {
  readonly origin: string
  readonly open: () => number
  /** Requests that came otherwise than they were sent. */
  readonly wrong: string[]
  close(): Promise<void>
}

const interimHead = (status: number): string =>
  `HTTP/1.1 ${status} Interim\r\n${status === 103 ? 'Link: </a>; rel=preload\r\n' : ''}\r\n`
const stolen = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=60\r\n\r\nWRONG'

const responseOf = (plan: Plan, number: number): { readonly head: string; readonly content: string } => {
  const { framing, length, status, method } = plan
  const content = status === 204 ? '' : contentOf(number, length, 'response')
  const version = framing === 'old' ? 'HTTP/1.0' : 'HTTP/1.1'
  const lines = [`${version} ${status} Planned`, 'Content-Type: text/plain']
  const closes = plan.closesAfter || framing === 'close'
  if (framing === 'length' && status !== 204) lines.push(`Content-Length: ${length}`)
  if (framing === 'chunks') lines.push('Transfer-Encoding: chunked')
  if (closes) lines.push('Connection: close')
  const head = `${lines.join('\r\n')}\r\n\r\n`
  if (method === 'HEAD' || status === 204) return { head, content: '' }
  const random = randomFrom(number)
  return { head, content: framing === 'chunks' ? inChunks(random, content, plan) : content }
}

const response = async (socket: Socket, plan: Plan, number: number): Promise<void> => {
  const random = randomFrom(number + 1)
  const write = (bytes: Buffer): void => {
    if (socket.writable) socket.write(bytes)
  }
  const { fault } = plan
  if (fault === 'reset first') return void socket.resetAndDestroy()
  if (fault === 'close first') return void socket.end()
  if (fault === 'garbage') return void socket.end('HTTP/9.x garbage\r\n: \r\n\r\n')
  const { head, content } = responseOf(plan, number)
  // In one piece with the end of the response: what comes when the next request has been sent is its response for any client.
  const end = fault === 'extra' ? content + stolen : content
  const bytes = Buffer.from(plan.interim.map(interimHead).join('') + head + end, 'latin1')
  const isCutShort = fault === 'short' || fault === 'reset in the middle'
  const whole = isCutShort ? bytes.subarray(0, bytes.length - Math.min(content.length, 50)) : bytes
  await writeCut(write, whole, fault === 'extra' ? 'whole' : plan.cut, random)
  if (fault === 'reset in the middle') setTimeout(() => socket.resetAndDestroy(), 5)
  else if (fault === 'short') socket.end()
  const endsWithConnection = plan.framing === 'close' || plan.framing === 'old' || plan.closesAfter
  if (endsWithConnection) socket.end()
}

export const startFuzzUpstream = async (seed: number): Promise<FuzzUpstream> => {
  const sockets = new Set<Socket>()
  const wrong: string[] = []
  const accept = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    const exchangeOf = ({ startLine }: Message) => {
      const [, method = '', path = ''] = /^([A-Z]+) (\S+) HTTP\/1\.1$/.exec(startLine) ?? []
      const number = Number(/\/(\d+)$/.exec(path)?.[1])
      return { method, number, plan: planOf(seed, number, path.startsWith('/r')) }
    }
    const begun = (message: Message): void => {
      const { plan, number } = exchangeOf(message)
      if (plan.isEarly) void response(socket, plan, number)
    }
    const ended = (message: Message): void => {
      const { method, plan, number } = exchangeOf(message)
      const expected = contentOf(number, plan.sent.length, 'request')
      if (message.content !== expected) wrong.push(`${number}: the content of the request is another one`)
      // A cached GET may be asked for by HEAD and the other way round.
      if (method !== plan.method) wrong.push(`${number}: ${method} in place of ${plan.method}`)
      if (!plan.isEarly) void response(socket, plan, number)
    }
    const reader = new MessageReader({ begun, ended })
    socket.on('data', (bytes) => {
      try {
        reader.read(bytes)
      } catch (error) {
        wrong.push(String(error))
        socket.destroy()
      }
    })
  }
  const server = createServer(accept).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => sockets.size,
    wrong,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
