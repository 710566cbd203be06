import type { IncomingMessage, ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { startHttpServer } from '../../support/http-server.ts'
import type { Sightings } from './sightings.ts'

/** node:http as it comes, noting the requests that it reads to their end. */
export type PlainServer = {
  readonly address: string
  /** Has it read these bytes as a connection without a socket, and says when it has made of them what it will. */
  read(bytes: Buffer): Promise<void>
  close(): Promise<void>
}

/** Turns of the event loop in which whatever has been parsed reaches its end: data, end, answer, and what they cause. */
const turns = 6

/** A connection that takes all that is written to it. */
const connectionOf = (): Duplex =>
  new Duplex({
    allowHalfOpen: true,
    read: () => {},
    write: (_chunk, _encoding, done) => done(),
    // A socket emits `close` in a later turn: requests parsed before a fault have ended by then.
    destroy: (_error, done) => setImmediate(done, null),
  }).on('error', () => {})

export const startPlainServer = async (sightings: Sightings): Promise<PlainServer> => {
  const take = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('error', () => {})
    incoming.on('end', () => {
      sightings.note(incoming.method ?? '', incoming.url ?? '', Buffer.concat(chunks).toString('latin1'))
      outgoing.end('ok')
    })
  }
  const { origin, server, close } = await startHttpServer(take)
  // It answers an unknown expectation without a request event.
  server.on('checkExpectation', take)
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return {
    address: origin,
    read: async (bytes) => {
      const connection = connectionOf()
      // Documented for any Duplex: the parser gets the bytes in this process, so that there is no network to wait for.
      server.emit('connection', connection)
      connection.push(bytes)
      for (let i = 0; i < turns; i += 1) await turn()
      connection.destroy()
    },
    close,
  }
}
