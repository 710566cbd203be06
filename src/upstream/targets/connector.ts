import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import type { LookupFunction, Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, errors } from 'undici'
import { Deadline } from '../deadline.ts'
import { resetCode } from '../failure.ts'
import type { UpstreamOptions } from '../options.ts'

type Handler = Parameters<Client['dispatch']>[1]

/**
 * One connection of a pool, given up when it is so old: at once when it is idle, otherwise with the next answer, which it asks to
 * be the last one (RFC 9112 §9.6); the client then connects anew. undici has a bound of its own (`clientTtl`), for which its
 * pool reads the clock once for each connection that it passes over in search of a free one, and searches twice a request: a
 * twentieth of what a pass-through costs with 32 requests in flight (docs/decisions/0013).
 */
export class AgingClient extends Client {
  readonly #maxAgeMs: number
  #socket: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #isOld = false

  constructor(
    origin: URL,
    options: Client.Options & { readonly connect: buildConnector.connector },
    maxAgeMs: number,
  ) {
    super(origin, {
      ...options,
      connect: (target, callback) => {
        const socket = options.connect(target, callback) as unknown as Socket
        this.#socket = socket
        return socket
      },
    })
    this.#maxAgeMs = maxAgeMs
    this.on('connect', () => this.#begin())
    this.on('disconnect', () => clearTimeout(this.#timer))
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Handler): boolean {
    return super.dispatch(this.#isOld ? { ...options, reset: true } : options, handler)
  }

  #begin(): void {
    this.#isOld = false
    this.#timer = setTimeout(() => this.#growOld(), this.#maxAgeMs)
    this.#timer.unref()
  }

  #growOld(): void {
    if (this.stats.size === 0) this.#socket?.destroy()
    else this.#isOld = true
  }
}

/** A request as undici keeps it: the content is null when there is none. */
type Asked = { readonly method: string; body: unknown; abort(error: Error): void }

/** What undici keeps of a connection that stands. */
type Connection = {
  write(request: Asked): boolean
  destroy(error: Error, done: () => void): void
}

const symbolOf = (client: Client, name: string): symbol | undefined =>
  Object.getOwnPropertySymbols(client).find(({ description }) => description === name)

/** Connections of undici's clients, under no public name. */
const connectionKey = symbolOf(new Client('http://localhost'), 'http context')

/** The session of a client's connection: undici notes it, under no public name, before it notes the connection. */
const sessionOf = (client: Client): ClientHttp2Session | undefined => {
  const key = symbolOf(client, 'http2Session')
  const kept = client as unknown as Readonly<Record<symbol, ClientHttp2Session | null>>
  return key === undefined ? undefined : (kept[key] ?? undefined)
}

/**
 * Node refuses a stream on a session that has ended, or that its peer is leaving, and undici asks for one until it has heard of the
 * end. It does so within events, where an exception ends the process. It is the fault of the one request,
 * and of a connection that is good for nothing more.
 */
const refusing = (connection: Connection): Connection => {
  const { write } = connection
  connection.write = (request) => {
    try {
      return write(request)
    } catch (error) {
      request.abort(error as Error)
      // Of this kind, or undici would fail those who wait for the next connection, too.
      connection.destroy(new errors.SocketError('its session had ended'), () => undefined)
      return false
    }
  }
  return connection
}

/**
 * Node ends the content of a stream that was reset as it ends one that is whole, and undici takes the one for the other: a part
 * would be passed on, and stored, as the answer (RFC 9113 §8.1.1). Of a whole content Node says the end before it closes the stream,
 * of a part it closes the stream first, whatever the code of the reset: also with NO_ERROR, which is right only behind a whole answer (§8.1).
 */
const failingIfCut = (stream: ClientHttp2Stream): void => {
  const push = stream.push.bind(stream)
  let hasEnded = false
  stream.push = (chunk: unknown, ...more: []) => {
    const isCut = chunk === null && !hasEnded && stream.closed
    hasEnded ||= chunk === null
    if (isCut) stream.emit('error', new errors.SocketError('the stream was reset within its answer'))
    return push(chunk, ...more)
  }
  // A caller that has aborted the request no longer listens.
  stream.on('error', () => undefined)
}

/** Methods for whose content undici keeps the length that it then compares with. */
const methodsWithLength: readonly string[] = ['POST', 'PUT', 'PATCH']

/**
 * undici expects content of three methods only. With content of another one in a Buffer it tries the request again and again within
 * one turn of the event loop, which then stands still; content of pieces it sends. A GET or HEAD it ends with its head.
 */
const watchStreams = (session: ClientHttp2Session, connection: Connection): void => {
  const { write } = connection
  let hasContent = false
  connection.write = (request) => {
    const { body, method } = request
    hasContent = body !== null
    if (Buffer.isBuffer(body) && !methodsWithLength.includes(method)) request.body = [body]
    return write(request)
  }
  const open = session.request.bind(session)
  session.request = (fields, options) => {
    const stream = open(fields, { ...options, endStream: !hasContent })
    failingIfCut(stream)
    return stream
  }
}

/** A client that offers HTTP/2, outlives what ends its sessions, sends content with every method, and takes no part of an answer for the whole. */
export class Http2Client extends Client {
  constructor(...given: ConstructorParameters<typeof Client>) {
    super(...given)
    if (connectionKey === undefined) throw new TypeError('undici keeps its connections elsewhere')
    let current: Connection | null = null
    Object.defineProperty(this, connectionKey, {
      get: () => current,
      set: (next: Connection | null) => {
        current = next === null ? null : refusing(next)
        const session = next === null ? undefined : sessionOf(this)
        if (current !== null && session !== undefined) watchStreams(session, current)
      },
    })
  }
}

const reset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: resetCode })

