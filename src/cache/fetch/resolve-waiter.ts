import type { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import { otherCredential } from '../../http/credential-fields.ts'
import { discard } from '../../http/message.ts'
import { varyKey } from '../../http/vary.ts'
import type { CacheRead } from '../cache-read.ts'
import { type CacheAnswer, takesWhole } from '../conditional-response.ts'
import type { CacheEvent } from '../events.ts'
import { currentAgeMs, type Moment } from '../policy/freshness.ts'
import { mayServeOnError, type Reuse } from '../policy/reuse.ts'
import { isOfRequest, isServerError } from '../policy/storability.ts'
import type { Answers } from '../respond/answers.ts'
import { overtaken } from '../store/store-if-current.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { TagLog } from '../store/tag-log.ts'
import type { Flight, Flights } from './collapse.ts'
import type { Landing } from './fetch-outcome.ts'
import type { PassMemo } from './hit-for-pass.ts'

/** Why a reader's answer has to be fetched, and what could be validated or served on error. */
export type Need = Extract<Reuse, { kind: 'fetch' }>

/** What a waiter makes of a landing: its answer, or another try, beside the others or alone. */
export type Verdict =
  | { readonly kind: 'answer'; readonly answer: CacheAnswer }
  /** `afterFailure`: because another reader's fetch failed, for which there is one more try. */
  | { readonly kind: 'again'; readonly alone: boolean; readonly afterFailure: boolean }

type Failure = 'unreachable' | 'server-error'

/** One reader's wait for one forward; `since` is the number of the last invalidation when it began. */
export type Wait = {
  readonly read: CacheRead
  readonly need: Need
  readonly since: number
  readonly flight: Flight
  readonly leads: boolean
  /** Has a fetch of another reader failed already that this one waited for? */
  readonly retried: boolean
}

/** The reader's answer. */
const answered = (answer: CacheAnswer): Verdict => ({ kind: 'answer', answer })

/** Another try. */
const again = (alone: boolean): Verdict => ({ kind: 'again', alone, afterFailure: false })

/** One more try, together with all others whose fetch failed: the first of them leads it. */
const oneMoreTry: Verdict = { kind: 'again', alone: false, afterFailure: true }

/** Is the upstream sent the same for both? */
const asksTheSame = (one: CacheRead, other: CacheRead): boolean => {
  if (one === other || one.fields === other.fields) return true
  const names = Object.keys(one.fields)
  const others = Object.keys(other.fields)
  if (names.length !== others.length) return false
  return varyKey(names, one) === varyKey(names, other) && varyKey(others, one) === varyKey(others, other)
}

/** The fields that say which caller sent a request, as one text. */
const callerOf = ({ fields }: CacheRead): string =>
  JSON.stringify([
    fields['authorization'] ?? null,
    fields['cookie'] ?? null,
    otherCredential(fields, []) ?? null,
  ])

/** May it be the request of the one who led that made the fetch fail? An upstream that cannot be asked at all fails for everybody. */
const mayBeOfRequest: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_broken',
  'upstream_timeout',
  'internal',
])

/** One who did not ask for it itself gets only what is fresh. */
const mayShare = (stored: StoredResponse, at: Moment): boolean =>
  !stored.validateAlways && stored.lifetimeMs > currentAgeMs(stored.initialAgeMs, stored.received, at)

/** A landing that is over. */
type Landed = Exclude<Landing, { kind: 'filling' }>

