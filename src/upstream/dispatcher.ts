import { DecoratorHandler, Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import { interimOf, signalOf } from './client-signal.ts'
import { Relay } from './relay.ts'
import type { Dispatched, RelayOptions, RelayRoom } from './relay-room.ts'
import { withHost } from './request-fields.ts'

/**
 * The dispatcher that every path of one service uses, @fastify/reply-from included: the origin a caller names is
 * ignored, a target is chosen, and the same limits hold for all.
 */
export class UpstreamDispatcher extends Dispatcher {
  readonly #room: RelayRoom
  #closing = false
  #idle: (() => void)[] = []

  constructor(room: Omit<RelayRoom, 'ended'>) {
    super()
    this.#room = { ...room, ended: () => this.#ended() }
  }

  override dispatch(options: Dispatched, handler: Dispatcher.DispatchHandler): boolean {
    // Understands handlers of both undici interfaces, and stops calling one that has had its error.
    const current: Dispatcher.DispatchHandler = new DecoratorHandler(handler)
    const interim = options.interim ?? interimOf(options.headers)
    const client = options.client ?? signalOf(options.headers)
    const request = {
      ...options,
      headers: withHost(options.headers, this.#room.options.hostField),
      interim,
      client,
    }
    new Relay(this.#room, request, current).begin(
      this.#closing ? new GatewayError('shutting_down') : undefined,
    )
    return true
  }

  /** As `dispatch`, for this room's own handlers: their fields are in lower case, and they read lines. */
  forward(request: RelayOptions, handler: Dispatcher.DispatchHandler): void {
    const { hostField } = this.#room.options
    // Whoever forgot to leave Host out must not choose whom the target takes itself for.
    const isPlain = hostField === '' && request.headers['host'] === undefined
    const sent = isPlain ? request : { ...request, headers: withHost(request.headers, hostField) }
    new Relay(this.#room, sent, handler).begin(this.#closing ? new GatewayError('shutting_down') : undefined)
  }

  /** Takes no new requests, lets those under way finish, then closes the connections. */
  override close(): Promise<void>
  override close(callback: () => void): void
  override close(callback?: () => void): Promise<void> | void {
    const closed = this.#drain()
    if (callback === undefined) return closed
    void closed.then(callback)
  }

  /** Ends the requests under way and closes the connections. */
  override destroy(): Promise<void>
  override destroy(error: Error | null): Promise<void>
  override destroy(callback: () => void): void
  override destroy(error: Error | null, callback: () => void): void
  override destroy(first?: Error | null | (() => void), second?: () => void): Promise<void> | void {
    const callback = typeof first === 'function' ? first : second
    const error = first instanceof Error ? first : new GatewayError('shutting_down')
    this.#closing = true
    this.#room.relays.abortAll(error)
    const destroyed = Promise.all(this.#room.targets.all.map(({ pool }) => pool.destroy())).then(
      () => undefined,
    )
    if (callback === undefined) return destroyed
    void destroyed.then(callback)
  }

  async #drain(): Promise<void> {
    this.#closing = true
    if (this.#room.relays.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
    await Promise.all(this.#room.targets.all.map(({ pool }) => (pool.destroyed ? undefined : pool.close())))
  }

  #ended(): void {
    if (this.#room.relays.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
