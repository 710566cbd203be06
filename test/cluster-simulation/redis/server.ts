import { world } from '../world.ts'
import type { Line } from './network.ts'
import { createRedisStore, type RedisStore, ReplyError } from './store.ts'

const startOfClock = Date.UTC(2026, 0, 1)

/** A server: it carries out one command after the other, in the order in which they arrive. */
export class RedisServer {
  readonly name: string
  readonly lines = new Set<Line>()
  readonly store: RedisStore
  runId: string
  replicationId: string
  /** The error that it replies to every command that writes. */
  refusal: string | undefined
  #isUp = true
  #isPaused = false
  #starts = 0
  #waiting: { readonly line: Line; readonly command: readonly (string | Buffer)[] }[] = []
  readonly #clockError: number

  constructor(name: string) {
    this.name = name
    this.#clockError = world.randomFor(`clock of ${name}`)() * 60_000
    this.runId = `${name}run0`
    this.replicationId = `${name}replid0`
    this.store = createRedisStore({
      now: () => startOfClock + world.now + this.#clockError,
      publish: (channel, text) => this.#publish(channel, text),
      runId: () => this.runId,
      replicationId: () => this.replicationId,
    })
  }

  get isUp(): boolean {
    return this.#isUp
  }

  receive(line: Line, command: readonly (string | Buffer)[]): void {
    if (!this.#isUp) return
    if (this.#isPaused) this.#waiting.push({ line, command })
    else this.#carryOut(line, command)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const { line, command } of waiting) this.#carryOut(line, command)
  }

  /** Ends the process. Connections are reset. */
  stop(): void {
    this.#isUp = false
    this.#isPaused = false
    this.#waiting = []
    this.cutAll()
  }

  cutAll(): void {
    for (const line of [...this.lines]) line.cut(false)
  }

  /** A new process, with the data that the old one has saved. As a replica that starts again it keeps its replication id. */
  restart(): void {
    this.#starts += 1
    this.runId = `${this.name}run${this.#starts}`
    this.store.forgetScripts()
    this.refusal = undefined
    this.#isUp = true
  }

  /** The same process becomes the master. */
  promote(): void {
    this.#starts += 1
    this.replicationId = `${this.name}replid${this.#starts}`
  }

  #publish(channel: string, text: string): number {
    let receivers = 0
    for (const line of this.lines) {
      if (!line.channels.has(channel)) continue
      line.response({ kind: 'message', channel, text })
      receivers += 1
    }
    return receivers
  }

  #carryOut(line: Line, command: readonly (string | Buffer)[]): void {
    const [name, ...args] = command.map(String)
    if (world.isTraced) world.note(`${this.name}: ${line.process.name} ${told(command)}`)
    if (name === 'SUBSCRIBE') {
      for (const channel of args) line.channels.add(channel)
      line.response({ kind: 'reply', reply: args.length })
      return
    }
    try {
      if (this.refusal !== undefined && name !== 'PING' && name !== 'PUBLISH')
        throw new ReplyError(this.refusal)
      const reply = this.store.run(command)
      if (world.isTraced) world.note(`${this.name}: → ${JSON.stringify(reply).slice(0, 200)}`)
      line.response({ kind: 'reply', reply })
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error
      line.response({ kind: 'error', error })
    }
  }
}

/** The first words of a command, without the text of a script. */
const told = (command: readonly (string | Buffer)[]): string =>
  command
    .map(String)
    .map((text) => (text.length > 60 ? `${text.slice(0, 20).replaceAll('\n', ' ')}…` : text))
    .join(' ')
