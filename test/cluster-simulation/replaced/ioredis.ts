import { EventEmitter } from 'node:events'
import { type FromServer, Line, network } from '../redis/network.ts'
import type { Reply } from '../redis/store.ts'
import { currentProcess, type Process, world } from '../world.ts'
import { clearTimeout, setTimeout } from './globals.ts'

// What stands in the bundle of the simulation in place of `ioredis`: as much of it as src/cluster uses, with its documented
// behaviour, on simulated connections.

type Options = {
  readonly host?: string
  readonly port?: number
  readonly commandTimeout?: number
  readonly connectTimeout?: number
  readonly socketTimeout?: number
  readonly retryStrategy?: ((attempts: number) => number) | null
  readonly reconnectOnError?: (error: Error) => boolean
}

type Status = 'wait' | 'connecting' | 'ready' | 'close' | 'end'

type Pending = {
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: Error) => void
  readonly timer: ReturnType<typeof setTimeout>
}

/** Redis commands are methods of it. */
export class Redis extends EventEmitter {
  readonly options: Options
  status: Status = 'wait'
  readonly #process: Process = currentProcess()
  #line: Line | undefined
  #pending: Pending[] = []
  #attempts = 0
  #lastReplyAt = 0
  #isClosing = false
  #retry: ReturnType<typeof setTimeout> | undefined
  #silence: ReturnType<typeof setTimeout> | undefined
  /** Of the attempt to connect that counts. */
  #attempt = 0

  constructor(url: string, options: Options = {}) {
    super()
    const { hostname, port } = new URL(url)
    this.options = { host: hostname, port: Number(port), ...options }
  }

  duplicate(changes: Options): Redis {
    const { host, port } = this.options
    return new Redis(`redis://${host}:${port}`, { ...this.options, ...changes })
  }

  connect(): Promise<void> {
    this.status = 'connecting'
    return new Promise((resolve, reject) => {
      this.#attempt += 1
      const attempt = this.#attempt
      const timer = setTimeout(() => failed(new Error('connect ETIMEDOUT')), this.options.connectTimeout)
      const failed = (error: Error): void => {
        clearTimeout(timer)
        if (attempt !== this.#attempt || this.status !== 'connecting') return
        this.#attempt += 1
        this.emit('error', error)
        reject(error)
        this.#closed()
      }
      world.schedule(world.now + Line.delayOf(this.#process), this.#process, 'connected', () => {
        if (attempt !== this.#attempt || this.status !== 'connecting') return
        const { server } = network
        if (server?.isUp !== true) {
          failed(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
          return
        }
        clearTimeout(timer)
        this.#attempts = 0
        this.#line = new Line(this.#process, server, {
          take: (message) => this.#take(message),
          closed: () => this.#lost(),
        })
        this.status = 'ready'
        this.emit('ready')
        resolve()
      })
    })
  }

  disconnect(): void {
    this.#isClosing = true
    clearTimeout(this.#retry)
    this.#attempt += 1
    const wasOpen = this.status === 'ready' || this.status === 'connecting'
    this.#line?.close()
    if (wasOpen) world.schedule(world.now, this.#process, 'disconnected', () => this.#closed())
  }

  /** The connection is lost: replies that did not arrive are not waited for. */
  #lost(): void {
    if (this.status !== 'ready') return
    this.#closed()
  }

  #closed(): void {
    clearTimeout(this.#silence)
    this.#silence = undefined
    this.#line = undefined
    this.status = 'close'
    const pending = this.#pending
    this.#pending = []
    for (const { reject, timer } of pending) {
      clearTimeout(timer)
      reject(new Error('Connection is closed.'))
    }
    this.emit('close')
    const { retryStrategy } = this.options
    if (this.#isClosing || typeof retryStrategy !== 'function') {
      this.status = 'end'
      this.emit('end')
      return
    }
    this.#attempts += 1
    this.#retry = setTimeout(() => {
      this.connect().catch(() => undefined)
    }, retryStrategy(this.#attempts))
  }

  /** A connection on which nothing arrives although something should is destroyed. */
  #watch(): void {
    const { socketTimeout } = this.options
    if (this.#silence !== undefined || socketTimeout === undefined) return
    this.#silence = setTimeout(() => {
      this.#silence = undefined
      if (this.#pending.length === 0) return
      const silentMs = world.monotonicOf(this.#process) - this.#lastReplyAt
      if (silentMs < socketTimeout) {
        this.#watch()
        return
      }
      this.#line?.close()
      this.#lost()
    }, socketTimeout)
  }

  #take(message: FromServer): void {
    this.#lastReplyAt = world.monotonicOf(this.#process)
    if (message.kind === 'message') {
      this.emit('message', message.channel, message.text)
      return
    }
    const pending = this.#pending.shift()
    if (pending === undefined) throw new Error('a reply without a command')
    clearTimeout(pending.timer)
    if (message.kind === 'reply') {
      pending.resolve(message.reply)
      return
    }
    pending.reject(message.error)
    if (this.options.reconnectOnError?.(message.error) !== true) return
    this.#line?.close()
    this.#lost()
  }

  #command(...command: readonly (string | number | Buffer)[]): Promise<Reply> {
    if (this.status !== 'ready')
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"))
    return new Promise((resolve, reject) => {
      if (this.#pending.length === 0) this.#lastReplyAt = world.monotonicOf(this.#process)
      const timer = setTimeout(() => reject(new Error('Command timed out')), this.options.commandTimeout)
      this.#pending.push({ resolve, reject, timer })
      this.#watch()
      this.#line?.send(command.map((one) => (typeof one === 'number' ? String(one) : one)))
    })
  }

  evalsha(...args: readonly (string | number | Buffer)[]): Promise<Reply> {
    return this.#command('EVALSHA', ...args)
  }
  eval(...args: readonly (string | number | Buffer)[]): Promise<Reply> {
    return this.#command('EVAL', ...args)
  }
  subscribe(...channels: readonly string[]): Promise<Reply> {
    return this.#command('SUBSCRIBE', ...channels)
  }
  publish(channel: string, message: string): Promise<Reply> {
    return this.#command('PUBLISH', channel, message)
  }
  ping(): Promise<Reply> {
    return this.#command('PING')
  }
  get(key: string): Promise<Reply> {
    return this.#command('GET', key)
  }
  set(...args: readonly (string | number | Buffer)[]): Promise<Reply> {
    return this.#command('SET', ...args)
  }
  del(key: string): Promise<Reply> {
    return this.#command('DEL', key)
  }
  exists(key: string): Promise<Reply> {
    return this.#command('EXISTS', key)
  }
  pttl(key: string): Promise<Reply> {
    return this.#command('PTTL', key)
  }
  getrangeBuffer(key: string, from: number, to: number): Promise<Reply> {
    return this.#command('GETRANGE', key, from, to)
  }
}

/** Clusters are not simulated. */
export class Cluster extends Redis {}

export const Command = { setReplyTransformer: (): void => undefined }

/** Sockets are not simulated. */
export class AbstractConnector {}
