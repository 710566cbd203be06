import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A port in front of a server, at which connections can be made to fail. */
export type Switchboard = {
  readonly port: number
  /** The fault of new connections; open ones end. */
  route(to: (socket: Socket) => void): void
  /** The port is closed. */
  hangUp(): Promise<void>
  /** Listens on the same port again. */
  pickUp(): Promise<void>
  close(): Promise<void>
}

/** Carries bytes both ways between a connection and a port. */
export const leadTo =
  (port: number) =>
  (socket: Socket): void => {
    const inner = connect(port, '127.0.0.1')
    inner.on('error', () => socket.destroy())
    inner.on('close', () => socket.destroy())
    socket.on('close', () => inner.destroy())
    socket.pipe(inner).pipe(socket)
  }

/** Starts on a free port of 127.0.0.1 and leads to the given one. */
export const startSwitchboard = async (innerPort: number): Promise<Switchboard> => {
  const open = new Set<Socket>()
  let to = leadTo(innerPort)
  const listen = async (port: number): Promise<Server> => {
    const server = createServer((socket) => {
      open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => open.delete(socket))
      to(socket)
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  let server = await listen(0)
  const { port } = server.address() as AddressInfo
  const hangUp = async (): Promise<void> => {
    for (const socket of open) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return {
    port,
    route(next) {
      to = next
      for (const socket of open) socket.destroy()
    },
    hangUp,
    async pickUp() {
      server = await listen(port)
    },
    close: hangUp,
  }
}
