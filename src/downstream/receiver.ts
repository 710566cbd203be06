import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildConnector, Client } from 'undici'
import type { Clock } from '../clock.ts'
import type { ReceiverConfig } from '../config/config.ts'
import { guardConnection } from '../upstream/guard-connection.ts'
import type { DownstreamEvent, ReceiverStanding } from './events.ts'
import { type CachePurge, createDialect } from './purge-requests.ts'

/** Purges that come within it go with one request. */
const joinMs = 5
/** Of tags that wait; more become the one for everything. */
const mostWaiting = 2_000
const firstPauseMs = 250
const longestPauseMs = 30_000
const mostAnswerBytes = 65_536

/** Why a request was not confirmed: for the log, from a closed set. */
class Unconfirmed extends Error {
  readonly retryAfterMs: number

  constructor(reason: string, retryAfterMs = 0) {
    super(reason)
    this.retryAfterMs = retryAfterMs
  }
}

/** Milliseconds of a Retry-After in seconds; a date is not read. */
const retryAfterMs = (value: unknown): number =>
  typeof value === 'string' && /^\d{1,4}$/.test(value) ? Math.min(Number(value) * 1000, longestPauseMs) : 0

const causeOf = (error: unknown): string => {
  if (error instanceof Unconfirmed) return error.message
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }
  return typeof code === 'string' ? code : String(name)
}

/** Sends one request and reads its answer; rejects when it is not confirmed. */
const createSender = (config: ReceiverConfig, confirms: (content: string) => boolean) => {
  const { url, timeoutMs, ca } = config
  const connect = buildConnector({ timeout: timeoutMs, ...(ca.isSet ? { ca: ca.reveal() } : {}) })
  const client = new Client(new URL(url).origin, {
    pipelining: 1,
    connect: (target, callback) => {
      const socket = connect(target, callback) as unknown as Socket
      // A fault ends the request, which is sent again.
      guardConnection(socket, () => {})
      return socket
    },
  })
  return {
    send: async ({ method, path, headers, body }: CachePurge): Promise<void> => {
      const {
        statusCode,
        headers: fields,
        body: answer,
      } = await client.request({
        // Any token is a method (RFC 9110 §9.1); the types name those of WHATWG.
        method: method as 'POST',
        path,
        headers,
        body: body ?? null,
        signal: AbortSignal.timeout(timeoutMs),
      })
      let content = ''
      for await (const chunk of answer) {
        content += String(chunk)
        if (content.length > mostAnswerBytes) throw new Unconfirmed('answer-too-long')
      }
      if (statusCode < 200 || statusCode > 299)
        throw new Unconfirmed(`status-${statusCode}`, retryAfterMs(fields['retry-after']))
      if (!confirms(content)) throw new Unconfirmed('not-confirmed')
    },
    close: (): Promise<void> => client.destroy(),
  }
}

type ReceiverOptions = {
  readonly config: ReceiverConfig
  readonly service: string
  readonly name: string
  /** The tag of everything of the service. */
  readonly everything: string
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: DownstreamEvent) => void
  /** It is behind now, or no longer. */
  readonly changed: () => void
}

/** Waits for what was enqueued before it. */
type Listener = { isOver: boolean; confirmed(): void }

/** How a purge ended for the one who waited: `behind` and `late`: it will be sent again until it is confirmed. */
export type PurgeEnd = 'confirmed' | 'late' | 'behind'

