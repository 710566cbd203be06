import { createConnection, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { AbstractConnector } from 'ioredis'
import { type GuardOptions, guardReplies } from './reply-guard.ts'

type Options = {
  readonly host: string
  readonly port: number
  readonly family?: number
  readonly tls?: ConnectionOptions
  readonly disconnectTimeout: number
}

/**
 * Opens the sockets of ioredis, whose own connector listens to one error of each. TLS may emit two: an invalid record, then a
 * failed write (Node closes a socket at the first error only during the handshake). A second error without a listener ends the
 * process.
 */
export const connectorWith = (guard: GuardOptions) =>
  class Connector extends AbstractConnector {
    readonly #options: Options

    constructor(options: unknown) {
      const known = options as Options
      super(known.disconnectTimeout)
      this.#options = known
    }

    override async connect(): Promise<Socket | TLSSocket> {
      const { host, port, family, tls } = this.#options
      const server = { host, port, ...(family === undefined ? {} : { family }) }
      this.connecting = true
      const stream = tls === undefined ? createConnection(server) : connect({ ...server, ...tls })
      guardReplies(stream, guard)
      this.stream = stream
      stream.on('error', (error) => {
        this.firstError = error
        stream.destroy()
      })
      return stream
    }
  }
