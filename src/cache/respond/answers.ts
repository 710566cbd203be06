import type { Readable } from 'node:stream'
import { isConditional } from '../../http/conditional/preconditions.ts'
import type { FieldLines } from '../../http/fields.ts'
import { type GatewayResponse, longestText } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import { type ForwardReason, forwardedStatus, hitStatus, unavailableStatus } from '../cache-status.ts'
import { type CacheAnswer, forReader, takesWhole } from '../conditional-response.ts'
import type { ReadOutcome } from '../events.ts'
import type { Landing } from '../fetch/fetch-outcome.ts'
import { currentAgeMs, type Moment } from '../policy/freshness.ts'
import type { ReadyAnswers, SharedForm, StoredResponse } from '../store/stored-response.ts'
import { asksForTag, currentTag, type Encodings } from './encodings.ts'

/** So many answers have a text at a time: at most 3.5 MiB of them. */
const mostTexts = 256

/** Keeps the contents of the answers that are given most as the text in which they are sent: to make one is a fiftieth of a hit, and a third of what it leaves to the collector. */
const createHotTexts = (): ((answer: CacheAnswer) => void) => {
  const having: CacheAnswer[] = []
  let next = 0
  return (answer) => {
    const { content } = answer
    if (!Buffer.isBuffer(content) || content.length > longestText) return
    const oldest = having[next]
    if (oldest !== undefined) oldest.text = undefined
    having[next] = answer
    next = (next + 1) % mostTexts
    answer.text = { of: content, latin1: content.toString('latin1') }
  }
}