type JudgeOptions = {
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

  /** A failure is shared at once by those who asked the same, and by all others when a request of theirs has failed as well. */
  const mayTryAgain = ({ leads, retried, flight, read }: Wait): boolean =>
    !leads && !retried && !asksTheSame(flight.read, read)

  const ofServerError = (stored: StoredResponse, wait: Wait): Verdict => {
    const { read, need, leads, flight } = wait
    const stale = onError(read, need, 'server-error')
    if (stale !== undefined) return answered(stale)
    if (mayTryAgain(wait)) return oneMoreTry
    const isSameCaller = callerOf(flight.read) === callerOf(read)
    const mine = leads || (isSameCaller && varyKey(stored.varyNames, read) === stored.varyKey)
    return mine ? answered(answers.serverError(stored, read, need.reason, !leads, moment())) : again(true)
  }

  const ofFailure = (error: unknown, wait: Wait): Verdict => {
    const stale = onError(wait.read, wait.need, 'unreachable')
    if (stale !== undefined) return answered(stale)
    if (error instanceof GatewayError && error.code === 'upstream_busy' && !wait.leads && !wait.retried) {
      // The client of the one that led may have had its share of the slots: that says nothing of other clients.
      return oneMoreTry
    }
    const isPerhapsOfRequest = !(error instanceof GatewayError) || mayBeOfRequest.has(error.code)
    if (isPerhapsOfRequest && mayTryAgain(wait)) return oneMoreTry
    throw error
  }

  /** Others have got the beginning of it; who has not tries for a whole one. */
  const ofBroken = (error: unknown, wait: Wait): Verdict => {
    const stale = onError(wait.read, wait.need, 'unreachable')
    if (stale !== undefined) return answered(stale)
    if (wait.leads || wait.retried) throw error
    return oneMoreTry
  }

  const ofOwn = (landing: Extract<Landing, { kind: 'own' }>, { read, need }: Wait): Verdict => {
    const stale = isServerError(landing.response) ? onError(read, need, 'server-error') : undefined
    if (stale !== undefined) {
      discard(landing.response.content)
      return answered(stale)
    }
    // A part says nothing of the whole, and a refusal of this request nothing of others.
    const saysOfKey = read.method === 'GET' && read.fields['range'] === undefined
    if (saysOfKey && !isOfRequest(landing.response)) passes.note(read.key, clock.monotonic())
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
        if (!leads) return again(!isOfRequest(landing.response))
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

type ConcludeOptions = {
  readonly flights: Flights
  readonly answers: Answers
  readonly passes: PassMemo
  readonly judge: (landing: Landed, wait: Wait) => Verdict
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
}

type Filling = Extract<Landing, { kind: 'filling' }>

/** How a reader takes part in a fill. */
type Part = 'not' | 'alone' | 'follow' | 'wait'

/**
 * Bytes as they come are for a reader who wants all of them and nothing else: preconditions and ranges are met by a
 * complete content, and so is who came after a write, since what is in it tells whether it shows the state before; and
 * who has something stale to fall back on waits whether it is needed.
 */
const partIn = ({ sketch, fill }: Filling, wait: Wait, at: Moment): Part => {
  const { read, need, leads, since, flight } = wait
  if (fill.overflowed) return 'alone'
  if (!leads && varyKey(sketch.varyNames, read) !== sketch.varyKey) return 'not'
  if (!leads && !mayShare(sketch, at)) return 'alone'
  const { stored } = need
  const fallsBack = stored !== undefined && mayServeOnError(stored, 'unreachable', read.policy.profile, at)
  return takesWhole(read) && !fallsBack && (leads || since === flight.began) ? 'follow' : 'wait'
}

/** Makes the function that tells what one reader gets of a forward that has landed. */
export const createConclude = (
  options: ConcludeOptions,
): ((landing: Landing, wait: Wait) => Verdict | Promise<Verdict>) => {
  const { flights, answers, passes, judge, clock, report } = options
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  /** Later readers need not wait to learn that it is too long to be shared. */
  const noteOverflow = ({ complete, fill }: Filling, { read }: Wait): void => {
    void complete.then(({ kind }) => {
      if (kind === 'overflowed' && !fill.crowded) passes.note(read.key, clock.monotonic())
    })
  }

  const follow = (landing: Filling, wait: Wait, at: Moment): Verdict => {
    const { read, need, leads, flight } = wait
    const content = landing.fill.reader().once('close', () => flights.leave(flight))
    if (leads) passes.forget(read.key)
    else report({ kind: 'collapsed', service: read.service })
    return answered(answers.streamed(landing, content, read, need.reason, !leads, at))
  }

  const waitForEnd = async (
    landing: Filling,
    wait: Wait,
    reserved: Readable | undefined,
  ): Promise<Verdict> => {
    const { read, need, flight } = wait
    const last = await flights.waitForEnd(flight, landing.complete, read.signal)
    if (last.kind === 'filling') throw new TypeError('a fill ended as another')
    if (last.kind !== 'overflowed' || reserved === undefined) {
      reserved?.destroy()
      return judge(last, wait)
    }
    // It asked for it: a second forward would bring the same.
    const { fill, sketch, ownFields, upstreamStatus } = landing
    const fields = [...sketch.fields, ...ownFields]
    const response = { status: sketch.status, fields, content: reserved } as const
    return answered(
      answers.own(
        { kind: 'own', response, upstreamStatus, reason: fill.crowded ? 'no-room' : 'too-large' },
        read,
        need.reason,
        moment(),
      ),
    )
  }

  const takePart = async (landing: Filling, wait: Wait): Promise<Verdict> => {
    const at = moment()
    if (wait.leads) noteOverflow(landing, wait)
    const part = partIn(landing, wait, at)
    if (part === 'follow') return follow(landing, wait, at)
    if (part !== 'wait') {
      flights.leave(wait.flight)
      return again(part === 'alone')
    }
    const reserved = wait.leads ? landing.fill.reader() : undefined
    try {
      return await waitForEnd(landing, wait, reserved)
    } catch (error) {
      reserved?.destroy()
      throw error
    }
  }

  return (landing, wait) => (landing.kind === 'filling' ? takePart(landing, wait) : judge(landing, wait))
}
