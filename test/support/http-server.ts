import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A node:http server on a free port of 127.0.0.1. */
export type HttpServer = {
  readonly origin: string
  readonly server: Server
  close(): Promise<void>
}

/** For bodies that stream and for load: the scripted origin reads every request whole and remembers it. */
export const startHttpServer = async (
  listener: RequestListener,
  options: ServerOptions = {},
): Promise<HttpServer> => {
  const server = createServer(options, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
