import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { varyKey } from '../http/vary.ts'
import { currentAgeMs, type Moment } from './age.ts'
import type { Answers } from './answers.ts'
import type { CacheRead } from './cache-read.ts'
import { discard } from './discard.ts'
import type { CacheEvent } from './events.ts'
import type { Flight } from './flights.ts'
import { overtaken } from './keep.ts'
import type { Landing } from './landing.ts'
import type { PassMemo } from './pass-memo.ts'
import type { CacheAnswer } from './reader-answer.ts'
import { mayServeOnError, type Reuse } from './reuse.ts'
import { isServerError } from './server-error.ts'
import type { StoredResponse } from './stored-response.ts'
import type { TagLog } from './tag-log.ts'

/** Why a reader's answer has to be fetched, and what could be validated or served on error. */
export type Need = Extract<Reuse, { kind: 'fetch' }>

/** What a waiter makes of a landing: its answer, or another try, beside the others or alone. */
export type Verdict =
  | { readonly kind: 'answer'; readonly answer: CacheAnswer }
  | { readonly kind: 'again'; readonly alone: boolean }

type Failure = 'unreachable' | 'server-error'

/** One reader's wait for one forward; `since` is the number of the last invalidation when it began. */
export type Wait = {
  readonly read: CacheRead
  readonly need: Need
  readonly since: number
  readonly flight: Flight
  readonly leads: boolean
}

/** The reader's answer. */
export const answered = (answer: CacheAnswer): Verdict => ({ kind: 'answer', answer })

/** Another try. */
export const again = (alone: boolean): Verdict => ({ kind: 'again', alone })

/** One who did not ask for it itself gets only what is fresh. */
export const mayShare = (stored: StoredResponse, at: Moment): boolean =>
  !stored.validateAlways && stored.lifetimeMs > currentAgeMs(stored.initialAgeMs, stored.received, at)

/** A landing that is over. */
export type Landed = Exclude<Landing, { kind: 'filling' }>

export type JudgeOptions = {
  readonly answers: Answers
  readonly log: TagLog
  readonly passes: PassMemo
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

/** Makes the function that tells what one reader gets of a landing; it throws what the forward failed with. */
export const createJudge = (options: JudgeOptions): ((landing: Landed, wait: Wait) => Verdict) => {
  const { answers, log, passes, clock, report } = options
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const onError = (read: CacheRead, need: Need, failure: Failure): CacheAnswer | undefined => {
    const at = moment()
    const { stored } = need
    if (stored === undefined || !mayServeOnError(stored, failure, read.policy.profile, at)) return undefined
    report({ kind: 'served-stale', service: read.service, reason: 'error' })
    return answers.stale(stored, read, at, 'error')
  }

  /** One who waited may have what selects the same, holds nothing that was written before the wait began, and is fresh. */
  const forWaiter = (stored: StoredResponse, wait: Wait): Verdict => {
    const { read, flight, need } = wait
    const at = moment()
    if (varyKey(stored.varyNames, read) !== stored.varyKey) return again(false)
    if (wait.since !== flight.began && overtaken(log, stored, flight.began)) return again(false)
    if (!mayShare(stored, at)) return again(true)
    report({ kind: 'collapsed', service: read.service })
    return answered(answers.collapsed(stored, read, need.reason, at))
  }

  const ofServerError = (stored: StoredResponse, wait: Wait): Verdict => {
    const { read, need, leads } = wait
    const stale = onError(read, need, 'server-error')
    if (stale !== undefined) return answered(stale)
    const mine = leads || varyKey(stored.varyNames, read) === stored.varyKey
    return mine ? answered(answers.serverError(stored, read, need.reason, !leads, moment())) : again(true)
  }

  const ofFailure = (error: unknown, wait: Wait): Verdict => {
    const stale = onError(wait.read, wait.need, 'unreachable')
    if (stale !== undefined) return answered(stale)
    // What kept it from a slot may have been its client's share, and says nothing of the one who only waited.
    if (!wait.leads && error instanceof GatewayError && error.code === 'upstream_busy') return again(false)
    throw error
  }

  /** Others have got the beginning of it; who has not tries for a whole one. */
  const ofBroken = (error: unknown, wait: Wait): Verdict => {
    const stale = onError(wait.read, wait.need, 'unreachable')
    if (stale !== undefined) return answered(stale)
    if (wait.leads) throw error
    return again(false)
  }

  const ofOwn = (landing: Extract<Landing, { kind: 'own' }>, { read, need }: Wait): Verdict => {
    const stale = isServerError(landing.response) ? onError(read, need, 'server-error') : undefined
    if (stale !== undefined) {
      discard(landing.response.content)
      return answered(stale)
    }
    // A part says nothing of the whole.
    if (read.method === 'GET' && read.fields['range'] === undefined) passes.note(read.key, clock.monotonic())
    return answered(answers.own(landing, read, need.reason, moment()))
  }

  return (landing, wait) => {
    const { read, need, leads } = wait
    switch (landing.kind) {
      case 'shared':
        if (!leads) return forWaiter(landing.stored, wait)
        passes.forget(read.key)
        return answered(answers.led(landing, read, need.reason, moment()))
      case 'own':
        if (!leads) return again(true)
        return ofOwn(landing, wait)
      case 'overflowed':
        return again(true)
      case 'broken':
        return ofBroken(landing.error, wait)
      case 'server-error':
        return ofServerError(landing.stored, wait)
      case 'failed':
        return ofFailure(landing.error, wait)
    }
  }
}
