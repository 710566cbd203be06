import { createServer, type Server } from 'node:net'

/** Below the ports that the system gives out by itself (Linux: from 32768 on), to listeners on port 0 and to outgoing connections. */
const first = 12_000
const count = 20_000

const ofBlock = 100

let next = 0
let end = 0

/**
 * A free loopback port, for programs that take a fixed one (php -S, the gateway's config file). A test process holds the first port of
 * a block of its own for as long as it lives, so that no two processes give the same port; none gives a port twice.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < count; tries += 1) {
    if (next === end) await holdBlock()
    const port = next
    next += 1
    const probe = await listen(port)
    if (probe === undefined) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
  throw new Error('no port is free')
}

async function holdBlock(): Promise<void> {
  const blocks = count / ofBlock
  const start = Math.floor(Math.random() * blocks)
  for (let block = 0; block < blocks; block += 1) {
    const port = first + ((start + block) % blocks) * ofBlock
    const server = await listen(port)
    if (server === undefined) continue
    // Never closed: a block that is used up stays held, as its ports may still be in use.
    server.unref()
    next = port + 1
    end = port + ofBlock
    return
  }
  throw new Error('no block of ports is free')
}

/** Undefined: another program listens. */
function listen(port: number): Promise<Server | undefined> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
