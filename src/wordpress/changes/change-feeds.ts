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
import { type FeedMessage, type FeedPorts, ServiceFeed } from './service-feed.ts'

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

class ServiceFeeds implements ChangeFeeds {
  readonly #options: ChangeFeedsOptions
  readonly #running = new Map<string, Running>()
  readonly #buckets: ReturnType<typeof createBuckets>
  /** By token; bounded by the tokens of configurations with requests in flight. */
  readonly #sendersByToken = new Map<string, readonly ChangesSender[]>()

  constructor(options: ChangeFeedsOptions) {
    this.#options = options
    this.#buckets = createBuckets(this.#options.clock)
  }

  readonly admit = (credential: ChangesCredential, sender: ChangesSender): ChangesAdmission => {
    const token = this.#tokenNamed(credential)
    if (typeof token !== 'string') return token
    const holding = this.#sendersByToken.get(token) ?? []
    if (holding.length >= maxBuffered) {
      const refusal = this.#refuse(this.#withToken(token), 'too-many')
      const replaced = replaceable(holding)
      if (replaced === undefined) return refusal
      this.#release(token, replaced)
      replaced.refuse(refusal)
    }
    this.#sendersByToken.set(token, [...(this.#sendersByToken.get(token) ?? []), sender])
    return { kind: 'admitted', release: () => this.#release(token, sender) }
  }

  readonly use = (services: readonly FeedService[]): void => {
    for (const [name, { service, feed }] of this.#running) {
      if (services.some((newService) => newService.name === name && newService.identity === service.identity))
        continue
      feed.stop()
      this.#running.delete(name)
    }
    this.#buckets.clear()
    for (const service of services) {
      const previous = this.#running.get(service.name)
      this.#running.set(service.name, previous ?? this.#begin(service))
    }
  }

  readonly lease = (name: string): ReportedLease => {
    return {
      isCurrent: (at) => this.#running.get(name)?.feed.lease.isCurrent(at) === true,
      endedMs: (at) => this.#running.get(name)?.feed.lease.endedMs(at) ?? Number.POSITIVE_INFINITY,
      hasApplied: (row) => this.#running.get(name)?.feed.hasApplied(row) === true,
    }
  }

  readonly receive = async (request: ChangesRequest): Promise<ChangesResponse> => {
    const { signature, authorization } = request
    if (signature !== undefined) return this.#receivePush(signature, request)
    return authorization === undefined
      ? this.#refuse([], 'no-credential')
      : this.#receivePlain(authorization, request)
  }

  readonly receiveMessage = (message: FeedMessage): void => {
    this.#running.get(message.service)?.feed.receiveMessage(message)
  }

  readonly statuses = (): readonly FeedStatus[] => {
    return [...this.#running.values()]
      .filter(({ service }) => service.pollMs > 0)
      .map(({ service, feed }) => ({ service: service.name, ...feed.reading() }))
  }

  readonly close = (): void => {
    for (const { feed } of this.#running.values()) feed.stop()
    this.#running.clear()
  }

  #begin(service: FeedService): Running {
    const { name, pollMs, ports } = service
    const feed = new ServiceFeed({
      service: name,
      pollMs,
      ports,
      clock: this.#options.clock,
      random: this.#options.random,
      report: this.#options.report,
    })
    feed.start(this.#options.startsLate())
    return { service, feed }
  }

  #refuse(services: readonly Running[], reason: ChangeRefusal, detail = refusals[reason]): RefusedChanges {
    const names = services.length === 0 ? ['none'] : services.map(({ service }) => service.name)
    for (const service of names) this.#options.report({ kind: 'changes-refused', service, reason })
    return { kind: 'refused', reason, detail }
  }

  #tokens(): readonly string[] {
    return [...new Set([...this.#running.values()].map(({ service }) => service.token))]
  }

  #withToken(token: string): readonly Running[] {
    return [...this.#running.values()].filter(({ service }) => service.token === token)
  }

  /** Gives the number of entries that were dropped. */
  async #applyRead({ service, feed }: Running, signature: string, push: Push) {
    const { changes, fingerprint, request } = push
    const entries = feed.isOtherFingerprint(fingerprint)
      ? await service.ports.apply(everything('fingerprint'))
      : await service.ports.apply(changes, request)
    if (entries === 'unacknowledged') return entries
    feed.applied(signature, push)
    const facts = { service: service.name, source: 'push', changes: changes.length, entries } as const
    this.#options.report({ kind: 'changes-applied', ...facts })
    return entries
  }

  /** A push that is signed but cannot be read reports an unknown change. */
  async #dropUnreadable({ service, feed }: Running, signature: string, body: Buffer) {
    this.#options.report({ kind: 'service-dropped', service: service.name, reason: 'unreadable' })
    const entries = await service.ports.apply(everything('unreadable'))
    if (entries !== 'unacknowledged') feed.droppedAll(signature, isWithoutRow(body))
    return entries
  }

  /** The companion sends its token, not the services that have it: all of them are in front of it. Copies drop nothing. */
  async #applyPush(
    services: readonly Running[],
    signature: string,
    body: Buffer,
    push: Push | UnreadableChange,
  ): Promise<ChangesResponse> {
    const counts = services.map((target) => {
      if (target.feed.wasApplied(signature)) return 0
      return push instanceof UnreadableChange
        ? this.#dropUnreadable(target, signature, body)
        : this.#applyRead(target, signature, push)
    })
    const entries = together(await Promise.all(counts))
    if (entries === 'unacknowledged') return this.#refuse(services, 'not-spread')
    return push instanceof UnreadableChange
      ? this.#refuse(services, 'unreadable', push.message)
      : { kind: 'dropped', sequence: push.sequence, entries }
  }

  async #receivePush(signature: string, request: ChangesRequest): Promise<ChangesResponse> {
    const { target, body } = request
    const verdict = verifiedToken(
      signature,
      { method: 'POST', target, body },
      this.#tokens(),
      this.#options.clock.now(),
    )
    if (verdict.kind === 'refused') return this.#refuse([], verdict.reason)
    const services = this.#withToken(verdict.token)
    const push = readablePush(body)
    // Copies of a push, which anyone on the way can send, take nothing from the rate.
    const isNew = services.some(({ feed }) => !feed.wasApplied(signature))
    if (isNew && !this.#buckets.take(verdict.token)) return this.#refuse(services, 'too-many')
    return this.#applyPush(services, signature, body, push)
  }

  async #applyPlain(services: readonly Running[], body: Buffer): Promise<ChangesResponse> {
    const change = readPlainChange(body)
    const [target, ...otherTargets] =
      change.service === undefined
        ? services
        : services.filter(({ service }) => service.name === change.service)
    if (target === undefined)
      return this.#refuse(services, 'unreadable', 'service: the token belongs to another service')
    if (otherTargets.length > 0)
      return this.#refuse(services, 'unreadable', 'service: several services have this token')
    const entries = await target.service.applyPlain(change)
    if (entries === 'unacknowledged') return this.#refuse([target], 'not-spread')
    if (typeof entries === 'object') return this.#refuse([target], 'unreadable', entries.refused)
    const changes = change.tags.length + change.urls.length + change.prefixes.length + (change.all ? 1 : 0)
    this.#options.report({
      kind: 'changes-applied',
      service: target.service.name,
      source: 'plain',
      changes,
      entries,
    })
    return { kind: 'dropped', sequence: change.sequence, entries }
  }

  async #receivePlain(authorization: string, { body }: ChangesRequest): Promise<ChangesResponse> {
    const token = tokenOfBearer(authorization, this.#tokens())
    if (token === undefined) return this.#refuse([], 'unknown-key')
    const services = this.#withToken(token)
    if (!this.#buckets.take(token)) return this.#refuse(services, 'too-many')
    try {
      return await this.#applyPlain(services, body)
    } catch (error) {
      if (error instanceof UnreadableChange) return this.#refuse(services, 'unreadable', error.message)
      throw error
    }
  }

  #tokenNamed({ signature, authorization }: ChangesCredential): string | RefusedChanges {
    if (signature !== undefined) {
      const reading = namedToken(signature, this.#tokens(), this.#options.clock.now())
      return reading.kind === 'named' ? reading.token : this.#refuse([], reading.reason)
    }
    if (authorization === undefined) return this.#refuse([], 'no-credential')
    return tokenOfBearer(authorization, this.#tokens()) ?? this.#refuse([], 'unknown-key')
  }

  #release(token: string, sender: ChangesSender): void {
    const remaining = (this.#sendersByToken.get(token) ?? []).filter((candidate) => candidate !== sender)
    if (remaining.length === 0) this.#sendersByToken.delete(token)
    else this.#sendersByToken.set(token, remaining)
  }
}

export const createChangeFeeds = (options: ChangeFeedsOptions): ChangeFeeds => new ServiceFeeds(options)

/** The fields of a poll, signed with the token. */
export const pollHeaders = (token: string, target: string, clock: Clock): readonly string[] => [
  ...ownJsonHeaders,
  'trellis-signature',
  signatureOf(token, { method: 'GET', target, body: '' }, readClock(clock).now),
]

/** The path of WordPress in front of its interface. */
export const sitePath = (basePath: string): string => (rootOf(basePath) ?? basePath).replace(/\/$/, '')
