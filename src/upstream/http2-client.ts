import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { Client, errors } from 'undici'

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
 * end. It does so within events, where nobody takes what is thrown, and the process would end. It is the fault of the one request,
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
  // Whoever has given the request up listens no longer.
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
