import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { parseHttpDate } from '../../http/conditional/dates.ts'
import { type FieldLines, fieldValue, withoutFields } from '../../http/fields.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import { hasNoContent } from '../../http/message.ts'
import type { AttemptOutcome, ClientWait, QueueOutcome } from '../events.ts'
import { failureKind, leftAlone, neverSent, neverWhole, toGatewayError } from '../failure.ts'
import { contentFailure, failedByContent, isReplayable } from '../request-content.ts'
import type { RequestResult, Ticket } from '../targets/breaker.ts'
import type { Target } from '../targets/targets.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import { AttemptAccount, isGatewayStatus } from './attempt-account.ts'
import type { PacedRequest } from './client-pace.ts'
import type { Abortable } from './in-flight.ts'
import { Place } from './queue-slot.ts'
import { type Receiver, unfitAnswer } from './receive.ts'
import { type AttemptFailure, askForRetry, isIdempotent, type RetryDecision } from './retry.ts'
import type { RelayOptions, RelayRoom } from './upstream-context.ts'

const contentLength: ReadonlySet<string> = new Set(['content-length'])

/** What goes on to the client: end-to-end fields, and no length where there must be none (RFC 9110 §8.6). */
const answerFields = (status: number, fields: FieldLines): string[] => {
  const kept = endToEndFields(fields)
  return status === 204 ? withoutFields(kept, contentLength) : kept
}

/** Field lines as text; field values are octets, kept one to one (RFC 9110 §5.5). */
const fieldTexts = (raw: readonly (Buffer | string)[]): string[] =>
  raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))

/** Retry-After in milliseconds from `nowMs` (epoch): a number of seconds or a date (RFC 9110 §10.2.3); undefined when absent or neither. */
const retryAfterMs = (lines: FieldLines, nowMs: number): number | undefined => {
  const value = fieldValue(lines, 'retry-after')?.trim()
  if (value === undefined || value.length > 40) return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = parseHttpDate(value, nowMs)
  return date === undefined ? undefined : Math.max(0, date - nowMs)
}

type Signals = Pick<RelayOptions, 'client' | 'withdraw'>

/** Who asked for a request, and may lose interest: the client that goes, or a batch that takes back what still waits. */
class Asker {
  readonly #signals: Signals
  readonly #gone: () => void
  readonly #withdrawn: () => void

  /** `gone`: nobody waits for the answer. `withdrawn`: it is not wanted unless it was sent already. */
  constructor(signals: Signals, gone: () => void, withdrawn: () => void) {
    this.#signals = signals
    this.#gone = gone
    this.#withdrawn = withdrawn
  }

