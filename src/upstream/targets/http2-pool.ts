import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  connect as openSession,
} from 'node:http2'
import { pipeline, Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { type buildConnector, type Dispatcher, errors, type Pool } from 'undici'
import { GatewayError } from '../../errors.ts'

export type ConnectionPool = Pick<Pool, 'dispatch'> & {
  readonly stats: Pick<Pool['stats'], 'connected' | 'free'>
  readonly destroyed: boolean
  close(): Promise<void>
  destroy(): Promise<void>
}

/** Milliseconds. */
type Times = { readonly connectMs: number; readonly maxAgeMs: number }

type Dispatched = {
  readonly options: Dispatcher.DispatchOptions
  readonly handler: Dispatcher.DispatchHandler
}

type Connection = {
  readonly socket: TLSSocket
  readonly session: ClientHttp2Session
  /** Streams that are not closed. */
  open: number
  /** The settings of the peer, with its maximum of streams, have arrived. */
  isReady: boolean
}

/** Of one session, where the peer allows more (RFC 9113 §6.5.2 recommends no fewer). */
const mostStreams = 100

const hasRoom = ({ session, open, isReady }: Connection): boolean =>
  isReady &&
  !session.closed &&
  !session.destroyed &&
  open < Math.max(1, Math.min(mostStreams, session.remoteSettings.maxConcurrentStreams ?? mostStreams))

/** Repeated fields in one line; `headers` is a flat list of names and values. */
const requestFields = (
  { method, path, headers }: Dispatcher.DispatchOptions,
  authority: string,
): Record<string, string> => {
  const fields = new Map([
    [':method', method as string],
    [':scheme', 'https'],
    [':authority', authority],
    [':path', path],
  ])
  const flat = (headers ?? []) as readonly string[]
  for (let at = 0; at < flat.length; at += 2) {
    const name = String(flat[at]).toLowerCase()
    const value = String(flat[at + 1])
    const known = fields.get(name)
    if (name === 'host') fields.set(':authority', value)
    else fields.set(name, known === undefined ? value : `${known}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return Object.fromEntries(fields)
}

const responseFields = (fields: IncomingHttpHeaders): Buffer[] =>
  Object.entries(fields).flatMap(([name, values]) =>
    name.startsWith(':')
      ? []
      : [values ?? ''].flat().flatMap((value) => [Buffer.from(name, 'latin1'), Buffer.from(value, 'latin1')]),
  )

/**
 * Node ends the content of a stream that was reset as it ends a complete one: a part would be passed on, and stored, as the
 * response (RFC 9113 §8.1.1). Of complete content Node pushes the end before it closes the stream, of a part it closes the stream
 * first, whatever the code of the reset: also with NO_ERROR, which is valid only after a complete response (§8.1).
 */
const failIfCut = (stream: ClientHttp2Stream): void => {
  const push = stream.push.bind(stream)
  let hasEnded = false
  stream.push = (chunk: unknown, ...more: []) => {
    const isCut = chunk === null && !hasEnded && stream.closed
    hasEnded ||= chunk === null
    if (isCut) stream.emit('error', new errors.SocketError('the stream was reset within its response'))
    return push(chunk, ...more)
  }
}

/** Takes no more requests, and ends with the last one. A session that is closed waits for its peer, perhaps for ever: its socket does not. */
const retire = ({ session, socket, open }: Connection): void => {
  session.close()
  if (open === 0) socket.destroy()
}

/** Sends one request on a session; `closed` is called when it uses the session no more. */
const send = (
  session: ClientHttp2Session,
  authority: string,
  { options, handler }: Dispatched,
  closed: () => void,
): void => {
  const { body } = options
  const content = body instanceof Readable || Buffer.isBuffer(body) ? body : undefined
  let stream: ClientHttp2Stream | undefined
  let hasHead = false
  let isSettled = false

  const fail = (error: Error): void => {
    if (isSettled) return
    isSettled = true
    // The content is destroyed with the same error, and after the report: see attemptError.
    handler.onError?.(error)
    if (content instanceof Readable) content.destroy(error)
    stream?.close(constants.NGHTTP2_CANCEL)
    // A silent peer may have failed: the next requests take another connection.
    if (!hasHead && error instanceof GatewayError && error.code === 'upstream_timeout') session.close()
    if (stream === undefined) closed()
  }
  const complete = (): void => {
    if (!hasHead) fail(new errors.SocketError('the stream ended without a response'))
    if (isSettled) return
    isSettled = true
    handler.onComplete?.([])
  }
  /** An error that a handler throws fails its request. */
  const mayReadOn = (deliver: () => boolean | undefined): boolean => {
    if (isSettled) return true
    try {
      return deliver() !== false
    } catch (error) {
      fail(error as Error)
      return true
    }
  }
  const receive = (from: ClientHttp2Stream): void => {
    failIfCut(from)
    from.on('response', (fields) => {
      hasHead = true
      const resume = (): void => void from.resume()
      const status = Number(fields[':status'])
      if (!mayReadOn(() => handler.onHeaders?.(status, responseFields(fields), resume, ''))) from.pause()
      from.on('data', (chunk: Buffer) => {
        if (!mayReadOn(() => handler.onData?.(chunk))) from.pause()
      })
    })
    from.on('end', complete)
    from.on('error', fail)
    from.on('close', () => {
      fail(new errors.SocketError('the stream was closed before its response was complete'))
      closed()
    })
  }

  handler.onConnect?.((reason) => fail(reason ?? new errors.RequestAbortedError()))
  if (isSettled) return
  try {
    stream = session.request(requestFields(options, authority), { endStream: content === undefined })
  } catch (error) {
    // It may have ended, or used up its streams, before this is reported.
    session.close()
    fail(error as Error)
    return
  }
  receive(stream)
  if (content instanceof Readable) pipeline(content, stream, (error) => error && fail(error))
  else if (content !== undefined) stream.end(content)
}

/**
 * Requests to one https target over HTTP/2, with public parts of Node alone. undici offers HTTP/2 too, but ends the process, passes
 * on parts of responses, and loops or loses content with some methods (docs/decisions/0017). A target that does not choose HTTP/2
 * gets its requests from a pool of HTTP/1.1.
 */
export class Http2Pool implements ConnectionPool {
  readonly #origin: URL
  readonly #connect: buildConnector.connector
  readonly #http1: Pool
  readonly #connectMs: number
  /** After it a connection takes no more requests, and HTTP/2 is offered again; 0: never. */
  readonly #maxAgeMs: number
  readonly #connections = new Set<Connection>()
  #waiting: Dispatched[] = []
  #isConnecting = false
  #offerAtMs = 0
  destroyed = false

  constructor(origin: string, connect: buildConnector.connector, http1: Pool, times: Times) {
    this.#origin = new URL(origin)
    this.#connect = connect
    this.#http1 = http1
    this.#connectMs = times.connectMs
    this.#maxAgeMs = times.maxAgeMs
  }

  get stats(): ConnectionPool['stats'] {
    const { connected, free } = this.#http1.stats
    const idle = [...this.#connections].filter(({ open }) => open === 0).length
    return { connected: connected + this.#connections.size, free: free + idle }
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#waiting.push({ options, handler })
    this.#sendWaiting()
    return true
  }

  async close(): Promise<void> {
    const ended = [...this.#connections].map((connection) => {
      const closed = once(connection.session, 'close')
      retire(connection)
      return closed
    })
    await Promise.all([...ended, this.#http1.close()])
    await this.destroy()
  }

  async destroy(): Promise<void> {
    this.destroyed = true
    this.#failWaiting(new errors.ClientDestroyedError())
    for (const { session, socket } of this.#connections) {
      session.destroy()
      socket.destroy()
    }
    if (!this.#http1.destroyed) await this.#http1.destroy()
  }

  #sendWaiting(): void {
    if (this.destroyed) this.#failWaiting(new errors.ClientDestroyedError())
    while (this.#waiting.length > 0) {
      const isHttp1 = performance.now() < this.#offerAtMs
      const connection = isHttp1 ? undefined : [...this.#connections].find(hasRoom)
      if (!isHttp1 && connection === undefined) {
        this.#open()
        return
      }
      const next = this.#waiting.shift()
      if (next === undefined) return
      if (connection === undefined) this.#http1.dispatch(next.options, next.handler)
      else this.#sendOn(connection, next)
    }
  }

  #sendOn(connection: Connection, dispatched: Dispatched): void {
    const { session } = connection
    if (connection.open === 0) session.ref()
    connection.open += 1
    send(session, this.#origin.host, dispatched, () => {
      connection.open -= 1
      if (connection.open > 0) return
      if (session.closed) retire(connection)
      else if (!session.destroyed) session.unref()
    })
  }

  #failWaiting(error: Error): void {
    const failed = this.#waiting
    this.#waiting = []
    for (const { handler } of failed) handler.onError?.(error)
  }

  #open(): void {
    if (this.#isConnecting) return
    this.#isConnecting = true
    const { hostname, host, protocol, port } = this.#origin
    this.#connect({ hostname, host, protocol, port }, (...[error, socket]) => {
      if (error === null && !this.destroyed && (socket as TLSSocket).alpnProtocol === 'h2') {
        this.#start(socket as TLSSocket)
        return
      }
      this.#isConnecting = false
      if (error === null) {
        socket.destroy()
        this.#offerAtMs = performance.now() + (this.#maxAgeMs || Number.POSITIVE_INFINITY)
      } else this.#failWaiting(error)
      this.#sendWaiting()
    })
  }

  /** A session takes requests from the peer's settings on, its first frame, until it is too old. */
  #start(socket: TLSSocket): void {
    const session = openSession(this.#origin, {
      createConnection: () => socket,
      settings: { enablePush: false },
    })
    // Without a reader the socket does not emit its end (endWhenRead in connector.ts), and an upload would wait for ever.
    socket.resume()
    // By itself Node leaves a stream open whose content was being written when the connection ended.
    socket.prependListener('close', () => session.destroy())
    const connection: Connection = { socket, session, open: 0, isReady: false }
    this.#connections.add(connection)
    const late = (): void => void session.destroy(new errors.ConnectTimeoutError())
    let timer = this.#connectMs > 0 ? setTimeout(late, this.#connectMs) : undefined
    let failure: Error = new errors.SocketError('the session ended before its settings arrived')
    // Its streams report the error as well.
    session.on('error', (error) => {
      failure = error
    })
    session.once('remoteSettings', () => {
      clearTimeout(timer)
      if (this.#maxAgeMs > 0) timer = setTimeout(() => retire(connection), this.#maxAgeMs).unref()
      connection.isReady = true
      this.#isConnecting = false
      this.#sendWaiting()
    })
    session.on('goaway', () => retire(connection))
    session.on('close', () => {
      clearTimeout(timer)
      this.#connections.delete(connection)
      if (connection.isReady) return
      this.#isConnecting = false
      this.#failWaiting(failure)
    })
  }
}
