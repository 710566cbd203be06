import { createHash } from 'node:crypto'
import type { FeedLease } from '../../cache/decide-caching.ts'
import { type Clock, type Moment, readClock } from '../../clock.ts'
import type { Change } from '../../service/contract.ts'
import {
  askFrom,
  type ChangeEvent,
  coldFeed,
  type Feed,
  type FeedState,
  type FeedStep,
  type LagCause,
  lagCause,
  lost,
  newerRow,
  type PollFailure,
  readLog,
  safePosition,
} from './feed-state.ts'
import type { ChangeLog, Push, RowName } from './read-changes.ts'

/** The position that instances share; entries up to it are dropped in all of them. */
export type SharedPosition = Pick<Feed, 'incarnation' | 'position' | 'newest' | 'fingerprint'>

/** Where a feed is read from, and what its changes are applied to. */
export type FeedPorts = {
  /** Reads the log after that row, if it still has the row `newest`, else one of another incarnation; rejects with a PollError. */
  ask(after: number, incarnation: string, newest: RowName | undefined): Promise<ChangeLog>
  /**
   * Drops what the changes reach, in all processes; the number of stored responses, or that other processes cannot be reached. `shownBy`:
   * the request whose response shows the state after them.
   */
  apply(changes: readonly Change[], shownBy?: string): Promise<number | 'unacknowledged'>
  /** For that time nothing is stored for the service. */
  quarantine(forMs: number): void
  /** Sends to the other processes that share the port. */
  tell(message: FeedMessage): void
  /** Undefined where instances share no store. */
  readonly positions:
    | { read(): Promise<SharedPosition | undefined>; write(position: SharedPosition): Promise<void> }
    | undefined
}

/** Messages between processes, as plain data. */
export type FeedMessage =
  | {
      readonly kind: 'read'
      readonly service: string
      /** The process that has read the log. */
      readonly from: string
      readonly feed: Feed
      readonly sentAt: number
      /** Rows of the log may have other changes than before. */
      readonly restarted: boolean
    }
  | {
      readonly kind: 'applied'
      readonly service: string
      readonly signature: string
      readonly incarnation: string
      readonly row: RowName
      readonly digest: string
    }
  /** A push of which no row was noted: it has none, or could not be read. */
  | {
      readonly kind: 'applied-text'
      readonly service: string
      readonly signature: string
      readonly isWithoutRow: boolean
    }

export class PollError extends Error {
  readonly reason: PollFailure

  constructor(reason: PollFailure, cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
  }
}

/** The feed is trusted for this many intervals after the last complete poll was sent. */
const trustedIntervals = 2
/** Intervals after which another process reads the log. */
const takesOverAfter = 1.3
/** Pages that are read at once. */
const maxPages = 40
/** Rows, and signatures of pushes. */
const maxApplied = 2_000
/**
 * Two changes of one second that have no row in the log may have the same signature. The companion waits for a second or two, so
 * that after this time another push with the signature is a copy.
 */
const sameSignatureMs = 30_000

/** The known changes behind the gateway to one service. */
export type ServiceFeed = {
  readonly lease: FeedLease
  /** The state, and the seconds since the last complete poll was sent. */
  reading(): {
    readonly state: FeedState
    readonly cause: LagCause | undefined
    readonly lagSeconds: number | undefined
  }
  /**
   * Is it the signature of a push that was applied, or for which everything was dropped because it could not be read? One with the
   * same row but another signature may be of a restored log.
   */
  wasApplied(signature: string): boolean
  /** Have the changes of this row been applied, by a push or a poll? A row is an incarnation, a sequence and a check value. */
  hasApplied(row: string): boolean
  applied(signature: string, push: Pick<Push, 'incarnation' | 'sequence' | 'check' | 'changes'>): void
  /** Everything was dropped for a push that could not be read. */
  droppedAll(signature: string, isWithoutRow: boolean): void
  isOtherFingerprint(fingerprint: string): boolean
  receiveMessage(message: FeedMessage): void
  /** `late`: other processes may have seen more changes than this one, which has just started, and are about to send them. */
  start(late: boolean): void
  stop(): void
}

const digestOf = (changes: readonly Change[]): string =>
  createHash('sha256').update(JSON.stringify(changes)).digest('base64url')

const nameOf = (incarnation: string, { sequence, check }: RowName): string =>
  `${incarnation} ${sequence} ${check}`.trimEnd()

/**
 * The rows that have been applied, so that a change that was pushed is not applied again when the log has it; and the signatures of
 * pushes, with an empty digest.
 */
const createAppliedRows = () => {
  const digests = new Map<string, string>()
  return {
    has: (row: string, digest: string): boolean => digests.get(row) === digest,
    digestOf: (row: string): string | undefined => digests.get(row),
    add: (row: string, digest: string): void => {
      digests.delete(row)
      digests.set(row, digest)
      for (const oldest of digests.keys()) {
        if (digests.size <= maxApplied) break
        digests.delete(oldest)
      }
    },
    clear: () => digests.clear(),
  }
}