/** The answers that the cache gives, each with Age and Cache-Status as RFC 9111 §5.1 and RFC 9211 want them. */
export type Answers = {
  /** The same object for the readers of one second, from the second one on, who take the same form: a busy hit builds nothing. */
  hit(stored: StoredResponse, read: CacheRead, ageMs: number, at: Moment): CacheAnswer
  stale(stored: StoredResponse, read: CacheRead, at: Moment, detail: 'revalidating' | 'error'): CacheAnswer
  led(
    landing: Extract<Landing, { kind: 'shared' }>,
    read: CacheRead,
    reason: ForwardReason,
    at: Moment,
  ): CacheAnswer
  collapsed(stored: StoredResponse, read: CacheRead, reason: ForwardReason, at: Moment): CacheAnswer
  own(
    landing: Extract<Landing, { kind: 'own' }>,
    read: CacheRead,
    reason: ForwardReason,
    at: Moment,
  ): CacheAnswer
  /** Head now, content as it comes. */
  streamed(
    landing: Extract<Landing, { kind: 'filling' }>,
    content: Readable,
    read: CacheRead,
    reason: ForwardReason,
    collapsed: boolean,
    at: Moment,
  ): CacheAnswer
  serverError(
    stored: StoredResponse,
    read: CacheRead,
    reason: ForwardReason,
    collapsed: boolean,
    at: Moment,
  ): CacheAnswer
  unavailable(): CacheAnswer
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

const ttlSeconds = (stored: StoredResponse, ageMs: number): number => seconds(stored.lifetimeMs - ageMs)

const whole = (stored: StoredResponse, added: FieldLines): GatewayResponse => ({
  kind: 'response',
  status: stored.status,
  fields: [...stored.fields, ...added],
  content: stored.status === 204 ? undefined : stored.content,
})

const given = (read: CacheRead, response: GatewayResponse, outcome: ReadOutcome, at: Moment): CacheAnswer => {
  const { kind, status, fields, content } = forReader(read, response, at.now)
  return { kind, status, fields, content, outcome }
}

const aged = (stored: StoredResponse, ageMs: number, status: string): GatewayResponse =>
  whole(stored, ['Age', String(seconds(ageMs)), 'Cache-Status', status])

const noneReady = (of: StoredResponse, ageSeconds: number, ttlSeconds: number): ReadyAnswers => ({
  of,
  ageSeconds,
  ttlSeconds,
  given: 0,
  whole: undefined,
  bare: undefined,
  confirmed: undefined,
})

/** The form that a reader shares with others; undefined for one that has to be made for this reader. */
const sharedForm = (stored: StoredResponse, read: CacheRead): SharedForm | undefined => {
  if (takesWhole(read)) return 'whole'
  if (!isConditional(read.fields)) return read.method === 'HEAD' ? 'bare' : undefined
  const isSuccess = stored.status >= 200 && stored.status < 300
  return isSuccess && asksForTag(read.fields, currentTag(stored)) ? 'confirmed' : undefined
}

/**
 * What is ready for the readers of this second. Undefined for the first of them: of a large set most are read once in a second,
 * and what hangs on an old record is copied twice by the collector before it goes.
 */
const readyFor = (
  stored: StoredResponse,
  ageSeconds: number,
  ttlSeconds: number,
): ReadyAnswers | undefined => {
  const { ready } = stored
  if (ready === ageSeconds) {
    const made = noneReady(stored, ageSeconds, ttlSeconds)
    stored.ready = made
    return made
  }
  // Age and ttl need not tick at the same moment.
  const isReady =
    typeof ready !== 'number' &&
    ready.of === stored &&
    ready.ageSeconds === ageSeconds &&
    ready.ttlSeconds === ttlSeconds
  if (isReady) return ready
  stored.ready = ageSeconds
  return undefined
}

const freshAnswer = (
  stored: StoredResponse,
  read: CacheRead,
  ageMs: number,
  ttl: number,
  at: Moment,
): CacheAnswer => {
  const response = forReader(read, aged(stored, ageMs, hitStatus(ttl)), at.now)
  // Written out: two spreads took longer than all else of it.
  return {
    kind: 'response',
    status: response.status,
    fields: response.fields,
    content: response.content,
    text: undefined,
    outcome: 'hit',
    ageSeconds: seconds(ageMs),
  }
}

/** From so many readers in one second on, the next ones are worth a text. */
const readersOfHot = 8

export const createAnswers = (encodings: Encodings): Answers => {
  const keepText = createHotTexts()
  const ageOf = (stored: StoredResponse, at: Moment): number =>
    currentAgeMs(stored.initialAgeMs, stored.received, at)

  return {
    hit: (uncoded, read, ageMs, at) => {
      const stored = encodings.serve(uncoded, read)
      const form = sharedForm(stored, read)
      const ttl = ttlSeconds(stored, ageMs)
      if (form === undefined) return freshAnswer(stored, read, ageMs, ttl, at)
      const shared = readyFor(stored, seconds(ageMs), ttl)
      const made = shared?.[form]
      if (shared !== undefined && made !== undefined) {
        shared.given += 1
        if (shared.given === readersOfHot && shared.whole !== undefined) keepText(shared.whole)
        return made
      }
      const answer = freshAnswer(stored, read, ageMs, ttl, at)
      if (shared !== undefined) shared[form] = answer
      return answer
    },
    stale: (uncoded, read, at, detail) => {
      const stored = encodings.serve(uncoded, read)
      const ageMs = ageOf(stored, at)
      // A purge may have aged the record that the coded form was made of.
      const status = hitStatus(ttlSeconds(uncoded, ageMs), detail)
      return { ...given(read, aged(stored, ageMs, status), 'stale', at), ageSeconds: seconds(ageMs) }
    },
    led: (landing, read, reason, at) => {
      const { notKept, validated, upstreamStatus, ownFields, fromTier } = landing
      const stored = encodings.formFor(landing.stored, read)
      if (fromTier === true) {
        const ageMs = ageOf(stored, at)
        const status = hitStatus(ttlSeconds(stored, ageMs), 'shared')
        return { ...given(read, aged(stored, ageMs, status), 'hit', at), ageSeconds: seconds(ageMs) }
      }
      const status = forwardedStatus({
        reason,
        status: upstreamStatus,
        ttlSeconds: ttlSeconds(stored, ageOf(stored, at)),
        stored: notKept === undefined,
        collapsed: false,
        detail: notKept,
      })
      const response = whole(stored, [...ownFields, 'Cache-Status', status])
      return given(read, response, validated ? 'revalidated' : 'miss', at)
    },
    collapsed: (uncoded, read, reason, at) => {
      const stored = encodings.formFor(uncoded, read)
      const ageMs = ageOf(stored, at)
      const status = forwardedStatus({
        reason,
        status: undefined,
        ttlSeconds: ttlSeconds(stored, ageMs),
        stored: false,
        collapsed: true,
        detail: undefined,
      })
      return given(read, aged(stored, ageMs, status), 'collapsed', at)
    },
    own: (landing, read, reason, at) => {
      const { response } = landing
      const status = forwardedStatus({
        reason,
        status: landing.upstreamStatus,
        ttlSeconds: undefined,
        stored: false,
        collapsed: false,
        detail: landing.reason,
      })
      const marked: GatewayResponse = { ...response, fields: [...response.fields, 'Cache-Status', status] }
      return given(read, marked, 'miss', at)
    },
    streamed: ({ sketch, upstreamStatus, ownFields }, content, read, reason, collapsed, at) => {
      const ageMs = ageOf(sketch, at)
      const status = forwardedStatus({
        reason,
        status: collapsed ? undefined : upstreamStatus,
        ttlSeconds: ttlSeconds(sketch, ageMs),
        // Whether it will be nobody knows before its end.
        stored: false,
        collapsed,
        detail: 'streamed',
      })
      const added = collapsed ? ['Age', String(seconds(ageMs))] : ownFields
      const fields = [...sketch.fields, ...added, 'Cache-Status', status]
      const response: GatewayResponse = { kind: 'response', status: sketch.status, fields, content }
      return given(read, response, collapsed ? 'collapsed' : 'miss', at)
    },
    serverError: (stored, read, reason, collapsed, at) => {
      const status = forwardedStatus({
        reason,
        status: stored.status,
        ttlSeconds: undefined,
        stored: false,
        collapsed,
        detail: 'status',
      })
      return given(read, whole(stored, ['Cache-Status', status]), collapsed ? 'collapsed' : 'miss', at)
    },
    unavailable: () => ({
      kind: 'response',
      status: 504,
      fields: ['Content-Length', '0', 'Cache-Status', unavailableStatus],
      content: undefined,
      outcome: 'miss',
    }),
  }
}
