import type { FeedLease } from '../../cache/decide-caching.ts'
import { type Clock, readClock } from '../../clock.ts'
import { addCount } from '../../http/bounds/counts.ts'
import { ownJsonHeaders } from '../../http/headers/header-lines.ts'
import { rootOf } from '../routes/harmless-writes.ts'
import type { ChangeEvent, ChangeRefusal, LagCause } from './feed-state.ts'
import {
  everything,
  isWithoutRow,
  namedToken,
  type PlainChange,
  type Push,
  readPlainChange,
  readPush,
  signatureOf,
  tokenOfBearer,
  UnreadableChange,
  verifiedToken,
} from './read-changes.ts'
import { createServiceFeed, type FeedMessage, type FeedPorts, type ServiceFeed } from './service-feed.ts'

/** A service that reports its changes. */
export type FeedService = {
  readonly name: string
  readonly token: string
  /** 0: its log is not read. */
  readonly pollMs: number
  /** Differs when the feed has to begin anew: another upstream or another token. */
  readonly identity: string
  readonly ports: FeedPorts
  /** Drops the responses that a plain change names; `refused`: it names something outside the service. */
  applyPlain(change: PlainChange): Promise<number | 'unacknowledged' | { readonly refused: string }>
}

/** The fields of a request that reports changes. */
export type ChangesCredential = {
  readonly signature: string | undefined
  readonly authorization: string | undefined
}

/** A request that reports changes; `target` as sent. */
export type ChangesRequest = ChangesCredential & {
  readonly target: string
  readonly body: Buffer
}

type RefusedChanges = Extract<ChangesResponse, { readonly kind: 'refused' }>

/** A request whose body may be held. */
type ChangesSender = {
  readonly address: string
  /** Has the whole body arrived? */
  hasArrived(): boolean
  /** It is refused in favour of a newer request. */
  refuse(refusal: RefusedChanges): void
}

/** `release`: the request is over. */
export type ChangesAdmission = { readonly kind: 'admitted'; release(): void } | RefusedChanges

/** Its result, once the entries are dropped in every process. */
export type ChangesResponse =
  | { readonly kind: 'dropped'; readonly sequence: number | undefined; readonly entries: number }
  | { readonly kind: 'refused'; readonly reason: ChangeRefusal; readonly detail: string }

/** State of one feed, for metrics, readiness and explanations. */
export type FeedStatus = ReturnType<ServiceFeed['reading']> & { readonly service: string }

/** What a person can do about a feed that stays behind, where that is more than to wait. */
export const feedAdvice: Readonly<Record<LagCause, string | undefined>> = {
  'request-still-writes':
    'A PHP request of WordPress has been writing for over two polls: until it ends nothing is stored, and stored responses are used for their ttl only. Look for a process that hangs (the slow log of PHP-FPM, wp trellis status), and limit it with request_terminate_timeout.',
  'rows-missing':
    "Rows of the companion's log are missing: a transaction is still open, or the database skips numbers (auto_increment_increment above 1), which is not supported.",
  'more-to-read': undefined,
}

/** `hasApplied`: has this process recorded that all processes have applied the changes of this row (incarnation and sequence)? */
export type ReportedLease = FeedLease & { hasApplied(row: string): boolean }

export type ChangeFeeds = {
  /** Puts the services of a configuration in force. */
  use(services: readonly FeedService[]): void
  /** Whether every change of a service is known; the same object for all configurations. */
  lease(service: string): ReportedLease
  /** Decides by its fields whether the body of a request is read. */
  admit(credential: ChangesCredential, sender: ChangesSender): ChangesAdmission
  receive(request: ChangesRequest): Promise<ChangesResponse>
  receiveMessage(message: FeedMessage): void
  /** Of the services whose log is read. */
  statuses(): readonly FeedStatus[]
  close(): void
}

type ChangeFeedsOptions = {
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: ChangeEvent) => void
  /** Has this process replaced another one, so that the others have seen more changes? */
  readonly startsLate: () => boolean
}

/** Requests a second and at once for each token; refused ones are logged. */
const perSecond = 100
const atOnce = 300

/** Requests of a token whose bodies are held at one time. */
const maxBuffered = 64

/**
 * The oldest request of the address with most of those whose body is still arriving: a signature can be checked only with the
 * whole body, and its fields can be copied from any report on the way.
 */
const replaceable = (senders: readonly ChangesSender[]): ChangesSender | undefined => {
  const arriving = senders.filter((sender) => !sender.hasArrived())
  const counts = new Map<string, number>()
  for (const { address } of arriving) addCount(counts, address, 1)
  const max = Math.max(...counts.values())
  return arriving.find(({ address }) => counts.get(address) === max)
}

