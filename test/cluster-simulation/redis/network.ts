import type { Random } from '../../support/random.ts'
import { type Process, world } from '../world.ts'
import type { RedisServer } from './server.ts'
import type { Reply } from './store.ts'

/** How long messages take: mostly less than a millisecond, some very long. */
export type Roughness = {
  /** Share of messages that take up to `someMs`, and of those that take up to `longMs`. */
  readonly some: number
  readonly someMs: number
  readonly long: number
  readonly longMs: number
}

const createNetwork = () => {
  let roughness: Roughness = { some: 0, someMs: 0, long: 0, longMs: 0 }
  return {
    /** Where a new connection leads; undefined: nobody listens there. */
    server: undefined as RedisServer | undefined,
    lines: 0,
    start(next: Roughness): void {
      roughness = next
      this.server = undefined
      this.lines = 0
    },
    delay: (random: Random): number => {
      const chance = random()
      if (chance < roughness.long) return random() * roughness.longMs
      if (chance < roughness.long + roughness.some) return random() * roughness.someMs
      return 0.05 + random() * 0.5
    },
  }
}

export const network = createNetwork()

/** A message of Redis: the reply to a command, an error, or what was published. */
export type FromServer =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'error'; readonly error: Error }
  | { readonly kind: 'message'; readonly channel: string; readonly text: string }

type Receiver = { take(message: FromServer): void; closed(): void }

/** A connection: nothing on it overtakes anything, and what is sent before it is cut may still arrive. */
export class Line {
  readonly process: Process
  readonly server: RedisServer
  readonly channels = new Set<string>()
  readonly #receiver: Receiver
  readonly #random: Random
  #atServer = 0
  #atClient = 0
  #isSending = true
  #isReceived = true
  #isOpen = true

  constructor(process: Process, server: RedisServer, receiver: Receiver) {
    network.lines += 1
    this.process = process
    this.server = server
    this.#receiver = receiver
    this.#random = world.randomFor(`line ${process.name} ${network.lines}`)
    server.lines.add(this)
  }

  /** After which both ends are connected. */
  static delayOf(process: Process): number {
    const { outUntil, backUntil } = process.machine
    return Math.max(0, outUntil - world.now, backUntil - world.now) + 2 * network.delay(process.random)
  }

  #delay(): number {
    const { sluggishMs, sluggishUntil } = this.process.machine
    const isSluggish = world.now < sluggishUntil && this.#random() < 0.5
    return network.delay(this.#random) + (isSluggish ? this.#random() * sluggishMs : 0)
  }

  send(command: readonly (string | Buffer)[]): void {
    if (!this.#isSending) return
    const { outUntil } = this.process.machine
    this.#atServer = Math.max(this.#atServer, Math.max(world.now, outUntil) + this.#delay())
    world.schedule(this.#atServer, undefined, 'to redis', () => {
      if (this.#isReceived) this.server.receive(this, command)
    })
  }

  /** From the server to the client. */
  response(message: FromServer): void {
    if (!this.#isOpen) return
    const { backUntil } = this.process.machine
    this.#atClient = Math.max(this.#atClient, Math.max(world.now, backUntil) + this.#delay())
    world.schedule(this.#atClient, this.process, `from redis: ${message.kind}`, () => {
      if (this.#isOpen) this.#receiver.take(message)
    })
  }

  /** `isSilent`: the client is not told. What it has sent before arrives, or does not. */
  cut(isSilent: boolean): void {
    if (!this.#isOpen) return
    this.#end()
    if (isSilent) return
    world.schedule(world.now + network.delay(this.#random), this.process, 'connection reset', () =>
      this.#receiver.closed(),
    )
  }

  /** The client, or the end of its process, closes it. */
  close(): void {
    this.#end()
  }

  #end(): void {
    this.#isOpen = false
    this.#isSending = false
    if (this.#random() < 0.5) this.#isReceived = false
    this.server.lines.delete(this)
  }
}
