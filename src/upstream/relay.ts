import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../errors.ts'
import type { FieldLines } from '../http/fields.ts'
import { endToEndFields } from '../http/hop-by-hop.ts'
import { askForRetry } from './ask-for-retry.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import { AttemptAccount, isGatewayStatus } from './attempt-account.ts'
import type { Ticket } from './breaker.ts'
import type { RequestResult } from './breaker-state.ts'
import { type AttemptFailure, isIdempotent, type RetryDecision } from './decide-retry.ts'
import type { AttemptOutcome } from './events.ts'
import { failureKind, leftAlone, neverSent, toGatewayError } from './failure.ts'
import { Place } from './place.ts'
import type { RelayOptions, RelayRoom } from './relay-room.ts'
import { failedByContent, isReplayable } from './request-content.ts'
import { answerFields, fieldObject, fieldTexts, hasNoContent, retryAfterMs } from './response-fields.ts'
import type { Target } from './targets.ts'
import { unfitAnswer } from './unfit-answer.ts'

const noFields = {}

/** One request on its way through this room: waits for a slot, is tried, perhaps tried again, and answers its handler once. */
export class Relay implements Dispatcher.DispatchController, AttemptListener {
  readonly #room: RelayRoom
  readonly #request: RelayOptions
  readonly #handler: Dispatcher.DispatchHandler
  readonly #tried = new Set<Target>()
  readonly #startedMs: number
  readonly #place: Place
  #attempts = 0
  #attempt: Attempt | undefined
  #account: AttemptAccount | undefined
  #ticket: Ticket | undefined
  #everSent = false
  #waiting: NodeJS.Timeout | undefined
  #total: NodeJS.Timeout | undefined
  #answering = false
  /** The head was all there is to the answer. */
  #complete = false
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
    this.#place = new Place(room, request.flow ?? '')
  }

  /** Starts; the handler may abort from its first call on, also while the request still waits. */
  begin(refusal: GatewayError | undefined): void {
    this.#room.relays.add(this)
    this.#handler.onRequestStart?.(this, {})
    if (refusal !== undefined) this.#fail(refusal, 'aborted')
    if (this.#done) return
    const { client } = this.#request
    if (client?.aborted === true) {
      this.#clientGone()
      return
    }
    client?.addEventListener('abort', this.#clientGone)
    this.#request.withdraw?.addEventListener('abort', this.#withdrawn)
    const waitMs = this.#room.breaker.refusal(this.#startedMs)
    if (waitMs !== undefined) {
      this.#fail(leftAlone(waitMs), 'aborted')
      return
    }
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
    const fields = fieldTexts(rawFields)
    const unfit = unfitAnswer(this.#request, status, fields)
    if (unfit !== undefined) {
      this.#refuse(unfit)
      return
    }
    this.#account?.head(status)
    const isFailure = isGatewayStatus(status)
    if (isFailure && this.#triesAgainInsteadOf(fields)) return
    this.#settle(isFailure ? 'failed' : 'answered')
    this.#answering = true
    this.#complete = hasNoContent(this.#request.method, status)
    this.rawHeaders = answerFields(status, fields)
    const object = this.#request.readsLines === true ? noFields : fieldObject(this.rawHeaders)
    this.#handler.onResponseStart?.(this, status, object, statusText)
  }

  upgraded(status: number, fields: object, socket: Duplex): void {
    this.#account?.head(status)
    this.#settle('answered')
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
    // A length that a 204 must not have makes undici wait for content.
    if (this.#complete) {
      this.end()
      return
    }
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

  readonly #clientGone = (): void => {
    this.abort(new GatewayError('client_gone', { cause: this.#request.client?.reason }))
  }

  /** A try that is under way, or has been, may have had an effect. */
  readonly #withdrawn = (): void => {
    if (this.#attempt === undefined && !this.#everSent) this.#clientGone()
  }

  #enqueue(): void {
    this.#place.ask(
      () => this.#tryOnce(),
      () => this.#fail(new GatewayError('upstream_busy', { retryAfterSeconds: 1 }), 'aborted'),
    )
  }

  /** A retry is not asked again: the budget bounds it, and its first attempt was let through. */
  #isAdmitted(): boolean {
    if (this.#ticket !== undefined) return true
    const entry = this.#room.breaker.enter(this.#room.clock.monotonic())
    if (typeof entry === 'number') {
      this.#fail(leftAlone(entry), 'aborted')
      return false
    }
    this.#ticket = entry
    return true
  }

  #settle(result: RequestResult): void {
    if (this.#ticket === undefined) return
    this.#room.breaker.settle(this.#ticket, result, this.#room.clock.monotonic())
    this.#ticket = undefined
  }

  #tryOnce(): void {
    if (!this.#isAdmitted()) return
    const { targets, clock, options } = this.#room
    const { body, method } = this.#request
    const mayTry = isIdempotent(method) && isReplayable(body, false) && options.retry.attempts > 1
    const choice = targets.choose(clock.monotonic(), this.#tried, mayTry)
    this.#tried.add(choice.target)
    this.#attempts += 1
    this.#account = new AttemptAccount(this.#room, choice, this.#attempts, this.#request.attempted)
    this.#attempt = new Attempt(body, options.timeouts, this)
    choice.target.pool.dispatch(this.#request, this.#attempt)
  }

  /** The connection cannot be trusted with another answer. */
  #refuse(detail: string): void {
    const error = new GatewayError('upstream_broken', { detail: `It sent ${detail}.` })
    this.#attempt?.stop(error, () => {})
    this.failed(error)
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
    return askForRetry(this.#room, {
      failure,
      method: this.#request.method,
      content: this.#request.body,
      sent: this.#attempt?.sent ?? false,
      attempts: this.#attempts,
      startedMs: this.#startedMs,
      tried: this.#tried,
      account: this.#account,
    })
  }

  /** Waits without a slot, then queues like a new request: a retry has no right of way. */
  #again(waitMs: number): void {
    this.#everSent ||= this.#attempt?.sent === true
    this.#attempt = undefined
    this.#place.take()()
    this.#waiting = setTimeout(() => this.#enqueue(), waitMs)
  }

  #expire(): void {
    this.#fail(new GatewayError('upstream_timeout', { detail: 'total time used up' }), 'timeout')
  }

  #fail(error: Error, outcome: AttemptOutcome): void {
    if (this.#done) return
    const release = this.#place.take()
    const told = this.#everSent || this.#attempt?.sent === true ? error : neverSent(error)
    this.#settle(outcome === 'aborted' ? 'unknown' : 'failed')
    this.#finish(outcome)
    if (this.#attempt === undefined) release()
    else this.#attempt.stop(error, release)
    this.#handler.onResponseError?.(this, told)
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#total)
    clearTimeout(this.#waiting)
    this.#request.client?.removeEventListener('abort', this.#clientGone)
    this.#request.withdraw?.removeEventListener('abort', this.#withdrawn)
    this.#place.leave()
    this.#account?.close(outcome)
    this.#place.take()()
    this.#room.relays.delete(this)
    this.#room.ended()
  }
}