const createBuckets = (clock: Clock) => {
  const buckets = new Map<string, { available: number; at: number }>()
  return {
    /** Bounded by the tokens of the configuration. */
    take: (token: string): boolean => {
      const now = clock.monotonic()
      const bucket = buckets.get(token) ?? { available: atOnce, at: now }
      bucket.available = Math.min(atOnce, bucket.available + ((now - bucket.at) / 1000) * perSecond)
      bucket.at = now
      buckets.set(token, bucket)
      if (bucket.available < 1) return false
      bucket.available -= 1
      return true
    },
    clear: () => buckets.clear(),
  }
}

const refusals: Readonly<Record<ChangeRefusal, string>> = {
  'no-credential': 'Send Trellis-Signature, or Authorization: Bearer with changes.token of the service.',
  malformed: 'Trellis-Signature is not of the form key=…, time=…, hmac=….',
  'unknown-key': 'No service has this token.',
  expired: 'The time of the signature differs by more than 300 s from that of the gateway.',
  'wrong-hmac': 'The signature does not belong to this request.',
  'too-many': 'Too many requests for this token.',
  unreadable: '',
  'not-spread': 'Dropped in this instance only: the other instances cannot be reached.',
}

const readablePush = (body: Buffer): Push | UnreadableChange => {
  try {
    return readPush(body)
  } catch (error) {
    if (error instanceof UnreadableChange) return error
    throw error
  }
}

type Running = { readonly service: FeedService; readonly feed: ServiceFeed }

const together = (counts: readonly (number | 'unacknowledged')[]): number | 'unacknowledged' =>
  counts.reduce<number | 'unacknowledged'>(
    (sum, count) => (sum === 'unacknowledged' || count === 'unacknowledged' ? 'unacknowledged' : sum + count),
    0,
  )

