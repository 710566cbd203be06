import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import type { FieldLines } from '../http/fields.ts'
import { endToEndFields } from '../http/hop-by-hop.ts'
import type { Interim } from '../http/message.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import { type AccountRoom, AttemptAccount, isGatewayStatus } from './attempt-account.ts'
import { type AttemptFailure, decideRetry, isIdempotent, type RetryDecision } from './decide-retry.ts'
import type { AttemptOutcome, QueueOutcome } from './events.ts'
import { failureKind, toGatewayError } from './failure.ts'
import type { UpstreamOptions } from './options.ts'
import { failedByContent, isReplayable } from './request-content.ts'
import { fieldObject, fieldTexts, retryAfterMs } from './response-fields.ts'
import type { RetryBudget } from './retry-budget.ts'
import type { Slots } from './slots.ts'
import type { Target } from './targets.ts'

/** What every relay of one upstream shares. */
export type RelayRoom = AccountRoom & {
  readonly options: UpstreamOptions
  readonly random: () => number
  readonly slots: Slots
  readonly budget: RetryBudget
  readonly relays: Set<Relay>
  /** Called after a relay has left `relays`. */
  readonly ended: () => void
}

/** A request for the dispatcher; requests of one `flow` wait in one line, and lines are served in turn. */
export type RelayOptions = Dispatcher.DispatchOptions & {
  readonly flow?: string
  readonly interim?: Interim | undefined
}

/** One request on its way through this room: waits for a slot, is tried, perhaps tried again, and answers its handler once. */
export class Relay implements Dispatcher.DispatchController, AttemptListener {
  readonly #room: RelayRoom
  readonly #request: RelayOptions
  readonly #handler: Dispatcher.DispatchHandler
  readonly #tried = new Set<Target>()
  readonly #startedMs: number
  #attempts = 0
  #attempt: Attempt | undefined
  #account: AttemptAccount | undefined
  #leaveQueue: (() => void) | undefined
  #waiting: NodeJS.Timeout | undefined
  #total: NodeJS.Timeout | undefined
  #holdsSlot = false
  #answering = false
  #done = false
  aborted = false
  paused = false
  reason: Error | null = null
  /** End-to-end fields of the response in their order: name, value, name, value … */
  rawHeaders: string[] | null = null

  constructor(room: RelayRoom, request: RelayOptions, handler: Dispatcher.DispatchHandler) {
    this.#room = room
    this.#request = request
    this.#handler = handler
    this.#startedMs = room.clock.monotonic()
  }

