import type { Change } from '../../service/tagger.ts'
import type { ChangeLog, LogRow, RowName, SignatureRefusal } from './read-changes.ts'

/**
 * Which changes of the service the gateway has applied. `cold`: nothing yet. `heard`: every change up to the last poll has been applied.
 * `behind`: some are known to be missing. `silent`: no poll has succeeded for too long. Only in `heard` stored responses are used for
 * longer than the ordinary lifetime.
 */
export type FeedState = 'cold' | 'heard' | 'behind' | 'silent'

/** A row that is not complete: a PHP request is still writing, or the row is missing, perhaps not yet committed. */
type Unfinished = {
  readonly sequence: number
  readonly state: 'open' | 'missing'
  /** Polls before this one in which it was open, or missing. */
  readonly polls: number
  /** It is open, and its request answers a read. */
  readonly reads?: boolean
}

/** The position of a gateway in the log of one service. Plain data: processes send it to each other. */
export type Feed = {
  readonly state: FeedState
  /** '' as long as none is known. */
  readonly incarnation: string
  /** Every row up to this one has been applied, except those in `unfinished`. */
  readonly position: number
  readonly unfinished: readonly Unfinished[]
  /** The newest row with a check value that a poll or a push has brought: a log without it is not the one that was read. */
  readonly newest: RowName | undefined
  readonly fingerprint: string
}

export type ServiceDropReason =
  | 'first-contact'
  | 'new-log'
  | 'truncated'
  | 'went-back'
  | 'gap'
  | 'unfinished-request'
  | 'fingerprint'
  | 'unreadable'

export type FeedStep =
  | { readonly kind: 'apply'; readonly row: RowName; readonly changes: readonly Change[] }
  /** The row that is the reason. */
  | { readonly kind: 'drop-service'; readonly reason: ServiceDropReason; readonly row?: RowName }

export type FeedReading = {
  readonly feed: Feed
  readonly steps: readonly FeedStep[]
  /** There is more to read at once. */
  readonly again: boolean
  /** It is another log than before, or an earlier state of it: everything is dropped. */
  readonly restarted: boolean
}

export const coldFeed: Feed = {
  state: 'cold',
  incarnation: '',
  position: 0,
  unfinished: [],
  newest: undefined,
  fingerprint: '',
}

/** Polls after which a missing row is given up, and everything is dropped. */
const maxPolls = 3
/** Polls after which the changes of a PHP request that still writes count as missing. */
const maxOpenPolls = 2
/** More missing rows than this are given up at once. */
const maxMissing = 100
/** Rows before the last one that are read after a restart: one of them may not have been committed. */
const readBack = 64

/** Why a feed is `behind`: a PHP request still writes, rows are missing, or there is more to read. */
export type LagCause = 'request-still-writes' | 'rows-missing' | 'more-to-read'

const isLongOpen = ({ state, polls }: Unfinished): boolean => state === 'open' && polls >= maxOpenPolls

export const lagCause = ({ state, unfinished }: Feed): LagCause | undefined => {
  if (state !== 'behind') return undefined
  if (unfinished.some(isLongOpen)) return 'request-still-writes'
  return unfinished.some((row) => row.state === 'missing') ? 'rows-missing' : 'more-to-read'
}

/** The sequence after which rows have to be read. */
export const askFrom = ({ position, unfinished }: Feed): number => {
  const missingSequences = unfinished
    .filter(({ state }) => state === 'missing')
    .map(({ sequence }) => sequence)
  return missingSequences.length === 0
    ? position
    : Math.min(position, ...missingSequences.map((sequence) => sequence - 1))
}

/** The row with the higher sequence, of those that have a check value. */
export const newerRow = (newest: RowName | undefined, row: RowName | undefined): RowName | undefined =>
  row === undefined || row.check === '' || (newest !== undefined && newest.sequence >= row.sequence)
    ? newest
    : { sequence: row.sequence, check: row.check }

/** The position from which a gateway without another position may continue. */
export const safePosition = ({ position, unfinished }: Feed): number =>
  Math.min(position, ...unfinished.map(({ sequence }) => sequence - 1))

const restarted = (
  { incarnation, first, last, fingerprint }: ChangeLog,
  reason: ServiceDropReason,
): FeedReading => {
  const position = Math.max(0, first - 1, last - readBack)
  return {
    feed: { ...coldFeed, state: 'behind', incarnation, position, fingerprint },
    steps: [{ kind: 'drop-service', reason }],
    again: true,
    restarted: true,
  }
}

const restartReason = (feed: Feed, from: number, response: ChangeLog): ServiceDropReason | undefined => {
  if (feed.incarnation === '') return 'first-contact'
  if (response.incarnation !== feed.incarnation) return 'new-log'
  if (response.last < feed.position) return 'went-back'
  return from < response.first - 1 ? 'truncated' : undefined
}

const isFinished = ({ state }: LogRow): boolean => state !== 'open'

/** The sequence up to which the response is complete. */
const readUpTo = ({ rows, last, more }: ChangeLog): number =>
  more
    ? Math.max(0, ...rows.filter(isFinished).map(({ sequence }) => sequence))
    : Math.max(last, ...rows.map(({ sequence }) => sequence))

