/** One HTTP/1.1 message as it stands in the bytes. */
export type WireMessage = {
  readonly startLine: string
  /** In order and spelling as received. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly content: Buffer
}

/** What a reader that forgives nothing makes of bytes. */
export type Reading = {
  readonly messages: readonly WireMessage[]
  /** What follows the last complete message. */
  readonly rest: Buffer
  /** Why `rest` can never become a message; undefined while it may still be one. */
  readonly fault: string | undefined
}

class Fault extends Error {}

const requestLine = /^[A-Z][A-Z-]{0,19} (?:\/[!-~]*|\*) HTTP\/1\.1$/
const statusLine = /^HTTP\/1\.1 [1-9]\d\d(?: [\t -~]*)?$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t -~\x80-\xff]*)$/

const valuesOf = (headers: WireMessage['headers'], name: string): string[] =>
  headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value)

type Read = { readonly content: Buffer; readonly end: number } | undefined

/** Chunks with a bare size, no extension and no trailer: what no two readers take for different things. */
const readChunks = (bytes: Buffer, from: number): Read => {
  const pieces: Buffer[] = []
  let at = from
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = bytes.toString('latin1', at, lineEnd)
    if (!/^[0-9A-Fa-f]{1,8}$/.test(size)) throw new Fault(`chunk size ${JSON.stringify(size)}`)
    const end = lineEnd + 2 + Number.parseInt(size, 16)
    if (bytes.length < end + 2) return undefined
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') throw new Fault('no line end behind a chunk')
    if (end === lineEnd + 2) return { content: Buffer.concat(pieces), end: end + 2 }
    pieces.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
  }
}

const readContent = (bytes: Buffer, from: number, headers: WireMessage['headers']): Read => {
  const lengths = valuesOf(headers, 'content-length')
  const codings = valuesOf(headers, 'transfer-encoding')
  if (lengths.length + codings.length > 1) throw new Fault('framed twice')
  if (codings.length === 1) {
    if (codings[0] !== 'chunked') throw new Fault(`transfer coding ${codings[0]}`)
    return readChunks(bytes, from)
  }
  const length = lengths[0] ?? '0'
  if (!/^(?:0|[1-9]\d{0,14})$/.test(length)) throw new Fault(`length ${JSON.stringify(length)}`)
  const end = from + Number(length)
  return bytes.length < end ? undefined : { content: bytes.subarray(from, end), end }
}

const readHeaders = (lines: readonly string[]): WireMessage['headers'] =>
  lines.map((line) => {
    const found = headerLine.exec(line)
    if (found === null) throw new Fault(`field line ${JSON.stringify(line.slice(0, 80))}`)
    return [found[1] ?? '', (found[2] ?? '').replace(/[\t ]+$/, '')] as const
  })

const hasNoContent = (startLine: string): boolean => /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(startLine)

const readOne = (bytes: Buffer, from: number, start: RegExp): (WireMessage & { end: number }) | undefined => {
  const headEnd = bytes.indexOf('\r\n\r\n', from)
  if (headEnd === -1) return undefined
  const [startLine = '', ...lines] = bytes.toString('latin1', from, headEnd).split('\r\n')
  if (!start.test(startLine)) throw new Fault(`start line ${JSON.stringify(startLine.slice(0, 80))}`)
  const headers = readHeaders(lines)
  if (start === requestLine && valuesOf(headers, 'host').length !== 1) throw new Fault('not one Host')
  const read = hasNoContent(startLine)
    ? { content: Buffer.alloc(0), end: headEnd + 4 }
    : readContent(bytes, headEnd + 4, headers)
  return read === undefined ? undefined : { startLine, headers, ...read }
}

const readAll = (bytes: Buffer, start: RegExp): Reading => {
  const messages: WireMessage[] = []
  let at = 0
  try {
    while (at < bytes.length) {
      const { end, ...message } = readOne(bytes, at, start) ?? { end: undefined }
      if (end === undefined) break
      messages.push(message as WireMessage)
      at = end
    }
    return { messages, rest: bytes.subarray(at), fault: undefined }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { messages, rest: bytes.subarray(at), fault: error.message }
  }
}

/** Reads requests by the letter of RFC 9112, without any of the forgiveness that lets two readers disagree. */
export const readRequests = (bytes: Buffer): Reading => readAll(bytes, requestLine)

/** Reads responses the same way; one without length or chunks counts as empty. */
export const readResponses = (bytes: Buffer): Reading => readAll(bytes, statusLine)
