import type { AddressInfo } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { keyPair } from './certificates.ts'

// Says in HTTP/2 what no library would say: frames by hand (RFC 9113 §4.1).

const headBytes = 9
const prefaceBytes = 24

export const frames = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
export const endStream = 1
export const acknowledged = 1
export const endHeaders = 4

export const frame = (
  type: number,
  flags: number,
  stream: number,
  content: Buffer = Buffer.alloc(0),
): Buffer => {
  const head = Buffer.alloc(headBytes)
  head.writeUIntBE(content.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, content])
}

/** `:status: 200`, as HPACK has it in its table. */
export const ok = Buffer.from([0x88])

/** A field line of HPACK, not indexed and not coded; names and values are shorter than 127 octets. */
export const field = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name, 'latin1'),
    Buffer.from([value.length]),
    Buffer.from(value, 'latin1'),
  ])

export const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at)
  return bytes
}

/** What a client sends first (RFC 9113 §3.4). */
export const clientPreface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1'),
  frame(frames.settings, 0, 0),
])
/** `:method: GET` and `:scheme: https`, as HPACK has them in its table. */
const getOverTls = Buffer.from([0x82, 0x87])
const cancelled = 8

/** A GET and the reset of its stream. */
export const requestAndReset = (stream: number, path: string): Buffer => {
  const head = Buffer.concat([getOverTls, field(':authority', 'a'), field(':path', path)])
  return Buffer.concat([
    frame(frames.headers, endStream | endHeaders, stream, head),
    frame(frames.reset, 0, stream, numbers(cancelled)),
  ])
}

/** What the peer does with the head of a request. */
export type React = (socket: TLSSocket, stream: number) => void

export type Peer = { react: React; readonly origin: string; close(): void }

export const wholeAnswer: React = (socket, stream) => {
  socket.write(frame(frames.headers, endHeaders, stream, ok))
  socket.write(frame(frames.data, endStream, stream, Buffer.from('ok')))
}

/** Streams of the requests in what has come, and what is left of it. */
const requestsIn = (bytes: Buffer): { readonly streams: readonly number[]; readonly rest: Buffer } => {
  const streams: number[] = []
  let at = 0
  while (bytes.length >= at + headBytes) {
    const end = at + headBytes + bytes.readUIntBE(at, 3)
    if (bytes.length < end) break
    if (bytes[at + 3] === frames.headers) streams.push(bytes.readUInt32BE(at + 5))
    at = end
  }
  return { streams, rest: bytes.subarray(at) }
}

/** `settings` is the content of its first frame; `opened` gets each connection. */
export const startPeer = async (
  opened: (socket: TLSSocket) => void,
  settings: Buffer = Buffer.alloc(0),
): Promise<Peer> => {
  const server = createServer({ ...keyPair('good'), ALPNProtocols: ['h2'] }, (socket) => {
    let bytes: Buffer = Buffer.alloc(0)
    let hasBegun = false
    socket.on('error', () => {})
    opened(socket)
    socket.write(frame(frames.settings, 0, 0, settings))
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      if (!hasBegun && bytes.length < prefaceBytes) return
      const { streams, rest } = requestsIn(hasBegun ? bytes : bytes.subarray(prefaceBytes))
      hasBegun = true
      bytes = rest
      for (const stream of streams) peer.react(socket, stream)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const peer: Peer = {
    react: wholeAnswer,
    origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  }
  return peer
}