const stepsOf = (row: LogRow): readonly FeedStep[] => {
  switch (row.state) {
    case 'closed':
      return [{ kind: 'apply', row, changes: row.changes }]
    case 'dead':
      return [{ kind: 'drop-service', reason: 'unfinished-request', row }]
    case 'open':
      return []
  }
}

/** The rows that are still missing after the response. */
const unfinishedAfter = (
  { unfinished }: Feed,
  from: number,
  upTo: number,
  rows: ReadonlyMap<number, LogRow>,
  isFollowUp: boolean,
): readonly Unfinished[] => {
  const before = new Map(unfinished.map((row) => [row.sequence, row]))
  // Open rows are in every response, also one that was given up before it could be seen.
  const expected = new Set([...before.keys(), ...[...rows.keys()].filter((sequence) => sequence <= upTo)])
  for (let sequence = from + 1; sequence <= upTo; sequence += 1) expected.add(sequence)
  const pollsOf = (previous: Unfinished | undefined, state: Unfinished['state']): number =>
    previous?.state === state ? previous.polls + (isFollowUp ? 0 : 1) : 0
  return [...expected].flatMap((sequence): readonly Unfinished[] => {
    const row = rows.get(sequence)
    const previous = before.get(sequence)
    if (row !== undefined)
      return row.state === 'open'
        ? [{ sequence, state: 'open', polls: pollsOf(previous, 'open'), reads: row.reads }]
        : []
    // Rows behind the part that was read are not counted yet.
    if (sequence > upTo) return previous === undefined ? [] : [previous]
    return [{ sequence, state: 'missing', polls: pollsOf(previous, 'missing') }]
  })
}

/**
 * Reads one response of the log that was asked for the rows after `asked`. `isFollowUp`: it was asked at once after another, so that a
 * missing row had no time to be committed.
 */
export const readLog = (feed: Feed, from: number, response: ChangeLog, isFollowUp = false): FeedReading => {
  const reason = restartReason(feed, from, response)
  if (reason !== undefined) return restarted(response, reason)
  const upTo = readUpTo(response)
  const isStuck = response.more && upTo <= from
  const isWide = upTo - from > response.rows.length + maxMissing
  if (isStuck || isWide) return restarted(response, isStuck ? 'unreadable' : 'gap')
  const rows = new Map(response.rows.map((row) => [row.sequence, row]))
  const after = unfinishedAfter(feed, from, upTo, rows, isFollowUp)
  const pending = after.filter(({ polls, state }) => state === 'open' || polls < maxPolls)
  const missingRows = pending.filter(({ state }) => state === 'missing')
  const isOther = feed.fingerprint !== '' && response.fingerprint !== feed.fingerprint
  const steps: FeedStep[] = response.rows.flatMap(stepsOf)
  if (isOther) steps.push({ kind: 'drop-service', reason: 'fingerprint' })
  if (pending.length < after.length) steps.push({ kind: 'drop-service', reason: 'gap' })
  return {
    feed: {
      state: response.more || missingRows.length > 0 || pending.some(isLongOpen) ? 'behind' : 'heard',
      incarnation: feed.incarnation,
      position: Math.max(feed.position, upTo),
      unfinished: pending,
      newest: response.rows.reduce(newerRow, feed.newest),
      fingerprint: response.fingerprint,
    },
    steps,
    // A row that was open and is not any more has closed: its changes have to be read.
    again: response.more || missingRows.some(({ sequence, polls }) => polls === 0 && sequence <= from),
    restarted: false,
  }
}

/** After a time in which no poll succeeded. */
export const lost = (feed: Feed): Feed => ({ ...feed, state: feed.state === 'cold' ? 'cold' : 'silent' })

/** `push` and `poll` by the companion of WordPress, `plain` by any other service. */
export type ChangeSource = 'push' | 'poll' | 'plain'

export type ChangeRefusal = SignatureRefusal | 'no-credential' | 'too-many' | 'unreadable' | 'not-spread'

/** `unreachable`: no response. `no-companion`: another response than the log. `not-spread`: the cluster cannot be reached. */
export type PollFailure = 'unreachable' | 'no-companion' | 'not-spread'

/** Events of the change feeds; services come from the configuration, everything else from closed lists. */
export type ChangeEvent =
  | {
      readonly kind: 'changes-applied'
      readonly service: string
      readonly source: ChangeSource
      readonly changes: number
      /** Stored responses that were dropped, in all processes. */
      readonly entries: number
    }
  | { readonly kind: 'service-dropped'; readonly service: string; readonly reason: ServiceDropReason }
  /** `service` is `none` when the credential names none. */
  | { readonly kind: 'changes-refused'; readonly service: string; readonly reason: ChangeRefusal }
  | { readonly kind: 'poll-failed'; readonly service: string; readonly reason: PollFailure }
  | {
      readonly kind: 'feed-state'
      readonly service: string
      readonly from: FeedState
      readonly to: FeedState
      /** Of `behind`. */
      readonly cause?: LagCause | undefined
    }
