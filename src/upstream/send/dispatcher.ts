import { GatewayError } from '../../errors.ts'
import { type FieldLines, fieldValue, withoutFields } from '../../http/fields.ts'
import type { Receiver } from './receive.ts'
import type { RelayOptions, RelayRoom } from './upstream-context.ts'
import { Relay } from './upstream-request.ts'

const hostName: ReadonlySet<string> = new Set(['host'])

/** The fields with the Host that is configured; '' = none, then undici sends the target's own (RFC 9112 §3.2). */
const withHost = (fields: FieldLines, host: string): string[] => {
  const kept = withoutFields(fields, hostName)
  return host === '' ? kept : ['host', host, ...kept]
}

/** Every request to one service goes through here: a target is chosen, and the same limits hold for all. */
export class UpstreamDispatcher {
  readonly #room: RelayRoom
  #closing = false
  #idle: (() => void)[] = []

  constructor(room: Omit<RelayRoom, 'ended'>) {
    this.#room = { ...room, ended: () => this.#ended() }
  }

  /** The fields are in lower case. */
  forward(request: RelayOptions, receiver: Receiver): void {
    const { hostField } = this.#room.options
    // Whoever forgot to leave Host out must not choose whom the target takes itself for.
    const isPlain = hostField === '' && fieldValue(request.headers, 'host') === undefined
    const sent = isPlain ? request : { ...request, headers: withHost(request.headers, hostField) }
    new Relay(this.#room, sent, receiver).begin(this.#closing ? new GatewayError('shutting_down') : undefined)
  }

  /** Takes no new requests, lets those under way finish, then closes the connections. */
  async close(): Promise<void> {
    this.#closing = true
    if (this.#room.relays.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
    await Promise.all(this.#room.targets.all.map(({ pool }) => (pool.destroyed ? undefined : pool.close())))
  }

  /** Ends the requests under way and closes the connections. */
  async destroy(): Promise<void> {
    this.#closing = true
    this.#room.relays.abortAll(new GatewayError('shutting_down'))
    await Promise.all(this.#room.targets.all.map(({ pool }) => pool.destroy()))
  }

  #ended(): void {
    if (this.#room.relays.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