  /** Starts; the handler may abort from its first call on, also while the request still waits. */
  begin(refusal: GatewayError | undefined): void {
    this.#room.relays.add(this)
    this.#handler.onRequestStart?.(this, {})
    if (refusal !== undefined) this.#fail(refusal, 'aborted')
    if (this.#done) return
    const { totalMs } = this.#room.options.timeouts
    if (totalMs > 0) this.#total = setTimeout(() => this.#expire(), totalMs)
    this.#room.budget.requested(this.#startedMs)
    this.#enqueue()
  }

  abort(reason: Error): void {
    if (this.#done) return
    this.aborted = true
    this.reason = reason
    this.#fail(reason, 'aborted')
  }

  pause(): void {
    this.paused = true
    this.#attempt?.pause()
  }

  resume(): void {
    this.paused = false
    this.#attempt?.resume()
  }

  interim(status: number, rawFields: readonly (Buffer | string)[]): void {
    this.#request.interim?.({ status, fields: endToEndFields(fieldTexts(rawFields)) })
  }

  head(status: number, rawFields: readonly (Buffer | string)[], statusText: string | undefined): void {
    this.#account?.head(status)
    const fields = fieldTexts(rawFields)
    if (isGatewayStatus(status) && this.#triesAgainInsteadOf(fields)) return
    this.#answering = true
    this.rawHeaders = endToEndFields(fields)
    this.#handler.onResponseStart?.(this, status, fieldObject(this.rawHeaders), statusText)
  }

  upgraded(status: number, fields: object, socket: Duplex): void {
    this.#account?.head(status)
    clearTimeout(this.#total)
    socket.once('close', () => this.#finish('answered'))
    this.#handler.onRequestUpgrade?.(this, status, { ...fields }, socket)
  }

  data(chunk: Buffer): void {
    this.#handler.onResponseData?.(this, chunk)
  }

  end(): void {
    this.#finish('answered')
    // Trailers end here: merged into the head they could change what it says (RFC 9110 §6.5.1).
    this.#handler.onResponseEnd?.(this, {})
  }

  failed(error: Error): void {
    const named = failedByContent(this.#request.body, error)
      ? new GatewayError('client_gone', { cause: error })
      : toGatewayError(error)
    const kind = failureKind(named, this.#attempt?.sent ?? false)
    if (kind === 'aborted' || this.#answering) {
      this.#fail(named, kind)
      return
    }
    const decision = this.#decide({ kind })
    this.#account?.close(kind)
    if (decision.kind === 'retry') this.#again(decision.waitMs)
    else this.#fail(named, kind)
  }

  #enqueue(): void {
    const { slots, clock } = this.#room
    const since = clock.monotonic()
    const granted = () => {
      this.#leaveQueue = undefined
      this.#holdsSlot = true
      this.#reportWait('sent', since)
      this.#tryOnce()
    }
    const leave = slots.acquire(this.#request.flow ?? '', granted, (why) => {
      this.#leaveQueue = undefined
      this.#reportWait(why, since)
      this.#fail(new GatewayError('upstream_busy', { retryAfterSeconds: 1 }), 'aborted')
    })
    if (this.#holdsSlot || this.#done) return
    this.#leaveQueue = () => {
      leave()
      this.#reportWait('aborted', since)
    }
  }

  #tryOnce(): void {
    const { targets, clock, options } = this.#room
    const { body, method } = this.#request
    const mayTry = isIdempotent(method) && isReplayable(body, false) && options.retry.attempts > 1
    const choice = targets.choose(clock.monotonic(), this.#tried, mayTry)
    this.#tried.add(choice.target)
    this.#attempts += 1
    this.#account = new AttemptAccount(this.#room, choice, this.#attempts)
    this.#attempt = new Attempt(body, options.timeouts, this)
    choice.target.pool.dispatch(this.#request, this.#attempt)
  }

  /** An answer like 503 may be worth another try; then its content is not wanted, and its connection is closed. */
  #triesAgainInsteadOf(fields: FieldLines): boolean {
    const decision = this.#decide({
      kind: 'status',
      retryAfterMs: retryAfterMs(fields, this.#room.clock.now()),
    })
    if (decision.kind === 'give-up') return false
    this.#attempt?.stop(
      new GatewayError('upstream_broken', { detail: 'answer discarded for a retry' }),
      () => {},
    )
    this.#account?.close('discarded')
    this.#again(decision.waitMs)
    return true
  }

  #decide(failure: AttemptFailure): RetryDecision {
    const { options, clock, targets, budget, report } = this.#room
    const now = clock.monotonic()
    const sent = this.#attempt?.sent ?? false
    const { totalMs } = options.timeouts
    const decision = decideRetry({
      failure,
      method: this.#request.method,
      sent,
      replayable: isReplayable(this.#request.body, sent),
      attemptsMade: this.#attempts,
      attemptsAllowed: options.retry.attempts,
      otherTarget: targets.hasOther(now, this.#tried),
      remainingMs: totalMs > 0 ? this.#startedMs + totalMs - now : Number.POSITIVE_INFINITY,
      random: this.#room.random(),
    })
    const target = this.#account?.choice.target.origin ?? ''
    if (decision.kind === 'retry' && budget.take(now)) {
      report({ kind: 'retried', service: options.service, target, reason: decision.reason })
      return decision
    }
    const reason = decision.kind === 'retry' ? 'budget' : decision.reason
    report({ kind: 'gave-up', service: options.service, target, reason })
    return { kind: 'give-up', reason }
  }

  /** Waits without a slot, then queues like a new request: a retry has no right of way. */
  #again(waitMs: number): void {
    this.#attempt = undefined
    this.#takeSlot()()
    this.#waiting = setTimeout(() => this.#enqueue(), waitMs)
  }

  #expire(): void {
    this.#fail(new GatewayError('upstream_timeout', { detail: 'total time used up' }), 'timeout')
  }

  #fail(error: Error, outcome: AttemptOutcome): void {
    if (this.#done) return
    const release = this.#takeSlot()
    this.#finish(outcome)
    if (this.#attempt === undefined) release()
    else this.#attempt.stop(error, release)
    this.#handler.onResponseError?.(this, error)
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#total)
    clearTimeout(this.#waiting)
    this.#leaveQueue?.()
    this.#account?.close(outcome)
    this.#takeSlot()()
    this.#room.relays.delete(this)
    this.#room.ended()
  }

  /** Whoever has the function has the slot. */
  #takeSlot(): () => void {
    if (!this.#holdsSlot) return () => {}
    this.#holdsSlot = false
    return () => this.#room.slots.release()
  }

  #reportWait(outcome: QueueOutcome, sinceMs: number): void {
    const { options, clock, report } = this.#room
    const waitedSeconds = (clock.monotonic() - sinceMs) / 1000
    report({ kind: 'slot-wait-finished', service: options.service, outcome, waitedSeconds })
  }
}
