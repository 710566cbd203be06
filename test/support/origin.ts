import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'

/** One request as received. */
type ReceivedRequest = {
  readonly method: string
  readonly target: string
  /** Lower-case names; repeated lines joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** Request line and field lines, byte for byte (latin1), without the empty line. */
  readonly head: string
  readonly content: Buffer
  /** Number of the connection, from 1. */
  readonly connection: number
}

/** The wire under one request, for responses that no well-behaved server gives. */
type Wire = {
  readonly socket: Socket
  /** Bytes as given: a string is latin1. */
  write(bytes: string | Buffer): void
  /** A complete answer with Content-Length. */
  respond(response: {
    status?: number
    headers?: Readonly<Record<string, string>>
    content?: string | Buffer
  }): void
  /** FIN. */
  end(): void
  /** RST. */
  reset(): void
}

/** What the origin does with a request; it counts as in flight until the returned promise settles. */
export type Script = (request: ReceivedRequest, wire: Wire, count: number) => void | Promise<void>

/** A scripted origin on a free port of 127.0.0.1. */
export type Origin = {
  readonly origin: string
  readonly port: number
  readonly received: ReceivedRequest[]
  /** Connections open now, and accepted since the start. */
  readonly open: number
  readonly accepted: number
  /** Most requests in flight at one moment. */
  readonly maxInFlight: number
  script: Script
  /** Resolves when `condition` holds, checked every few milliseconds; rejects after fifteen seconds. */
  until(condition: () => boolean): Promise<void>
  close(): Promise<void>
}

/** Resolves after a while. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const parseHead = (head: string): Pick<ReceivedRequest, 'method' | 'target' | 'headers'> => {
  const [requestLine = '', ...lines] = head.split('\r\n')
  const [method = '', target = ''] = requestLine.split(' ')
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`
  }
  return { method, target, headers }
}

type Content = { readonly content: Buffer; readonly length: number }

const chunkedContent = (bytes: Buffer): Content | undefined => {
  const pieces: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (bytes.length < end) return undefined
    if (size === 0) return { content: Buffer.concat(pieces), length: end }
    pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = end
  }
}

const contentOf = (headers: Readonly<Record<string, string>>, bytes: Buffer): Content | undefined => {
  if (headers['transfer-encoding'] === 'chunked') return chunkedContent(bytes)
  const length = Number(headers['content-length'] ?? 0)
  return bytes.length < length ? undefined : { content: bytes.subarray(0, length), length }
}

const wireOf = (socket: Socket): Wire => ({
  socket,
  write: (bytes) => {
    if (!socket.destroyed) socket.write(bytes, 'latin1')
  },
  respond: ({ status = 200, headers = {}, content = '' }) => {
    if (socket.destroyed) return
    const lines = Object.entries({ ...headers, 'Content-Length': String(Buffer.byteLength(content)) })
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    // One write, so that head and content arrive together.
    socket.write(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${head}\r\n`, 'latin1'),
        Buffer.from(content),
      ]),
    )
  },
  end: () => socket.end(),
  reset: () => socket.resetAndDestroy(),
})

const until = async (condition: () => boolean): Promise<void> => {
  const latest = performance.now() + 60_000
  while (performance.now() < latest) {
    if (condition()) return
    await pause(5)
  }
  throw new Error('the condition did not come true within a minute')
}

class ScriptedOrigin implements Origin {
  readonly received: ReceivedRequest[] = []
  readonly until = until
  script: Script
  port = 0
  accepted = 0
  maxInFlight = 0
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  readonly #options: OriginOptions
  #inFlight = 0

  constructor(script: Script, options: OriginOptions) {
    this.script = script
    this.#options = options
    const accept = (socket: Socket) => this.#accept(socket)
    this.#server = options.tls === undefined ? createServer(accept) : createTlsServer(options.tls, accept)
    this.#server.on('tlsClientError', () => {})
  }

  get open(): number {
    return this.#sockets.size
  }

  get origin(): string {
    return `${this.#options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.port}`
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, this.#options.host ?? '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(socket: Socket): void {
    this.accepted += 1
    const connection = this.accepted
    this.#sockets.add(socket)
    let bytes: Buffer = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      const headEnd = bytes.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const head = bytes.toString('latin1', 0, headEnd)
      const parsed = parseHead(head)
      const after = bytes.subarray(headEnd + 4)
      const content =
        this.#options.respondsEarly === true
          ? { content: after, length: after.length }
          : contentOf(parsed.headers, after)
      if (content === undefined) return
      bytes = bytes.subarray(headEnd + 4 + content.length)
      void this.#run({ ...parsed, head, content: content.content, connection }, socket)
    })
  }

  async #run(request: ReceivedRequest, socket: Socket): Promise<void> {
    this.received.push(request)
    this.#inFlight += 1
    this.maxInFlight = Math.max(this.maxInFlight, this.#inFlight)
    try {
      await this.script(request, wireOf(socket), this.received.length)
    } finally {
      this.#inFlight -= 1
    }
  }
}

export type OriginOptions = {
  /** For one that comes back where it was; any free one unless given. */
  readonly port?: number
  /** Address to listen on; 127.0.0.1 unless given. */
  readonly host?: string
  readonly tls?: TlsOptions
  /** Runs the script when the head is there, without waiting for the content. */
  readonly respondsEarly?: boolean
}

/** Starts a scripted origin; the default script answers 200 with a short JSON body. */
export const startOrigin = async (
  script: Script = (_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"ok":true}' }),
  options: OriginOptions = {},
): Promise<Origin> => {
  const origin = new ScriptedOrigin(script, options)
  await origin.listen()
  return origin
}
