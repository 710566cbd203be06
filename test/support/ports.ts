import { createServer } from 'node:net'

/**
 * A loopback port that was free a moment ago, for programs that must be told theirs (php -S, the gateway's config file).
 * Servers inside the test process listen on port 0 instead: nobody can take the port in between.
 */
export async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', resolve)
  })
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('the probe has no port')
  return address.port
}
