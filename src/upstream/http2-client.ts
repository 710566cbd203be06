import { Client, errors } from 'undici'

type Asked = { abort(error: Error): void }

/** What undici keeps of a connection that stands. */
type Connection = {
  write(request: Asked): boolean
  destroy(error: Error, done: () => void): void
}

/** Connections of undici's clients, under no public name. */
const connectionKey = Object.getOwnPropertySymbols(new Client('http://localhost')).find(
  ({ description }) => description === 'http context',
)

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

/** A client that offers HTTP/2, and outlives what ends its sessions. */
export class Http2Client extends Client {
  constructor(...given: ConstructorParameters<typeof Client>) {
    super(...given)
    if (connectionKey === undefined) throw new TypeError('undici keeps its connections elsewhere')
    let current: Connection | null = null
    Object.defineProperty(this, connectionKey, {
      get: () => current,
      set: (next: Connection | null) => {
        current = next === null ? null : refusing(next)
      },
    })
  }
}
