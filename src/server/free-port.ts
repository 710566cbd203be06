import { type AddressInfo, createServer } from 'node:net'

/** Finds a free port when the configuration leaves it open: links need the port before anything listens. */
export const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
