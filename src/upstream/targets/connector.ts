import type { LookupFunction, Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, errors } from 'undici'
import { Deadline } from '../../clock.ts'
import { resetCode } from '../failure.ts'
import { detectResets, guardConnection } from '../guard-connection.ts'
import type { UpstreamOptions } from '../options.ts'
import { correctHeads, ResponseHeads } from './response-heads.ts'

type ConnectHandler = Parameters<Client['dispatch']>[1]

/**
 * One connection of a pool. It corrects the heads of its responses, and closes at its maximum age, if it has one (0 = none): at once when it is idle, otherwise after the next response, by
 * `Connection: close` in that request (RFC 9112 §9.6); the client then connects again. undici has its own bound (`clientTtl`), for which its
 * pool reads the clock once for each connection that it passes over in search of a free one, and searches twice a request: a
 * twentieth of what a pass-through costs with 32 requests in flight (docs/decisions/0013).
 */
export class AgingClient extends Client {
  readonly #maxAgeMs: number
  readonly #heads: ResponseHeads
  #socket: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #isOld = false

  constructor(
    origin: URL,
    options: Client.Options & { readonly connect: buildConnector.connector },
    maxAgeMs: number,
  ) {
    super(origin, {
      ...options,
      connect: (target, callback) => {
        const socket = options.connect(target, callback) as unknown as Socket
        this.#socket = socket
        this.#heads.expect()
        correctHeads(socket, this.#heads, () => this.stats.running > 0)
        return socket
      },
    })
    this.#maxAgeMs = maxAgeMs
    this.#heads = new ResponseHeads(2 * (options.maxHeaderSize ?? 0))
    this.on('connect', () => this.#begin())
    this.on('disconnect', () => clearTimeout(this.#timer))
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: ConnectHandler): boolean {
    // A pool gives a client its next request when the response to the last one is complete.
    this.#heads.expect()
    return super.dispatch(this.#isOld ? { ...options, reset: true } : options, handler)
  }

  #begin(): void {
    this.#isOld = false
    if (this.#maxAgeMs === 0) return
    this.#timer = setTimeout(() => this.#growOld(), this.#maxAgeMs)
    this.#timer.unref()
  }

  #growOld(): void {
    if (this.stats.size === 0) this.#socket?.destroy()
    else this.#isOld = true
  }
}

/**
 * undici takes ECONNRESET for the end of a response that is delimited by the end of its connection: a part of it would look complete,
 * and be stored. undici reports an error with another code.
 */
const renameReset = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'ECONNRESET') error.code = resetCode
}

/**
 * Opens connections with an exact connect timeout: undici's own has a resolution of half a second, and one that fires
 * before the TLS handshake has ended would not count it.
 */
export const createConnector = (
  options: UpstreamOptions,
  lookup: LookupFunction,
  faulted: (error: unknown) => void,
): buildConnector.connector => {
  const { tls } = options
  const { ca, cert, key } = tls
  const pems = Object.entries({ ca, cert, key }).filter(([, pem]) => pem !== '')
  const connect = buildConnector({
    ...Object.fromEntries(pems),
    minVersion: tls.minVersion,
    rejectUnauthorized: !tls.acceptAnyCertificate,
    lookup,
    timeout: 0,
    allowH2: false,
  })
  const { connectMs } = options.timeouts
  return (target, callback) => {
    let deadline: Deadline | undefined
    // undici would take the name from the Host header, which may be another one: '' makes it the target's.
    const socket = connect({ ...target, servername: tls.serverName }, (...result) => {
      deadline?.stop()
      callback(...result)
    }) as unknown as Socket
    socket.on('error', renameReset)
    // TLS itself marks the end of a connection.
    if (target.protocol === 'http:') detectResets(socket)
    guardConnection(socket, faulted)
    if (connectMs > 0) {
      deadline = new Deadline(connectMs, () => socket.destroy(new errors.ConnectTimeoutError()))
    }
    return socket
  }
}
