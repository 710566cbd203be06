import dns from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, errors } from 'undici'
import { Deadline } from '../../clock.ts'
import { resetCode } from '../failure.ts'
import { detectResets, guardConnection } from '../guard-connection.ts'
import type { UpstreamOptions } from '../options.ts'
import { correctHeads, ResponseHeads } from './response-heads.ts'

type LookupCallback = Parameters<LookupFunction>[2]

/**
 * Connections to one name share a running lookup. Each lookup occupies one of two threads (libuv keeps the others free for files),
 * even after its requests have ended, so lookups at a silent name server would block those for all other upstreams. Results are not
 * cached. The price: a name whose server has recovered is found when the system gives up the running lookup, after some seconds
 * (resolv.conf, timeout and attempts).
 */
export const sharedLookup = (lookup: LookupFunction): LookupFunction => {
  const inFlight = new Map<string, LookupCallback[]>()
  return (name, options, callback) => {
    const lookupKey = JSON.stringify([name, options])
    const others = inFlight.get(lookupKey)
    if (others !== undefined) {
      others.push(callback)
      return
    }
    const waiting = [callback]
    inFlight.set(lookupKey, waiting)
    const settle: LookupCallback = (...result) => {
      inFlight.delete(lookupKey)
      for (const settleCallback of waiting) settleCallback(...result)
    }
    try {
      lookup(name, options, settle)
    } catch (error) {
      // A replaced `dns.lookup` may throw. Without a result, all later lookups of this name would wait for this one.
      if (!inFlight.has(lookupKey)) throw error
      settle(error instanceof Error ? error : new Error(String(error)), [])
    }
  }
}

/**
 * Shared by all services, and by a configuration and the one before it. It reads `dns.lookup` at each call, because tools for tracing
 * replace that function in its module.
 */
export const systemLookup = sharedLookup((name, options, callback) => dns.lookup(name, options, callback))

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