type ServiceFeedOptions = {
  readonly service: string
  readonly pollMs: number
  readonly ports: FeedPorts
  readonly clock: Clock
  readonly random: () => number
  readonly report: (event: ChangeEvent) => void
}

/** Reads the log of one service again and again, unless another process that shares the port has just done so. */
export const createServiceFeed = (options: ServiceFeedOptions): ServiceFeed => {
  const { service, pollMs, ports, clock, random, report } = options
  const trustedMs = trustedIntervals * pollMs
  const ownId = random().toString(36)
  const rows = createAppliedRows()
  let feed = coldFeed
  /** When the last poll was sent after which every change was known. */
  let lastContactAt: Moment | undefined
  /** When the last poll that succeeded was sent. */
  let readAt: Moment | undefined
  let lastState: FeedState = 'cold'
  let lastCause: LagCause | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  const since = (moment: Moment | undefined, at: Moment): number =>
    moment === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, at.now - moment.now, at.monotonic - moment.monotonic)
  const sinceContact = (at: Moment): number => since(lastContactAt, at)
  const isCurrent = (at: Moment): boolean => feed.state === 'heard' && sinceContact(at) < trustedMs
  const isLost = (at: Moment): boolean => since(readAt, at) >= trustedMs

  const reportState = (): void => {
    const [to, cause] = [feed.state, lagCause(feed)]
    if (to !== lastState || cause !== lastCause)
      report({ kind: 'feed-state', service, from: lastState, to, cause })
    lastState = to
    lastCause = cause
  }

  /** The rows that no process has applied yet. */
  const newSteps = (
    steps: readonly FeedStep[],
    { incarnation, last }: ChangeLog,
    shared: SharedPosition | undefined,
  ): readonly FeedStep[] => {
    // A position behind the end of the log belongs to the log before it was restored.
    const isOfLog = shared?.incarnation === incarnation && shared.position <= last
    const until = isOfLog ? shared.position : 0
    return steps.filter((step) => {
      if (step.row === undefined) return true
      if (step.row.sequence <= until) return false
      const changes = step.kind === 'apply' ? step.changes : []
      return !rows.has(nameOf(incarnation, step.row), digestOf(changes))
    })
  }

  const applySteps = async (steps: readonly FeedStep[], incarnation: string): Promise<void> => {
    if (steps.length === 0) return
    const changes = steps.flatMap((step): readonly Change[] =>
      step.kind === 'apply' ? step.changes : [{ kind: 'all', reason: step.reason }],
    )
    const entries = await ports.apply(changes)
    if (entries === 'unacknowledged') throw new PollError('not-spread')
    for (const step of steps) {
      if (step.kind === 'drop-service') report({ kind: 'service-dropped', service, reason: step.reason })
      if (step.row === undefined) continue
      rows.add(nameOf(incarnation, step.row), digestOf(step.kind === 'apply' ? step.changes : []))
    }
    report({ kind: 'changes-applied', service, source: 'poll', changes: changes.length, entries })
  }

  /** Rows that another instance has read are skipped, so the log must still have its newest row as well. */
  const resumed = (shared: SharedPosition | undefined): Feed => {
    if (shared === undefined) return feed
    if (feed.incarnation === '') return { ...feed, ...shared }
    const isSame = shared.incarnation === feed.incarnation
    return isSame ? { ...feed, newest: newerRow(feed.newest, shared.newest) } : feed
  }

  /** Reads page after page. A page counts only when its changes have been applied in all processes. */
  const readPages = async (): Promise<{
    readonly next: Feed
    readonly sent: Moment
    readonly restarted: boolean
  }> => {
    const shared = await ports.positions?.read().catch(() => undefined)
    let next = resumed(shared)
    let restarted = false
    for (let page = 1; ; page += 1) {
      const sent = readClock(clock)
      const from = askFrom(next)
      const response = await ports.ask(from, next.incarnation, next.newest)
      const reading = readLog(next, from, response, page > 1)
      await applySteps(newSteps(reading.steps, response, shared), response.incarnation)
      if (reading.restarted) rows.clear()
      // A log that begins anew in each response is not read before the next poll.
      const isUnstable = restarted && reading.restarted
      restarted ||= reading.restarted
      next = reading.feed
      if (!reading.again || page === maxPages || isUnstable) return { next, sent, restarted }
    }
  }

  const take = (next: Feed, sent: Moment, hasRestarted: boolean): void => {
    // A push may have brought a newer row while the log was read.
    const pushed = hasRestarted || feed.incarnation !== next.incarnation ? undefined : feed.newest
    feed = { ...next, newest: newerRow(next.newest, pushed) }
    readAt = sent
    if (next.state === 'heard') lastContactAt = sent
    // While a PHP request writes nothing is stored, for as long as this poll counts: the next one may be late.
    if (next.unfinished.some(({ state, reads }) => state === 'open' && !reads)) ports.quarantine(trustedMs)
  }

  const share = (state: Feed): void => {
    const { incarnation, newest, fingerprint } = state
    // Without it the next process to start drops the service.
    ports.positions
      ?.write({ incarnation, position: safePosition(state), newest, fingerprint })
      .catch(() => undefined)
  }

  const schedule = (ms: number): void => {
    clearTimeout(timer)
    if (!isStopped) timer = setTimeout(() => void poll(), ms)
  }

  /** Gives the pause before the next poll. */
  const pollFailed = (cause: unknown): number => {
    const reason = cause instanceof PollError ? cause.reason : 'unreachable'
    report({ kind: 'poll-failed', service, reason })
    if (isLost(readClock(clock))) feed = lost(feed)
    // A page of a site without the companion costs more than a log.
    return reason === 'no-companion' ? pollMs : pollMs / 2
  }

  const poll = async (): Promise<void> => {
    let pauseMs = pollMs
    try {
      const { next, sent, restarted } = await readPages()
      if (isStopped) return
      take(next, sent, restarted)
      share(feed)
      ports.tell({ kind: 'read', service, from: ownId, feed, sentAt: sent.now, restarted })
    } catch (cause) {
      if (isStopped) return
      pauseMs = pollFailed(cause)
    }
    reportState()
    schedule(pauseMs)
  }

  const recordPush = (message: Extract<FeedMessage, { readonly kind: 'applied' }>): void => {
    rows.add(nameOf(message.incarnation, message.row), message.digest)
    rows.add(message.signature, '')
    if (message.incarnation === feed.incarnation)
      feed = { ...feed, newest: newerRow(feed.newest, message.row) }
  }

  const textOfPush = ({
    signature,
    isWithoutRow,
  }: Extract<FeedMessage, { readonly kind: 'applied-text' }>): void => {
    if (!isWithoutRow) rows.add(signature, '')
    else if (rows.digestOf(signature) === undefined) rows.add(signature, String(clock.monotonic()))
  }
  const appliedText = (signature: string, isWithoutRow: boolean): void => {
    const message = { kind: 'applied-text', service, signature, isWithoutRow } as const
    textOfPush(message)
    ports.tell(message)
  }

  return {
    lease: {
      isCurrent,
      endedMs: (at) => (isCurrent(at) ? 0 : sinceContact(at)),
    },
    reading: () => {
      const at = readClock(clock)
      const lagMs = sinceContact(at)
      return {
        state: isLost(at) ? lost(feed).state : feed.state,
        cause: isLost(at) ? undefined : lagCause(feed),
        lagSeconds: Number.isFinite(lagMs) ? lagMs / 1000 : undefined,
      }
    },
    wasApplied: (signature) => {
      const lastState = rows.digestOf(signature)
      return (
        lastState !== undefined &&
        (lastState === '' || clock.monotonic() - Number(lastState) > sameSignatureMs)
      )
    },
    hasApplied: (row) => rows.digestOf(row) !== undefined,
    applied: (signature, { incarnation, sequence, check, changes }) => {
      if (sequence === 0) {
        appliedText(signature, true)
        return
      }
      const row = { sequence, check }
      const message = {
        kind: 'applied',
        service,
        signature,
        incarnation,
        row,
        digest: digestOf(changes),
      } as const
      recordPush(message)
      ports.tell(message)
    },
    droppedAll: appliedText,
    isOtherFingerprint: (fingerprint) =>
      fingerprint !== '' && feed.fingerprint !== '' && fingerprint !== feed.fingerprint,
    receiveMessage: (message) => {
      if (isStopped) return
      if (message.kind === 'applied') return recordPush(message)
      if (message.kind === 'applied-text') return textOfPush(message)
      // A message is sent to all processes, also to its sender.
      if (message.from === ownId) return
      if (message.restarted) rows.clear()
      const at = readClock(clock)
      // The wall clock is the same for all processes of a machine, the monotonic one is not.
      const agoMs = Math.max(0, at.now - message.sentAt)
      take(message.feed, { now: message.sentAt, monotonic: at.monotonic - agoMs }, message.restarted)
      lastState = feed.state
      lastCause = lagCause(feed)
      // This process takes over when the other one falls silent, before the feed is not trusted any more.
      schedule(pollMs * (takesOverAfter + random() / 4))
    },
    start: (late) => {
      if (pollMs > 0) schedule(late ? pollMs * takesOverAfter : 0)
    },
    stop: () => {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