export const createChangeFeeds = (options: ChangeFeedsOptions): ChangeFeeds => {
  const { clock, random, report } = options
  const running = new Map<string, Running>()
  const buckets = createBuckets(clock)
  /** By token; bounded by the tokens of configurations with requests in flight. */
  const sendersByToken = new Map<string, readonly ChangesSender[]>()

  const begin = (service: FeedService): Running => {
    const { name, pollMs, ports } = service
    const feed = createServiceFeed({ service: name, pollMs, ports, clock, random, report })
    feed.start(options.startsLate())
    return { service, feed }
  }

  const refuse = (
    services: readonly Running[],
    reason: ChangeRefusal,
    detail = refusals[reason],
  ): RefusedChanges => {
    const names = services.length === 0 ? ['none'] : services.map(({ service }) => service.name)
    for (const service of names) report({ kind: 'changes-refused', service, reason })
    return { kind: 'refused', reason, detail }
  }

  const tokens = (): readonly string[] => [
    ...new Set([...running.values()].map(({ service }) => service.token)),
  ]

  const withToken = (token: string): readonly Running[] =>
    [...running.values()].filter(({ service }) => service.token === token)

  /** Gives the number of entries that were dropped. */
  const applyRead = async ({ service, feed }: Running, signature: string, push: Push) => {
    const { changes, fingerprint, request } = push
    const entries = feed.isOtherFingerprint(fingerprint)
      ? await service.ports.apply(everything('fingerprint'))
      : await service.ports.apply(changes, request)
    if (entries === 'unacknowledged') return entries
    feed.applied(signature, push)
    const facts = { service: service.name, source: 'push', changes: changes.length, entries } as const
    report({ kind: 'changes-applied', ...facts })
    return entries
  }

  /** A push that is signed but cannot be read reports an unknown change. */
  const dropUnreadable = async ({ service, feed }: Running, signature: string, body: Buffer) => {
    report({ kind: 'service-dropped', service: service.name, reason: 'unreadable' })
    const entries = await service.ports.apply(everything('unreadable'))
    if (entries !== 'unacknowledged') feed.droppedAll(signature, isWithoutRow(body))
    return entries
  }

  /** The companion sends its token, not the services that have it: all of them are in front of it. Copies drop nothing. */
  const applyPush = async (
    services: readonly Running[],
    signature: string,
    body: Buffer,
    push: Push | UnreadableChange,
  ): Promise<ChangesResponse> => {
    const counts = services.map((target) => {
      if (target.feed.wasApplied(signature)) return 0
      return push instanceof UnreadableChange
        ? dropUnreadable(target, signature, body)
        : applyRead(target, signature, push)
    })
    const entries = together(await Promise.all(counts))
    if (entries === 'unacknowledged') return refuse(services, 'not-spread')
    return push instanceof UnreadableChange
      ? refuse(services, 'unreadable', push.message)
      : { kind: 'dropped', sequence: push.sequence, entries }
  }

  const receivePush = async (signature: string, request: ChangesRequest): Promise<ChangesResponse> => {
    const { target, body } = request
    const verdict = verifiedToken(signature, { method: 'POST', target, body }, tokens(), clock.now())
    if (verdict.kind === 'refused') return refuse([], verdict.reason)
    const services = withToken(verdict.token)
    const push = readablePush(body)
    // Copies of a push, which anyone on the way can send, take nothing from the rate.
    const isNew = services.some(({ feed }) => !feed.wasApplied(signature))
    if (isNew && !buckets.take(verdict.token)) return refuse(services, 'too-many')
    return applyPush(services, signature, body, push)
  }

  const applyPlain = async (services: readonly Running[], body: Buffer): Promise<ChangesResponse> => {
    const change = readPlainChange(body)
    const [target, ...otherTargets] =
      change.service === undefined
        ? services
        : services.filter(({ service }) => service.name === change.service)
    if (target === undefined)
      return refuse(services, 'unreadable', 'service: the token belongs to another service')
    if (otherTargets.length > 0)
      return refuse(services, 'unreadable', 'service: several services have this token')
    const entries = await target.service.applyPlain(change)
    if (entries === 'unacknowledged') return refuse([target], 'not-spread')
    if (typeof entries === 'object') return refuse([target], 'unreadable', entries.refused)
    const changes = change.tags.length + change.urls.length + change.prefixes.length + (change.all ? 1 : 0)
    report({ kind: 'changes-applied', service: target.service.name, source: 'plain', changes, entries })
    return { kind: 'dropped', sequence: change.sequence, entries }
  }

  const receivePlain = async (authorization: string, { body }: ChangesRequest): Promise<ChangesResponse> => {
    const token = tokenOfBearer(authorization, tokens())
    if (token === undefined) return refuse([], 'unknown-key')
    const services = withToken(token)
    if (!buckets.take(token)) return refuse(services, 'too-many')
    try {
      return await applyPlain(services, body)
    } catch (error) {
      if (error instanceof UnreadableChange) return refuse(services, 'unreadable', error.message)
      throw error
    }
  }

  const tokenNamed = ({ signature, authorization }: ChangesCredential): string | RefusedChanges => {
    if (signature !== undefined) {
      const reading = namedToken(signature, tokens(), clock.now())
      return reading.kind === 'named' ? reading.token : refuse([], reading.reason)
    }
    if (authorization === undefined) return refuse([], 'no-credential')
    return tokenOfBearer(authorization, tokens()) ?? refuse([], 'unknown-key')
  }

  const release = (token: string, sender: ChangesSender): void => {
    const remaining = (sendersByToken.get(token) ?? []).filter((candidate) => candidate !== sender)
    if (remaining.length === 0) sendersByToken.delete(token)
    else sendersByToken.set(token, remaining)
  }

  return {
    admit: (credential, sender) => {
      const token = tokenNamed(credential)
      if (typeof token !== 'string') return token
      const holding = sendersByToken.get(token) ?? []
      if (holding.length >= maxBuffered) {
        const refusal = refuse(withToken(token), 'too-many')
        const replaced = replaceable(holding)
        if (replaced === undefined) return refusal
        release(token, replaced)
        replaced.refuse(refusal)
      }
      sendersByToken.set(token, [...(sendersByToken.get(token) ?? []), sender])
      return { kind: 'admitted', release: () => release(token, sender) }
    },
    use: (services) => {
      for (const [name, { service, feed }] of running) {
        if (
          services.some((newService) => newService.name === name && newService.identity === service.identity)
        )
          continue
        feed.stop()
        running.delete(name)
      }
      buckets.clear()
      for (const service of services) {
        const previous = running.get(service.name)
        running.set(service.name, previous ?? begin(service))
      }
    },
    lease: (name) => ({
      isCurrent: (at) => running.get(name)?.feed.lease.isCurrent(at) === true,
      endedMs: (at) => running.get(name)?.feed.lease.endedMs(at) ?? Number.POSITIVE_INFINITY,
      hasApplied: (row) => running.get(name)?.feed.hasApplied(row) === true,
    }),
    receive: async (request) => {
      const { signature, authorization } = request
      if (signature !== undefined) return receivePush(signature, request)
      return authorization === undefined ? refuse([], 'no-credential') : receivePlain(authorization, request)
    },
    receiveMessage: (message) => running.get(message.service)?.feed.receiveMessage(message),
    statuses: () =>
      [...running.values()]
        .filter(({ service }) => service.pollMs > 0)
        .map(({ service, feed }) => ({ service: service.name, ...feed.reading() })),
    close: () => {
      for (const { feed } of running.values()) feed.stop()
      running.clear()
    },
  }
}

/** The fields of a poll, signed with the token. */
export const pollHeaders = (token: string, target: string, clock: Clock): readonly string[] => [
  ...ownJsonHeaders,
  'trellis-signature',
  signatureOf(token, { method: 'GET', target, body: '' }, readClock(clock).now),
]

/** The path of WordPress in front of its interface. */
export const sitePath = (basePath: string): string => (rootOf(basePath) ?? basePath).replace(/\/$/, '')