/**
 * libuv shows a reset that is there together with the last octets as an end (a short read under POLLHUP), and an answer that lasts until its connection
 * ends would look whole. After a reset the kernel knows no peer any more; after an end it still does. Nothing may
 * have asked for the address before: Node remembers it.
 */
const tellResets = (socket: Socket): void => {
  const { push } = socket
  socket.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk !== null || socket.remoteAddress !== undefined) return push.call(socket, chunk, encoding)
    socket.destroy(reset())
    return false
  }
}

const given = <Key extends string>(key: Key, value: string): { [K in Key]?: string } =>
  value === '' ? {} : ({ [key]: value } as { [K in Key]?: string })

/**
 * undici takes a reset for the end of an answer that lasts until its connection ends; a short answer would look whole,
 * and be kept. Under another name it is the error that it is.
 */
const resetIsNoEnd = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'ECONNRESET') error.code = resetCode
}

/**
 * Opens connections with an exact connect timeout: undici's own has a resolution of half a second, and one that fires
 * before the TLS handshake has ended would not count it.
 */
export const createConnector = (
  options: UpstreamOptions,
  lookup: LookupFunction,
): buildConnector.connector => {
  const { tls } = options
  const connect = buildConnector({
    ...given('ca', tls.ca),
    ...given('cert', tls.cert),
    ...given('key', tls.key),
    minVersion: tls.minVersion,
    rejectUnauthorized: !tls.acceptAnyCertificate,
    lookup,
    timeout: 0,
    allowH2: options.http2,
  })
  const { connectMs } = options.timeouts
  return (target, callback) => {
    let deadline: Deadline | undefined
    // undici would take the name from the Host field, which may be another one: '' makes it the target's.
    const socket = connect({ ...target, servername: tls.serverName }, (...result) => {
      deadline?.stop()
      callback(...result)
    }) as unknown as Socket
    socket.on('error', resetIsNoEnd)
    // TLS says itself where a connection ends.
    if (target.protocol === 'http:') tellResets(socket)
    if (connectMs > 0) {
      deadline = new Deadline(connectMs, () => socket.destroy(new errors.ConnectTimeoutError()))
    }
    return socket
  }
}
