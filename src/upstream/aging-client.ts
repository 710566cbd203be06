import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'

type Handler = Parameters<Client['dispatch']>[1]

/**
 * One connection of a pool, given up when it is so old: at once when it is idle, otherwise with the next answer, which it asks to
 * be the last one (RFC 9112 §9.6); the client then connects anew. undici has a bound of its own (`clientTtl`), for which its
 * pool reads the clock once for each connection that it passes over in search of a free one, and searches twice a request: a
 * twentieth of what a pass-through costs with 32 requests under way (docs/decisions/0013).
 */
export class AgingClient extends Client {
  readonly #maxAgeMs: number
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
        return socket
      },
    })
    this.#maxAgeMs = maxAgeMs
    this.on('connect', () => this.#begin())
    this.on('disconnect', () => clearTimeout(this.#timer))
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Handler): boolean {
    return super.dispatch(this.#isOld ? { ...options, reset: true } : options, handler)
  }

  #begin(): void {
    this.#isOld = false
    this.#timer = setTimeout(() => this.#growOld(), this.#maxAgeMs)
    this.#timer.unref()
  }

  #growOld(): void {
    if (this.stats.size === 0) this.#socket?.destroy()
    else this.#isOld = true
  }
}
