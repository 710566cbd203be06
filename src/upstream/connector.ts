import type { Socket } from 'node:net'
import { buildConnector, errors } from 'undici'
import type { UpstreamOptions } from './options.ts'

/**
 * Opens connections with an exact connect timeout: undici's own has a resolution of half a second, and one that fires
 * before the TLS handshake has ended would not count it.
 */
export const createConnector = (options: UpstreamOptions): buildConnector.connector => {
  const connect = buildConnector({ ...options.tls, timeout: 0, allowH2: false })
  const { connectMs } = options.timeouts
  return (target, callback) => {
    let timer: NodeJS.Timeout | undefined
    const socket = connect(target, (...result) => {
      clearTimeout(timer)
      callback(...result)
    }) as unknown as Socket
    if (connectMs > 0) {
      timer = setTimeout(() => socket.destroy(new errors.ConnectTimeoutError()), connectMs)
    }
    return socket
  }
}
