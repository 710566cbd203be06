import { type AddressInfo, createServer } from 'node:net'

/** Links must carry the port before anything listens; so a free one is looked up when the configuration leaves it open. */
export const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
