import { lookup } from 'node:dns/promises'
import { Deadline } from '../clock.ts'
import type { ReceiverConfig } from '../config/config.ts'
import type { DownstreamEvent, ReceiverStatus } from './events.ts'
import { causeOf } from './purge-sender.ts'
import type { ReceiverInstance } from './receiver-instance.ts'

/** The name of a front end is looked up as often: this bounds how long a new instance goes unseen. */
const lookupMs = 1_000
/** Instances of one receiver; with more the receiver lags, and those beyond the limit are sent nothing. */
const maxInstances = 64
/** Of a name before its first lookup. */
const notResolved = 'not-resolved'
/** The resolver hangs. Until a lookup succeeds, no write waits for one. */
const lookupLate = 'lookup-late'

type ReceiverOptions = {
  readonly config: ReceiverConfig
  readonly service: string
  readonly receiver: string
  /** All addresses of a host name. */
  readonly addressesOf: (hostname: string) => Promise<readonly string[]>
  /** `address`: of one instance; undefined for what answers at the URL. */
  create(address: string | undefined): ReceiverInstance
  /** An instance has joined, and is to be sent everything. */
  joined(instance: ReceiverInstance): void
  /** The receiver lags now, or no longer. */
  changed(): void
  readonly report: (event: DownstreamEvent) => void
}

export const addressesByDns = async (hostname: string): Promise<readonly string[]> => {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true })
  return [...new Set(found.map(({ address }) => address))]
}

/** DNS has replied that the name does not exist. Any other failure leaves open which instances have it. */
const isNoSuchName = (error: unknown): boolean => (error as { readonly code?: unknown }).code === 'ENOTFOUND'

/** What one configured receiver stands for: one URL, or each instance that its name resolves to. */
export class Receiver {
  readonly #options: ReceiverOptions
  #instances: readonly ReceiverInstance[]
  /** Why its instances are not known. */
  #unknown: string | undefined
  /** Of the last lookup that succeeded. */
  #addresses: readonly string[] = []
  /** It was reported that they are not known. */
  #isReported = false
  #timer: NodeJS.Timeout | undefined
  #lookup: Promise<void> | undefined
  #isClosed = false

  constructor(options: ReceiverOptions) {
    this.#options = options
    const isOne = options.config.instances === 'one'
    this.#instances = isOne ? [options.create(undefined)] : []
    this.#unknown = isOne ? undefined : notResolved
  }

  get onFailure(): ReceiverConfig['onFailure'] {
    return this.#options.config.onFailure
  }

  get instances(): readonly ReceiverInstance[] {
    return this.#instances
  }

  /** False: the name may have instances that are sent no purges. */
  get isKnown(): boolean {
    return this.#unknown === undefined
  }

  get isLagging(): boolean {
    return !this.isKnown || this.#instances.some((instance) => instance.isLagging)
  }

  start(): void {
    if (this.#options.config.instances === 'one') return
    void this.#discover()
    this.#timer = setInterval(() => void this.#discover(), lookupMs)
    this.#timer.unref()
  }

  /**
   * Resolves when the instances are known that the name has by now, or the lookup takes too long: an instance that joins between two
   * lookups may have stored what a purge drops.
   */
  async refresh(): Promise<void> {
    if (this.#options.config.instances === 'one' || this.#unknown === lookupLate) return
    // The one that is under way may have begun before the instance joined.
    await this.#lookup
    await this.#discover()
  }

  statuses(): readonly ReceiverStatus[] {
    const { service, receiver } = this.#options
    const all = this.#instances.map((instance) => instance.status())
    if (this.#unknown === undefined) return all
    return [
      ...all,
      {
        service,
        receiver,
        address: undefined,
        isLagging: true,
        reason: this.#unknown,
        lagSeconds: 0,
      },
    ]
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await Promise.all(this.#instances.map((instance) => instance.close()))
  }

  /** Resolves at the end of the lookup, or when it is late. No other begins before its end: each holds a thread of Node's pool. */
  #discover(): Promise<void> {
    this.#lookup ??= new Promise((resolve) => {
      const late = new Deadline(this.#options.config.timeoutMs, () => {
        this.#lose(lookupLate)
        resolve()
      })
      void this.#lookUp().then(() => {
        late.stop()
        this.#lookup = undefined
        resolve()
      })
    })
    return this.#lookup
  }

  async #lookUp(): Promise<void> {
    const { hostname } = new URL(this.#options.config.url)
    let addresses: readonly string[] = []
    try {
      addresses = await this.#options.addressesOf(hostname)
    } catch (error) {
      if (this.#isClosed) return
      if (isNoSuchName(error)) this.#keep()
      else if (this.#unknown !== lookupLate) this.#lose(causeOf(error))
      return
    }
    if (!this.#isClosed) this.#use(addresses)
  }

  /** A name that resolves to nothing for a while loses no instance: those that are known may still serve. */
  #keep(): void {
    if (this.#instances.length > 0) this.#use(this.#addresses)
    else this.#lose(notResolved)
  }

  /** The instances that are known stay; whether there are others is not known until a lookup succeeds. */
  #lose(reason: string): void {
    if (this.#isClosed || this.#unknown === reason) return
    this.#setUnknown(reason)
    this.#options.changed()
  }

  /** Reports that the instances have become unknown, and that they are known again. */
  #setUnknown(reason: string | undefined): void {
    const { service, receiver, report } = this.#options
    this.#unknown = reason
    // Of a name that has not been resolved yet nothing is missing.
    if (this.#isReported ? reason !== undefined : reason === undefined || reason === notResolved) return
    this.#isReported = reason !== undefined
    if (reason === undefined) report({ kind: 'receiver-caught-up', service, receiver, address: undefined })
    else report({ kind: 'receiver-behind', service, receiver, address: undefined, reason })
  }

  #use(addresses: readonly string[]): void {
    const before = this.#unknown
    this.#addresses = addresses
    this.#setUnknown(addresses.length > maxInstances ? 'too-many-instances' : undefined)
    const used = addresses.slice(0, maxInstances)
    const known = new Set(this.#instances.map(({ address }) => address))
    const joining = used
      .filter((address) => !known.has(address))
      .map((address) => this.#options.create(address))
    const leaving = this.#instances.filter(({ address }) => address !== undefined && !used.includes(address))
    if (joining.length === 0 && leaving.length === 0 && before === this.#unknown) return
    this.#instances = [...this.#instances.filter((instance) => !leaving.includes(instance)), ...joining]
    // Before the purge is sent: until it has confirmed, nothing may be stored.
    this.#options.changed()
    for (const instance of joining) this.#options.joined(instance)
    for (const instance of leaving) void instance.close()
  }
}