/** Sends purges to one receiver, one request at a time, until each is confirmed. */
export const createReceiver = (options: ReceiverOptions) => {
  const { config, service, name: receiver, everything, clock, report } = options
  const dialect = createDialect(config, everything, clock.now)
  const sender = createSender(config, dialect.confirms)
  const closing = new AbortController()
  let waiting = new Set<string>()
  /** Called when everything that waits is confirmed. */
  let listeners = new Set<Listener>()
  /** Since when something is unconfirmed. */
  let since: number | undefined
  let running: Promise<void> | undefined
  let failures = 0
  let isBehind = false

  const setBehind = (reason: string | undefined): void => {
    if (isBehind === (reason !== undefined)) return
    isBehind = reason !== undefined
    report(
      reason === undefined
        ? { kind: 'receiver-caught-up', service, receiver }
        : { kind: 'receiver-behind', service, receiver, reason },
    )
    options.changed()
  }

  const add = (tags: Iterable<string>): void => {
    since ??= clock.monotonic()
    for (const tag of tags) waiting.add(tag)
    if (waiting.size > mostWaiting || waiting.has(everything)) waiting = new Set([everything])
  }

  const sendAll = async (tags: readonly string[]): Promise<void> => {
    for (let at = 0; at < tags.length; at += dialect.mostTags)
      await sender.send(dialect.request(tags.slice(at, at + dialect.mostTags)))
  }

  const failed = async (error: unknown): Promise<void> => {
    failures += 1
    report({ kind: 'purge-sent', service, receiver, outcome: 'failed' })
    setBehind(causeOf(error))
    const backoffMs = Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs)
    const pauseMs = backoffMs * (0.5 + options.random() / 2)
    const leastMs = error instanceof Unconfirmed ? error.retryAfterMs : 0
    await sleep(Math.max(pauseMs, leastMs), undefined, { signal: closing.signal }).catch(() => undefined)
  }

  const sendOnce = async (): Promise<void> => {
    const began = clock.monotonic()
    const [tags, heard] = [waiting, listeners]
    waiting = new Set()
    listeners = new Set()
    try {
      await sendAll([...tags])
    } catch (error) {
      add(tags)
      for (const listener of heard) if (!listener.isOver) listeners.add(listener)
      await failed(error)
      return
    }
    failures = 0
    since = waiting.size === 0 ? undefined : began
    report({ kind: 'purge-sent', service, receiver, outcome: 'confirmed' })
    // What failed before went with it.
    setBehind(undefined)
    for (const listener of heard) listener.confirmed()
  }

  const run = async (): Promise<void> => {
    await sleep(joinMs)
    while (waiting.size > 0 && !closing.signal.aborted) await sendOnce()
    running = undefined
  }

  const enqueue = (tags: Iterable<string>): void => {
    add(tags)
    running ??= run()
  }

  return {
    onFailure: config.onFailure,
    get isBehind(): boolean {
      return isBehind
    },
    enqueue,
    /** Until the first purge of everything is confirmed it counts as behind: an earlier process may have left some unsent. */
    hold: (): void => setBehind('start'),
    /** Sends the tags; answers when they are confirmed, or nobody waits any longer. */
    purge: async (tags: ReadonlySet<string>): Promise<PurgeEnd> => {
      const began = clock.monotonic()
      const isLeft = isBehind && config.onFailure === 'lag'
      let outcome: PurgeEnd = 'behind'
      if (!isLeft) {
        outcome = await new Promise<PurgeEnd>((resolve) => {
          const timer = setTimeout(() => {
            listener.isOver = true
            resolve('late')
          }, config.timeoutMs)
          const listener: Listener = {
            isOver: false,
            confirmed: () => {
              clearTimeout(timer)
              resolve('confirmed')
            },
          }
          listeners.add(listener)
          enqueue(tags)
        })
        if (outcome === 'late') setBehind('late')
      } else enqueue(tags)
      const waitedSeconds = (clock.monotonic() - began) / 1000
      report({ kind: 'purge-awaited', service, receiver, outcome, waitedSeconds })
      return outcome
    },
    standing: (): ReceiverStanding => ({
      service,
      receiver,
      behind: isBehind,
      lagSeconds: since === undefined ? 0 : (clock.monotonic() - since) / 1000,
    }),
    /** Lets what waits be sent first, unless the receiver is behind. */
    close: async (): Promise<void> => {
      if (isBehind) closing.abort()
      await running
      closing.abort()
      await sender.close()
    },
  }
}
