import type { LookupFunction, Socket } from 'node:net'
import { buildConnector, errors } from 'undici'
import { Deadline } from './deadline.ts'
import { resetCode } from './failure.ts'
import type { UpstreamOptions } from './options.ts'
import { tellResets } from './tell-resets.ts'

const given = <Key extends string>(key: Key, value: string): { [K in Key]?: string } =>
  value === '' ? {} : ({ [key]: value } as { [K in Key]?: string })

/**
 * undici takes a reset for the end of an answer that lasts until its connection ends; a short answer would look whole,
 * and be kept. Under another name it is the error that it is.
 */
const resetIsNoEnd = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'ECONNRESET') error.code = resetCode
}

/**
 * Opens connections with an exact connect timeout: undici's own has a resolution of half a second, and one that fires
 * before the TLS handshake has ended would not count it.
 */
export const createConnector = (
  options: UpstreamOptions,
  lookup: LookupFunction,
): buildConnector.connector => {
  const { tls } = options
  const connect = buildConnector({
    ...given('ca', tls.ca),
    ...given('cert', tls.cert),
    ...given('key', tls.key),
    minVersion: tls.minVersion,
    rejectUnauthorized: !tls.acceptAnyCertificate,
    lookup,
    timeout: 0,
    allowH2: options.http2,
  })
  const { connectMs } = options.timeouts
  return (target, callback) => {
    let deadline: Deadline | undefined
    // undici would take the name from the Host field, which may be another one: '' makes it the target's.
    const socket = connect({ ...target, servername: tls.serverName }, (...result) => {
      deadline?.stop()
      callback(...result)
    }) as unknown as Socket
    socket.on('error', resetIsNoEnd)
    // TLS says itself where a connection ends.
    if (target.protocol === 'http:') tellResets(socket)
    if (connectMs > 0) {
      deadline = new Deadline(connectMs, () => socket.destroy(new errors.ConnectTimeoutError()))
    }
    return socket
  }
}
