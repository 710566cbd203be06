import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pause } from './origin.ts'

/** One of several instances behind the balancer. */
type Instance = { readonly origin: string; readonly adminOrigin: string }

/** A TCP balancer: connections go in turn to the instances whose /readyz says yes. */
export type RoundRobin = {
  readonly origin: string
  close(): Promise<void>
}

const isReady = async ({ adminOrigin }: Instance): Promise<boolean> => {
  try {
    const response = await fetch(`${adminOrigin}/readyz`)
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

/** Asks all for readiness every `checkMs`, as deployments do. */
export const startRoundRobin = async (
  instances: readonly Instance[],
  checkMs: number,
): Promise<RoundRobin> => {
  let ready: readonly Instance[] = instances
  let turn = 0
  const sockets = new Set<Socket>()
  let isOpen = true
  const check = async (): Promise<void> => {
    const responses = await Promise.all(instances.map(isReady))
    ready = instances.filter((_, index) => responses[index])
  }
  // One after the other: of two at once the older response may come last.
  const goOn = async (): Promise<void> => {
    while (isOpen) {
      await pause(checkMs)
      await check()
    }
  }
  const server = createServer((client) => {
    turn += 1
    const instance = ready[turn % Math.max(1, ready.length)]
    if (instance === undefined) {
      client.destroy()
      return
    }
    const { hostname, port } = new URL(instance.origin)
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => sockets.delete(socket))
    }
    client.pipe(upstream).pipe(client)
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await check()
  void goOn()
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      isOpen = false
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
