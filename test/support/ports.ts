import { createServer } from 'node:net'

/** Below the ports that the system gives out by itself (Linux: from 32768 on), to listeners on port 0 and to outgoing connections. */
const first = 12_000
const count = 20_000

/** Test processes begin at different ports, and none gives a port twice. */
let next = Math.floor(Math.random() * count)

/** A free loopback port, for programs that take a fixed one (php -S, the gateway's config file). */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < count; tries += 1) {
    const port = first + (next % count)
    next += 1
    if (await isFree(port)) return port
  }
  throw new Error('no port is free')
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const isListening = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isListening) await new Promise((resolve) => probe.close(resolve))
  return isListening
}
