import type { FieldLines } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import { currentAgeMs, type Moment } from './age.ts'
import type { CacheRead } from './cache-read.ts'
import { type ForwardReason, forwardedStatus, hitStatus } from './cache-status.ts'
import type { Encodings } from './encodings.ts'
import type { ReadOutcome } from './events.ts'
import type { Landing } from './landing.ts'
import { type CacheAnswer, forReader, takesWhole } from './reader-answer.ts'
import type { StoredResponse } from './stored-response.ts'

/** The answers that the cache gives, each with Age and Cache-Status as RFC 9111 §5.1 and RFC 9211 want them. */
export type Answers = {
  /** The same object for all readers of the same second who take the response whole: a busy hit builds nothing. */
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

const given = (
  read: CacheRead,
  response: GatewayResponse,
  outcome: ReadOutcome,
  at: Moment,
): CacheAnswer => ({
  ...forReader(read, response, at.now),
  outcome,
})

const aged = (stored: StoredResponse, ageMs: number, status: string): GatewayResponse =>
  whole(stored, ['Age', String(seconds(ageMs)), 'Cache-Status', status])

type Ready = { readonly ageSeconds: number; readonly answer: CacheAnswer }

export const createAnswers = (encodings: Encodings): Answers => {
  const ready = new WeakMap<StoredResponse, Ready>()

  const ageOf = (stored: StoredResponse, at: Moment): number =>
    currentAgeMs(stored.initialAgeMs, stored.received, at)

  return {
    hit: (uncoded, read, ageMs, at) => {
      const stored = encodings.serve(uncoded, read)
      const known = ready.get(stored)
      const ageSeconds = seconds(ageMs)
      const asIs = takesWhole(read)
      if (asIs && known?.ageSeconds === ageSeconds) return known.answer
      const answer = given(read, aged(stored, ageMs, hitStatus(ttlSeconds(stored, ageMs))), 'hit', at)
      if (asIs) ready.set(stored, { ageSeconds, answer })
      return answer
    },
    stale: (uncoded, read, at, detail) => {
      const stored = encodings.serve(uncoded, read)
      const ageMs = ageOf(stored, at)
      return given(read, aged(stored, ageMs, hitStatus(ttlSeconds(stored, ageMs), detail)), 'stale', at)
    },
    led: (landing, read, reason, at) => {
      const { notKept, validated, upstreamStatus, ownFields } = landing
      const stored = encodings.formFor(landing.stored, read)
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
    // RFC 9111 §5.2.1.7
    unavailable: () => ({
      kind: 'response',
      status: 504,
      fields: ['Content-Length', '0', 'Cache-Status', 'trellis; detail=only-if-cached'],
      content: undefined,
      outcome: 'miss',
    }),
  }
}
