import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

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
  const check = async (): Promise<void> => {
    const answers = await Promise.all(instances.map(isReady))
    ready = instances.filter((_, index) => answers[index])
  }
  const timer = setInterval(() => void check(), checkMs)
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
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
