import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { ReceiverConfig } from '../config/config.ts'
import type { DownstreamEvent, ReceiverStatus } from './events.ts'
import { createDialect, type PurgeDialect } from './purge-requests.ts'
import { causeOf, createSender, Unconfirmed } from './purge-sender.ts'

/** Purges that come within it go with one request. */
const joinMs = 5
/** Of tags that wait; more become the one for everything. */
const maxWaiting = 2_000
const firstPauseMs = 250
/** Interval of heartbeats to an instance that names its process: bounds how long a restart goes unseen. */
const heartbeatMs = 1_000

/** Another process confirmed than before: it has not got what was sent to its predecessor. */
class Restarted extends Unconfirmed {
  constructor() {
    super('restarted')
  }
}

type ReceiverInstanceOptions = {
  readonly config: ReceiverConfig
  readonly service: string
  readonly receiver: string
  /** Of one instance of several behind the name in the URL. */
  readonly address: string | undefined
  /** The tag of everything that the service has stored. */
  readonly everything: string
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: DownstreamEvent) => void
  /** The instance lags now, or no longer. */
  readonly changed: () => void
}

/** Waits for what was enqueued before it. */
type Listener = { isOver: boolean; confirmed(): void }

/** How a purge ended for the write that waited; after `behind` (not waited for) and `late` it is sent again until it is confirmed. */
type PurgeEnd = 'confirmed' | 'late' | 'behind'

/**
 * Sends purges to one receiver, one request at a time, until each is confirmed. A confirmation by another process than before counts
 * only for a purge of everything, which is sent at once.
 */
export class ReceiverInstance {
  readonly #options: ReceiverInstanceOptions
  readonly #dialect: PurgeDialect
  readonly #sender: ReturnType<typeof createSender>
  readonly #closing = new AbortController()
  readonly #heartbeat: NodeJS.Timeout
  #waiting = new Set<string>()
  /** Called when everything that waits is confirmed. */
  #listeners = new Set<Listener>()
  /** Since when something is unconfirmed, or the receiver away. */
  #since: number | undefined
  #running: Promise<void> | undefined
  #failures = 0
  /** Why it lags. It does until the first purge of everything is confirmed: an earlier process may have left some purges unsent. */
  #reason: string | undefined = 'start'
  #process: string | undefined

