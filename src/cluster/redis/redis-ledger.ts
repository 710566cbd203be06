import { randomBytes } from 'node:crypto'
import { Cluster, type Redis } from 'ioredis'
import { longestQuarantine, quarantineEverything } from '../../cache/invalidation.ts'
import type { LedgerPosition } from '../../cache/shared-tier.ts'
import { parsedJson } from '../../http/json-text.ts'
import {
  type Appended,
  type LeaseRefusal,
  type Ledger,
  type LedgerEntry,
  type LedgerPush,
  type LedgerStatus,
  maxLedgerEntries,
  type Synced,
} from '../ledger.ts'
import {
  connect,
  pauseMs,
  type RedisConnection,
  type RedisConnectionOptions,
  type RunScript,
  scriptOn,
  type Troubled,
} from './connections.ts'
import { connectorFor } from './connector.ts'
import { ledgerScripts } from './ledger-scripts.ts'
import { isTexts, type Signatures } from './values.ts'

export type SubscriberOptions = {
  readonly channels: readonly string[]
  /** Interval of the pings that detect a silent server. */
  readonly everyMs: number
  /** Publishes a message to one of the channels. */
  readonly speak: () => Promise<unknown>
  readonly troubled: Troubled
  readonly connector: ReturnType<typeof connectorFor>
}

/** Receives published messages from any available server, until it is closed. */
export type Subscriber = { close(): void }

/** Messages to itself that do not come back: a node that has left its cluster, or is cut off from it, still answers but forwards no messages. */
const maxUnanswered = 3

const addressOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`

/** Any node of a cluster serves, since all nodes get every message; prefer another node than the last. */
const serverOf = (calls: RedisConnection, last: string): Redis | undefined => {
  if (!(calls instanceof Cluster)) return calls
  const nodes = calls.nodes()
  const others = nodes.filter((node) => addressOf(node) !== last)
  const choice = others.length === 0 ? nodes : others
  return choice[Math.floor(Math.random() * choice.length)]
}

/**
 * Subscribes at a server that another connection has found. ioredis can do so for a cluster, but without our time limits and
 * with its own sockets (see connector.ts): it would wait for a silent node as long as the kernel does.
 */
export const listen = (
  calls: RedisConnection,
  { channels, connector, everyMs, speak, troubled }: SubscriberOptions,
  hear: (channel: string, message: string) => void,
): Subscriber => {
  let subscriber: Redis | undefined
  let last = ''
  let attempts = 0
  let unanswered = 0
  let retry: NodeJS.Timeout | undefined
  const again = (): void => {
    attempts += 1
    retry = setTimeout(begin, pauseMs(attempts))
  }
  const begin = (): void => {
    const server = serverOf(calls, last)
    if (server === undefined) {
      again()
      return
    }
    // The next server is chosen here, and no command waits for a connection.
    const connection = server.duplicate({
      Connector: connector,
      retryStrategy: null,
      enableOfflineQueue: false,
      lazyConnect: true,
    })
    subscriber = connection
    last = addressOf(connection)
    unanswered = 0
    connection.on('error', troubled)
    connection.on('message', (channel, message) => {
      unanswered = 0
      hear(channel, message)
    })
    connection.once('ready', () => {
      connection.subscribe(...channels).then(
        () => {
          attempts = 0
          unanswered = 0
        },
        (error: unknown) => {
          troubled(error)
          connection.disconnect()
        },
      )
    })
    connection.once('end', again)
    connection.connect().catch(() => undefined)
  }
  begin()
  const poll = setInterval(() => {
    if (unanswered >= maxUnanswered) subscriber?.disconnect()
    // A connection that only receives does not notice a silent server.
    subscriber?.ping().catch(() => undefined)
    speak().then(
      () => {
        unanswered += 1
      },
      () => undefined,
    )
  }, everyMs)
  return {
    close: () => {
      clearInterval(poll)
      clearTimeout(retry)
      subscriber?.off('end', again)
      subscriber?.disconnect()
    },
  }
}

/** A reply that no script sends. Taking it for a response would make a member trust its memory without a lease. */
const malformed = (what: string): Error => new Error(`MALFORMED ${what}`)

/** Scripts write numbers as texts: Lua keeps 64 bits of an integer only in a text. */
const numberIn = (value: unknown, what: string): number => {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw malformed(what)
  return number
}

/** An epoch or the name of a member; the empty text stands for none. */
const nameIn = (value: unknown, what: string): string => {
  if (typeof value !== 'string' || value === '') throw malformed(what)
  return value
}

const listIn = (value: unknown, length: number, what: string): readonly unknown[] => {
  if (!Array.isArray(value) || value.length !== length) throw malformed(what)
  return value
}

const rowsIn = (value: unknown, width: number, what: string): readonly (readonly string[])[] => {
  if (!isTexts(value) || value.length % width !== 0) throw malformed(what)
  return Array.from({ length: value.length / width }, (_, row) => value.slice(row * width, (row + 1) * width))
}

const statusesIn = (value: unknown): readonly LedgerStatus[] =>
  rowsIn(value, 3, 'members').map(([member, applied, beat]) => ({
    member: nameIn(member, 'member'),
    applied: numberIn(applied, 'position of a member'),
    beat: numberIn(beat, 'beat'),
  }))

const invalidationsIn = (value: unknown): readonly LedgerEntry[] =>
  rowsIn(value, 2, 'notes').map(([text = '', seq]) => ({ text, seq: numberIn(seq, 'number of a note') }))

const isLease = (value: unknown): value is 'granted' | LeaseRefusal =>
  value === 'granted' || value === 'unproven' || value === 'member-silent' || value === 'young-ledger'

/** `now`: the server's time; `quarantineMs`: for so long a quarantine may last that the ledger has forgotten. */
const readSynced = (reply: unknown): Synced & { readonly now: string; readonly quarantineMs: number } => {
  const [epoch, seq, floor, invalidations, members, lease, now, quarantineMs] = listIn(
    reply,
    8,
    'answer to sync',
  )
  if (!isLease(lease)) throw malformed('lease')
  const synced = {
    epoch: nameIn(epoch, 'epoch'),
    seq: numberIn(seq, 'number'),
    floor: numberIn(floor, 'floor'),
    invalidations: invalidationsIn(invalidations),
    members: statusesIn(members),
    lease,
    now: String(numberIn(now, 'time')),
    quarantineMs: numberIn(quarantineMs, 'time of a quarantine'),
  }
  if (
    synced.floor > synced.seq ||
    synced.invalidations.some((invalidation) => invalidation.seq > synced.seq)
  ) {
    throw malformed('number')
  }
  return synced
}

const readAppended = (reply: unknown): Appended => {
  const [epoch, seq, members] = listIn(reply, 3, 'answer to append')
  return { epoch: nameIn(epoch, 'epoch'), seq: numberIn(seq, 'number'), members: statusesIn(members) }
}

/** The reply of a script without a result. */
const readDone = (reply: unknown): void => {
  if (reply !== 1) throw malformed('answer')
}

const isNumber = (text: unknown): boolean => typeof text === 'string' && /^\d{1,15}$/.test(text)

/** A message of a channel; undefined unless the scripts could have sent it. Any client that may publish can send anything. */
const readPush = (channel: string, message: string): LedgerPush | undefined => {
  const content = parsedJson(message)
  if (!Array.isArray(content) || content.length !== 4 || !isTexts(content.slice(0, 3))) return undefined
  const [epoch, seq, name, last] = content as unknown as readonly [string, string, string, unknown]
  if (!isNumber(seq)) return undefined
  if (channel.endsWith('noted')) {
    return isTexts(last)
      ? { kind: 'noted', epoch, seq: Number(seq), writer: name, invalidations: last }
      : undefined
  }
  return isNumber(last)
    ? { kind: 'applied', epoch, seq: Number(seq), member: name, entries: Number(last) }
    : undefined
}

export type RedisLedgerOptions = RedisConnectionOptions & {
  /** Prefix of every key and channel: gateways with other content use another prefix. */
  readonly prefix: string
  readonly member: string
  readonly leaseMs: number
  readonly forgetAfterMs: number
  readonly changed: (state: 'up' | 'down') => void
  readonly signatures: { readonly invalidations: Signatures; readonly acknowledgements: Signatures }
}

/** The message that a member sends to itself to prove that it receives messages. */
const signOfLife = '[]'
/** The form that the scripts write; they sign nothing. */
const everything = 'a:'

/** The ledger that several instances share. */
class RedisLedger implements Ledger {
  readonly #options: RedisLedgerOptions
  readonly #calls: ReturnType<typeof connect>
  readonly #base: string
  readonly #keys: string[]
  readonly #scripts: Record<'sync' | 'begin' | 'append' | 'forget' | 'leave', RunScript>
  readonly #acknowledgements: Signatures
  readonly #ofInvalidations: Signatures
  /** The server's time in the last reply: proves that this member receives replies. */
  #proof = { epoch: '', time: '0' }
  readonly #invalidationsChannel: string
  readonly #channels: string[]
  #listener: Subscriber | undefined

  constructor(options: RedisLedgerOptions) {
    this.#options = options
    this.#calls = connect(this.#options, this.#options.changed)
    this.#base = `{${this.#options.prefix}}:`
    this.#keys = ['ledger', 'log', 'members', 'pending'].map((name) => this.#base + name)
    this.#scripts = Object.fromEntries(
      Object.entries(ledgerScripts).map(([name, text]) => [name, scriptOn(this.#calls, text)]),
    ) as Record<keyof typeof ledgerScripts, RunScript>
    const { acknowledgements, invalidations: ofInvalidations } = this.#options.signatures
    this.#acknowledgements = acknowledgements
    this.#ofInvalidations = ofInvalidations
    this.#invalidationsChannel = `${this.#base}noted`
    this.#channels = [
      this.#invalidationsChannel,
      `${this.#base}applied:${this.#options.member}`,
      `${this.#base}applied:all`,
    ]
  }

  async sync({ epoch, applied }: LedgerPosition): Promise<Synced> {
    const { quarantineMs, now, ...synced } = await this.#run(
      'sync',
      readSynced,
      epoch,
      applied,
      this.#proof.time,
      this.#options.leaseMs,
      this.#options.forgetAfterMs,
      maxLedgerEntries,
      this.#proof.epoch,
    )
    this.#proof = { epoch: synced.epoch, time: now }
    const invalidations = synced.invalidations.map(({ seq, text }) => ({ seq, text: this.#believed(text) }))
    if (quarantineMs > 0) invalidations.push({ seq: synced.seq, text: quarantineEverything(quarantineMs) })
    return { ...synced, invalidations }
  }

  async begin(write: string, invalidations: readonly string[]): Promise<void> {
    await this.#run(
      'begin',
      readDone,
      write,
      JSON.stringify([longestQuarantine(invalidations), ...this.#signed(invalidations)]),
    )
  }

  append(invalidations: readonly string[], settled: readonly string[]): Promise<Appended> {
    return this.#run(
      'append',
      readAppended,
      JSON.stringify(this.#signed(invalidations)),
      JSON.stringify(settled),
      maxLedgerEntries,
      longestQuarantine(invalidations),
    )
  }

  acknowledge({ epoch, applied }: LedgerPosition, entries: number, writer: string | undefined): void {
    // Not a script: the ledger gets the position with the next sync, and scripts cost more.
    const message = JSON.stringify([epoch, String(applied), this.#options.member, String(entries)])
    const text = this.#acknowledgements.signText(this.#options.prefix, message)
    this.#calls.publish(`${this.#base}applied:${writer ?? 'all'}`, text).catch(() => undefined)
  }

  async forget(ended: string): Promise<void> {
    await this.#run('forget', readDone, ended, maxLedgerEntries)
  }

  listen(take: (push: LedgerPush) => void): void {
    this.#listener = listen(
      this.#calls,
      {
        channels: this.#channels,
        everyMs: this.#options.leaseMs,
        // The message to itself, not a push.
        speak: () => this.#calls.publish(`${this.#base}applied:${this.#options.member}`, signOfLife),
        troubled: this.#options.troubled,
        connector: connectorFor('listens', this.#options),
      },
      (...pushed) => {
        const push = this.#pushOf(...pushed)
        if (push !== undefined) take(push)
      },
    )
  }

  async leave(cleanly: boolean): Promise<void> {
    try {
      if (cleanly) await this.#run('leave', readDone, maxLedgerEntries)
    } catch {
      // The other members find out when the lease runs out.
    }
    this.#calls.disconnect()
    this.#listener?.close()
  }

  async #run<Reply>(
    name: keyof typeof ledgerScripts,
    read: (reply: unknown) => Reply,
    ...argv: (string | number)[]
  ): Promise<Reply> {
    try {
      return read(
        await this.#scripts[name](this.#keys, [
          randomBytes(9).toString('base64url'),
          this.#base,
          this.#options.member,
          ...argv,
        ]),
      )
    } catch (error) {
      this.#options.troubled(error)
      throw error
    }
  }

  #signed(invalidations: readonly string[]): readonly string[] {
    return invalidations.map((text) => this.#ofInvalidations.signText(this.#options.prefix, text))
  }

  /** An invalidation without a valid signature may stand for any invalidation, so it means everything. Invalidations of the scripts mean everything as well. */
  readonly #believed = (text: string): string => {
    const verified =
      text === everything ? text : this.#ofInvalidations.verifiedText(this.#options.prefix, text)
    if (verified === undefined) this.#options.troubled(new Error('UNSIGNED invalidation'))
    return verified ?? everything
  }

  /** Where invalidations are signed, a message is only a hint: its number is not signed, and it may be a replay. */
  #pushOf(channel: string, message: string): LedgerPush | undefined {
    if (message === signOfLife) return undefined
    if (channel === this.#invalidationsChannel) {
      const push = readPush(channel, message)
      if (push?.kind !== 'noted') return undefined
      const { epoch, invalidations, seq, writer } = push
      return this.#ofInvalidations.isSigning
        ? { kind: 'hint', epoch, seq, writer }
        : { ...push, invalidations: invalidations.map(this.#believed) }
    }
    const verified = this.#acknowledgements.verifiedText(this.#options.prefix, message)
    if (verified === undefined) this.#options.troubled(new Error('UNSIGNED acknowledgement'))
    return verified === undefined ? undefined : readPush(channel, verified)
  }
}

export const createRedisLedger = (options: RedisLedgerOptions): Ledger => new RedisLedger(options)