  /** From now on who goes is heard, and at once who has gone already. */
  listen(): void {
    const { client, withdraw } = this.#signals
    if (client?.aborted === true) {
      this.#gone()
      return
    }
    client?.addEventListener('abort', this.#gone)
    withdraw?.addEventListener('abort', this.#withdrawn)
  }

  /** Leaves no listener behind: a client's signal outlives many requests. */
  leave(): void {
    this.#signals.client?.removeEventListener('abort', this.#gone)
    this.#signals.withdraw?.removeEventListener('abort', this.#withdrawn)
  }

  /** Why the client went. */
  get reason(): unknown {
    return this.#signals.client?.reason
  }
}

/** One request's way past the breaker: let through once, and what came of it told once. */
class BreakerPass {
  readonly #room: Pick<RelayRoom, 'breaker' | 'clock'>
  #ticket: Ticket | undefined

  constructor(room: Pick<RelayRoom, 'breaker' | 'clock'>) {
    this.#room = room
  }

  /**
   * Milliseconds for which the upstream is left alone; undefined when the request may go. A retry is not asked again: the
   * budget bounds it, and its first attempt was let through.
   */
  enter(): number | undefined {
    if (this.#ticket !== undefined) return undefined
    const entry = this.#room.breaker.enter(this.#room.clock.monotonic())
    if (typeof entry === 'number') return entry
    this.#ticket = entry
    return undefined
  }

  /** Only the first call counts. */
  settle(result: RequestResult): void {
    if (this.#ticket === undefined) return
    this.#room.breaker.settle(this.#ticket, result, this.#room.clock.monotonic())
    this.#ticket = undefined
  }
}

/** A content that is not whole after this time is late because of its client, unless the upstream does not take it. */
const slowUploadMs = 1_000

const busyDetails: Partial<Record<QueueOutcome, string>> = {
  'client-share': 'This client has too many requests in flight or waiting.',
  'arriving-share': 'Too many requests with incomplete bodies are waiting.',
}

const busy = (why: QueueOutcome): GatewayError =>
  new GatewayError('upstream_busy', { detail: busyDetails[why], retryAfterSeconds: 1 })

/** One request on its way through this room: waits for a slot, is tried, perhaps tried again, and answers its receiver once. */
export class Relay implements Abortable, AttemptListener, PacedRequest {
  readonly #room: RelayRoom
  readonly #request: RelayOptions
  readonly #receiver: Receiver
  readonly #tried: Target[] = []
  readonly #startedMs: number
  readonly #place: Place
  readonly #pass: BreakerPass
  readonly #asker: Asker
  #attempts = 0
  #triedMs = 0
  #attempt: Attempt | undefined
  #account: AttemptAccount | undefined
  #everSent = false
  #waiting: NodeJS.Timeout | undefined
  #total: NodeJS.Timeout | undefined
  #answering = false
  /** The head was all there is to the answer. */
  #complete = false
  #done = false
  place = -1

  constructor(room: RelayRoom, request: RelayOptions, receiver: Receiver) {
    this.#room = room
    this.#request = request
    this.#receiver = receiver
    this.#startedMs = room.clock.monotonic()
    const { clientAddress: client, line, body } = request
    const arriving = body instanceof Readable && !body.readableEnded
    this.#place = new Place(room, { client, line, arriving })
    this.#pass = new BreakerPass(room)
    this.#asker = new Asker(request, this.#clientGone, this.#withdrawn)
  }

  /** Starts; the receiver may abort from its first call on, also while the request still waits. */
  begin(refusal: GatewayError | undefined): void {
    this.#room.relays.enter(this)
    this.#receiver.begun(this)
    if (refusal !== undefined) this.#fail(refusal, 'aborted')
    if (this.#done) return
    this.#asker.listen()
    this.#leaveAlone(this.#room.breaker.refusal(this.#startedMs))
    if (this.#done) return
    const { totalMs } = this.#room.options.timeouts
    if (totalMs > 0) this.#total = setTimeout(() => this.#expire(), totalMs)
    this.#room.budget.requested(this.#startedMs)
    this.#enqueue()
  }

  abort(reason: Error): void {
    this.#fail(reason, 'aborted')
  }

  pause(): void {
    this.#attempt?.pause()
  }

  resume(): void {
    this.#attempt?.resume()
  }

  get waitsForClient(): ClientWait | undefined {
    return this.#attempt?.waitsForClient
  }

  get movedBytes(): number {
    return this.#attempt?.movedBytes ?? 0
  }

  /** A body that did not arrive is a request that did not arrive (RFC 9110 §15.5.9); an answer that nobody reads is cut. */
  endForSlowClient(wait: ClientWait): void {
    this.#room.report({ kind: 'slow-client-ended', service: this.#room.options.service, wait })
    const code = wait === 'request-body' ? 'request_timeout' : 'client_gone'
    this.#fail(new GatewayError(code, { detail: 'The client was too slow.' }), 'aborted')
  }

  interim(status: number, rawFields: readonly (Buffer | string)[]): void {
    this.#request.interim?.({ status, fields: endToEndFields(fieldTexts(rawFields)) })
  }

  head(status: number, rawFields: readonly (Buffer | string)[]): void {
    const fields = fieldTexts(rawFields)
    const unfit = unfitAnswer(this.#request, status, fields)
    if (unfit !== undefined) {
      this.#refuse(unfit)
      return
    }
    // What an upstream says of a request that its client does not complete is no failure of the upstream.
    const isFailure = isGatewayStatus(status) && !this.#isHeldUpByClient()
    this.#account?.head(status, isFailure)
    if (isFailure && this.#triesAgainInsteadOf(fields)) return
    this.#pass.settle(isFailure ? 'failed' : 'answered')
    this.#answering = true
    this.#complete = hasNoContent(this.#request.method, status)
    this.#receiver.head(status, answerFields(status, fields))
  }

  data(chunk: Buffer): void {
    this.#receiver.data(chunk)
  }

  contentSent(): void {
    this.#place.contentArrived()
  }

  end(): void {
    this.#finish('answered')
    // Trailers end here: merged into the head they could change what it says (RFC 9110 §6.5.1).
    this.#receiver.end()
  }

  failed(error: Error): void {
    // A length that a 204 must not have makes undici wait for content.
    if (this.#complete) {
      this.end()
      return
    }
    const named = failedByContent(this.#request.body, error) ? contentFailure(error) : toGatewayError(error)
    // An upstream may give up a request that its client does not complete.
    const kind = this.#isHeldUpByClient() ? 'aborted' : failureKind(named, this.#attempt?.sent ?? false)
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
    this.abort(new GatewayError('client_gone', { cause: this.#asker.reason }))
  }

  /** A try that is under way, or has been, may have had an effect. */
  readonly #withdrawn = (): void => {
    if (this.#attempt === undefined && !this.#everSent) this.#clientGone()
  }

  #enqueue(): void {
    this.#place.ask(
      () => this.#tryOnce(),
      (why) => this.#fail(busy(why), 'aborted'),
    )
  }

  #leaveAlone(waitMs: number | undefined): void {
    if (waitMs !== undefined) this.#fail(leftAlone(waitMs), 'aborted')
  }

  #tryOnce(): void {
    this.#leaveAlone(this.#pass.enter())
    if (this.#done) return
    const { targets, clock, options } = this.#room
    const { body, method } = this.#request
    const mayTry = isIdempotent(method) && isReplayable(body, false) && options.retry.attempts > 1
    const choice = targets.choose(clock.monotonic(), this.#tried, mayTry)
    this.#tried.push(choice.target)
    this.#attempts += 1
    this.#triedMs = clock.monotonic()
    this.#account = new AttemptAccount(this.#room, choice, this.#attempts, this.#request.attempted)
    this.#attempt = new Attempt(this.#request, options.timeouts, this, (goOn) =>
      this.#room.longResponses.begin(this.#request.clientAddress, goOn),
    )
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
      new GatewayError('upstream_broken', { detail: 'response discarded for a retry' }),
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
    const timeout = new GatewayError('upstream_timeout', { detail: 'The total timeout is over.' })
    // A slow upload may be the client's fault; `timeouts.idle` finds an upstream that reads none of it.
    if (this.#attempt?.isUploading !== true) this.#fail(timeout, 'timeout')
    else this.#fail(this.#attempt.awaitsBody ? new GatewayError('request_timeout') : timeout, 'aborted')
  }

  #fail(error: Error, outcome: AttemptOutcome): void {
    if (this.#done) return
    const release = this.#place.take()
    const told = this.#asTold(error)
    this.#pass.settle(outcome === 'aborted' ? 'unknown' : 'failed')
    this.#finish(outcome)
    if (this.#attempt === undefined) release()
    else this.#attempt.stop(error, release)
    this.#receiver.failed(told)
  }

  /** For so long that the upstream may have given the request up. */
  #isHeldUpByClient(): boolean {
    return this.#attempt?.awaitsBody === true && this.#room.clock.monotonic() - this.#triedMs >= slowUploadMs
  }

  #asTold(error: Error): Error {
    if (this.#attempt?.isUploading === true) return neverWhole(error)
    return this.#everSent || this.#attempt?.sent === true ? error : neverSent(error)
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#total)
    clearTimeout(this.#waiting)
    this.#asker.leave()
    this.#place.leave()
    this.#account?.close(outcome)
    this.#place.take()()
    this.#room.relays.leave(this)
    this.#room.ended()
  }
}