  constructor(options: ReceiverInstanceOptions) {
    this.#options = options
    const { config, everything, clock, address } = options
    this.#dialect = createDialect(config, everything, clock.now)
    this.#sender = createSender(config, this.#dialect.confirms, address, clock)
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs)
    this.#heartbeat.unref()
  }

  get onFailure(): ReceiverConfig['onFailure'] {
    return this.#options.config.onFailure
  }

  get isLagging(): boolean {
    return this.#reason !== undefined
  }

  get address(): string | undefined {
    return this.#options.address
  }

  status(): ReceiverStatus {
    const { service, receiver, address, clock } = this.#options
    return {
      service,
      receiver,
      address,
      isLagging: this.isLagging,
      reason: this.#reason,
      lagSeconds: this.#since === undefined ? 0 : (clock.monotonic() - this.#since) / 1000,
    }
  }

  enqueue(tags: Iterable<string>): void {
    this.#add(tags)
    this.#run()
  }

  /** Sends the tags; resolves when they are confirmed, or nobody waits any longer. */
  async purge(tags: ReadonlySet<string>): Promise<PurgeEnd> {
    const { service, receiver, clock, report } = this.#options
    const began = clock.monotonic()
    let outcome: PurgeEnd = 'behind'
    if (this.isLagging && this.onFailure === 'lag') this.enqueue(tags)
    else {
      outcome = await this.#confirmed(tags)
      if (outcome === 'late') this.#setLagging('late')
    }
    const waitedSeconds = (clock.monotonic() - began) / 1000
    report({ kind: 'purge-awaited', service, receiver, outcome, waitedSeconds })
    return outcome
  }

  /** Lets what waits be sent first, unless the instance lags. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeat)
    if (this.isLagging) this.#closing.abort()
    await this.#running
    this.#closing.abort()
    await this.#sender.close()
  }

  #confirmed(tags: ReadonlySet<string>): Promise<PurgeEnd> {
    return new Promise<PurgeEnd>((resolve) => {
      const timer = setTimeout(() => {
        listener.isOver = true
        resolve('late')
      }, this.#options.config.timeoutMs)
      const listener: Listener = {
        isOver: false,
        confirmed: () => {
          clearTimeout(timer)
          resolve('confirmed')
        },
      }
      this.#listeners.add(listener)
      this.enqueue(tags)
    })
  }

  /** An instance that names no process gets no heartbeats: they would say nothing, and some networks charge for each request. */
  #beat(): void {
    if (this.#process !== undefined) this.#run()
  }

  #run(): void {
    this.#running ??= this.#sendUntilConfirmed()
  }

  async #sendUntilConfirmed(): Promise<void> {
    await sleep(joinMs)
    do await this.#sendOnce()
    while (this.#waiting.size > 0 && !this.#closing.signal.aborted)
    this.#running = undefined
  }

  async #sendOnce(): Promise<void> {
    const { service, receiver, clock, report } = this.#options
    const began = clock.monotonic()
    const [tags, listeners] = [this.#waiting, this.#listeners]
    this.#waiting = new Set()
    this.#listeners = new Set()
    try {
      await this.#sendAll([...tags])
    } catch (error) {
      this.#add(error instanceof Restarted ? [this.#options.everything] : tags)
      for (const listener of listeners) if (!listener.isOver) this.#listeners.add(listener)
      await this.#failed(error)
      return
    }
    this.#failures = 0
    this.#since = this.#waiting.size === 0 ? undefined : began
    if (tags.size > 0) report({ kind: 'purge-sent', service, receiver, outcome: 'confirmed' })
    // What failed before went with it.
    this.#setLagging(undefined)
    for (const listener of listeners) listener.confirmed()
  }

  /** Without tags it is a heartbeat. */
  async #sendAll(tags: readonly string[]): Promise<void> {
    const { maxTags } = this.#dialect
    for (let at = 0; at === 0 || at < tags.length; at += maxTags) {
      const batch = tags.slice(at, at + maxTags)
      this.#recognize(await this.#sender.send(this.#dialect.request(batch)), batch)
    }
  }

  #recognize(process: string | undefined, informed: readonly string[]): void {
    const isAnother = this.#process !== undefined && this.#process !== process
    this.#process = process
    if (isAnother && !informed.includes(this.#options.everything)) throw new Restarted()
  }

  async #failed(error: unknown): Promise<void> {
    const { service, receiver, report, random } = this.#options
    this.#setLagging(causeOf(error))
    // It is reachable: it is sent everything at once.
    if (error instanceof Restarted) return
    this.#failures += 1
    report({ kind: 'purge-sent', service, receiver, outcome: 'failed' })
    const backoffMs = Math.min(firstPauseMs * 2 ** (this.#failures - 1), this.#dialect.maxPauseMs)
    const minMs = error instanceof Unconfirmed ? error.retryAfterMs : 0
    const pauseMs = Math.max(backoffMs * (0.5 + random() / 2), minMs)
    await sleep(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
  }

  #add(tags: Iterable<string>): void {
    this.#since ??= this.#options.clock.monotonic()
    for (const tag of tags) this.#waiting.add(tag)
    const { everything } = this.#options
    if (this.#waiting.size > maxWaiting || this.#waiting.has(everything))
      this.#waiting = new Set([everything])
  }

  /** Reports that the instance lags, why as soon as that is known after a start, and that it has caught up. */
  #setLagging(reason: string | undefined): void {
    const { service, receiver, address, report, changed } = this.#options
    const before = this.#reason
    if (before === reason || (before !== undefined && before !== 'start' && reason !== undefined)) return
    this.#reason = reason
    report(
      reason === undefined
        ? { kind: 'receiver-caught-up', service, receiver, address }
        : { kind: 'receiver-behind', service, receiver, address, reason },
    )
    changed()
  }
}
