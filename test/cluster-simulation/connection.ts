import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Random } from '../support/random.ts'
import { network } from './redis/network.ts'
import { errors } from './replaced/undici.ts'
import { currentProcess, type Process, world } from './world.ts'

type Handler = Required<Dispatcher.DispatchHandler>

/** The request of a pool on its connection: what the server says arrives later, unless the gateway has closed the connection meanwhile. */
export class Connection {
  readonly process: Process = currentProcess()
  readonly #handler: Handler
  readonly #random: Random
  readonly #slowness: number
  readonly #closed: () => void
  /** What arrives while the gateway does not read. */
  #unread: (() => void)[] = []
  #isPaused = false
  isOver = false

  /** `closed`: the gateway has learned that there will be no more, or has closed the connection itself. */
  constructor(handler: Handler, random: Random, slowness: number, closed: () => void) {
    this.#handler = handler
    this.#random = random
    this.#slowness = slowness
    this.#closed = closed
  }

  delay(): number {
    return network.delay(this.#random) + (this.#random() < 0.3 ? this.#random() * this.#slowness : 0)
  }

  /** Something happens at the gateway after a while. */
  #later(kind: string, run: () => void): void {
    world.schedule(world.now + this.delay(), this.process, kind, () => {
      if (this.isOver) return
      if (this.#isPaused) this.#unread.push(run)
      else run()
    })
  }

  #end(): void {
    this.isOver = true
    this.#closed()
  }

  /** Connects, and calls `arrived` with each piece of the content at the server, and at the end. */
  open(content: unknown, arrived: { readonly piece: () => void; readonly whole: () => void }): void {
    this.#later('a connection opens', () => {
      if (this.#random() < 0.02) {
        this.#end()
        this.#handler.onError(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
        return
      }
      this.#handler.onConnect((reason?: Error) => this.#abort(reason ?? new errors.RequestAbortedError()))
      if (this.isOver) return
      if (content instanceof Readable) this.#send(content, arrived)
      else world.schedule(world.now + this.delay(), undefined, 'a request arrives', arrived.whole)
    })
  }

  #send(
    content: Readable,
    { piece, whole }: { readonly piece: () => void; readonly whole: () => void },
  ): void {
    content.on('data', () => {
      if (!this.isOver)
        world.schedule(world.now + this.delay(), undefined, 'a piece of a request arrives', piece)
    })
    content.on('end', () => world.schedule(world.now + this.delay(), undefined, 'a request arrives', whole))
    content.on('error', (error) => this.#abort(error))
  }

  #abort(reason: Error): void {
    if (this.isOver) return
    this.#end()
    this.#handler.onError(reason)
  }

  head(status: number, headers: readonly string[], then: () => void = () => undefined): void {
    this.#later('head of a response', () => {
      const raw = headers.map((text) => Buffer.from(text))
      this.#isPaused = !this.#handler.onHeaders(status, raw, () => this.#resume(), '')
      then()
    })
  }

  /** What arrives in the same turn as the head. */
  withHead(content: Buffer): void {
    this.#data(content)
    this.#complete()
  }

  piece(content: Buffer, then: () => void): void {
    this.#later('piece of a response', () => {
      this.#data(content)
      then()
    })
  }

  complete(): void {
    this.#later('end of a response', () => this.#complete())
  }

  breaks(): void {
    this.#later('a connection breaks', () => {
      this.#end()
      this.#handler.onError(new errors.SocketError('other side closed'))
    })
  }

  #data(content: Buffer): void {
    if (this.isOver) return
    if (this.#isPaused) this.#unread.push(() => this.#data(content))
    else this.#isPaused = !this.#handler.onData(content)
  }

  #complete(): void {
    if (this.isOver) return
    if (this.#isPaused) {
      this.#unread.push(() => this.#complete())
      return
    }
    this.#end()
    this.#handler.onComplete([])
  }

  #resume(): void {
    this.#isPaused = false
    while (!this.#isPaused && !this.isOver) {
      const next = this.#unread.shift()
      if (next === undefined) return
      next()
    }
  }
}
