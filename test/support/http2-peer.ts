// Says in HTTP/2 what no library would say: frames by hand (RFC 9113 §4.1).

const headBytes = 9

const frames = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7 } as const
const endStream = 1
const endHeaders = 4

const frame = (type: number, flags: number, stream: number, content: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(headBytes)
  head.writeUIntBE(content.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, content])
}

/** A field line of HPACK, not indexed and not coded; names and values are shorter than 127 octets. */
const header = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name, 'latin1'),
    Buffer.from([value.length]),
    Buffer.from(value, 'latin1'),
  ])

const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at)
  return bytes
}

/** What a client sends first (RFC 9113 §3.4). */
export const clientPreface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1'),
  frame(frames.settings, 0, 0),
])
/** `:method: GET` and `:scheme: https`, as HPACK has them in its table; and POST. */
const getOverTls = Buffer.from([0x82, 0x87])
const postOverTls = Buffer.from([0x83, 0x87])
const cancelled = 8

/** The head of a POST whose content follows. */
export const postHead = (stream: number, path: string, type = 'image/png'): Buffer => {
  const headers = [header(':authority', 'a'), header(':path', path), header('content-type', type)]
  return frame(frames.headers, endHeaders, stream, Buffer.concat([postOverTls, ...headers]))
}

/** Content in pieces of one octet. */
export const octets = (stream: number, count: number): Buffer =>
  Buffer.concat(Array(count).fill(frame(frames.data, 0, stream, Buffer.from('a'))))

/** A piece of content, the last one or not. */
export const data = (stream: number, content: Buffer, isLast: boolean): Buffer =>
  frame(frames.data, isLast ? endStream : 0, stream, content)

export const getHead = (stream: number, path: string): Buffer =>
  frame(
    frames.headers,
    endStream | endHeaders,
    stream,
    Buffer.concat([getOverTls, header(':authority', 'a'), header(':path', path)]),
  )

export const reset = (stream: number, code = cancelled): Buffer =>
  frame(frames.reset, 0, stream, numbers(code))

/** The client will open no more streams (RFC 9113 §6.8). */
export const goaway = frame(frames.goaway, 0, 0, numbers(0, 0))

/** A GET and the reset of its stream. */
export const requestAndReset = (stream: number, path: string): Buffer =>
  Buffer.concat([getHead(stream, path), reset(stream)])
