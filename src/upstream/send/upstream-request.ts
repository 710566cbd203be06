import { type Duplex, Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../../errors.ts'
import { endToEndHeaders } from '../../http/headers/forwardable-headers.ts'
import { type HeaderLines, headerValue } from '../../http/headers/header-lines.ts'
import { retryAfterMs } from '../../http/headers/retry-after.ts'
import { type GatewayResponse, hasNoContent, type ResponseHead } from '../../http/message.ts'
import { isRepeatable } from '../../http/methods.ts'
import type { AttemptOutcome, ClientWait } from '../events.ts'
import { failureKind, toGatewayError, upstreamBusy, upstreamSuspended } from '../failure.ts'
import { invalidResponse } from '../invalid-response.ts'
import {
  attemptError,
  type ForwardRequest,
  isGatewayStatus,
  isReplayable,
  ResponseContent,
  responseHead,
  withHost,
} from '../messages.ts'
import type { UpstreamOptions } from '../options.ts'
import type { Target, Targets } from '../targets/targets.ts'
import { Attempt, type AttemptDeps, type AttemptListener } from './attempt.ts'
import type { Breaker, RequestResult, Ticket } from './breaker.ts'
import { type AttemptFailure, decideRetry, type RetryDecision } from './decide-retry.ts'
import type { Abortable, RequestsInFlight } from './in-flight.ts'
import type { createRetryBudget } from './retry-budget.ts'
import { RequestSlot, type Slots } from './slots.ts'
import type { PacedRequest } from './slow-clients.ts'
import { TotalTimeout } from './total-timeout.ts'

export type UpstreamDeps = AttemptDeps & {
  readonly options: UpstreamOptions
  readonly targets: Targets
  readonly random: () => number
  readonly slots: Slots
  readonly budget: ReturnType<typeof createRetryBudget>
  readonly breaker: Breaker
  readonly inFlight: RequestsInFlight<UpstreamRequest>
}

/**
 * `queued` → `sending` → (`retrying` → `queued` → `sending`)* → `responding` → `done`. `sending`: an attempt is in flight, and has brought
 * no head that was accepted. `retrying`: waits without a slot. `responding`: the head has been accepted, and no retry follows.
 */
type State = 'queued' | 'sending' | 'retrying' | 'responding' | 'done'

/** One request to the upstream, with all its attempts. The response is a Buffer when it arrived in one piece, otherwise a stream. */
export class UpstreamRequest implements Abortable, AttemptListener, PacedRequest {
  readonly #deps: UpstreamDeps
  readonly #request: ForwardRequest
  readonly #dispatched: Dispatcher.DispatchOptions
  readonly #resolve: (response: GatewayResponse) => void
  readonly #reject: (error: GatewayError) => void
  readonly #tried: Target[] = []
  readonly #startedMs: number
  readonly #total: TotalTimeout
  readonly #slot: RequestSlot
  readonly #isRepeatable: boolean
  #state: State = 'queued'
  #ticket: Ticket | undefined
  #attempt: Attempt | undefined
  /** An earlier attempt may have sent a part of the request. */
  #everSent = false
  #retryTimer: NodeJS.Timeout | undefined
  /** The accepted head, until it is given to the caller. */
  #head: ResponseHead | undefined
  /** Content that arrived before the head was given to the caller. */
  #buffered: Buffer[] | undefined = []
  #content: ResponseContent | undefined
  #hasContent = true
  #isWhole = false
  index = -1

  constructor(
    deps: UpstreamDeps,
    request: ForwardRequest,
    resolve: (response: GatewayResponse) => void,
    reject: (error: GatewayError) => void,
  ) {
    this.#deps = deps
    this.#request = request
    this.#resolve = resolve
    this.#reject = reject
    this.#startedMs = deps.clock.monotonic()
    const { totalMs } = deps.options.timeouts
    this.#total = new TotalTimeout(totalMs, this.#startedMs, () => this.#expire())
    const { method, effect, target, host, headers, content, clientAddress = '', queue = '' } = request
    this.#isRepeatable = isRepeatable(method, effect)
    this.#dispatched = {
      path: target,
      method,
      headers: withHost(headers, host ?? deps.options.hostHeader) as string[],
      body: content ?? null,
      upgrade: request.upgrade === undefined ? null : 'websocket',
    }
    const arriving = content instanceof Readable && !content.readableEnded
    this.#slot = new RequestSlot(deps, { client: clientAddress, queue, arriving })
  }

  begin(refusal: GatewayError | undefined): void {
    const { inFlight, breaker, budget } = this.#deps
    inFlight.add(this)
    const { signal, withdraw } = this.#request
    if (refusal !== undefined) this.abort(refusal)
    else if (signal.aborted) this.handleEvent()
    else this.#refuseWhileOpen(breaker.refusal(this.#startedMs))
    if (this.#state === 'done') return
    signal.addEventListener('abort', this)
    withdraw?.addEventListener('abort', this)
    this.boundTotal(this.#startedMs)
    budget.requested(this.#startedMs)
    this.#enqueue()
  }

  /** Called every `pollIntervalMs`. */
  boundTotal(nowMs: number): void {
    if (this.#state !== 'responding' && this.#attempt?.isUploading !== true) this.#total.poll(nowMs)
  }

  abort(reason: Error): void {
    this.#fail(reason, 'aborted')
  }

  /** One of the two signals was aborted. Once an attempt has been made, the request may have had an effect: it is not withdrawn. */
  handleEvent(): void {
    const { signal } = this.#request
    const mayWithdraw = this.#attempt === undefined && !this.#everSent
    if (signal.aborted || mayWithdraw)
      this.abort(new GatewayError('client_gone', { cause: signal.reason as unknown }))
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

  /** An incomplete body is an incomplete request (RFC 9110 §15.5.9); a response that the client does not read is cut. */
  endForSlowClient(wait: ClientWait): void {
    this.#deps.report({ kind: 'slow-client-ended', service: this.#deps.options.service, wait })
    const code = wait === 'request-body' ? 'request_timeout' : 'client_gone'
    this.abort(new GatewayError(code, { detail: 'The client was too slow.' }))
  }

  #enqueue(): void {
    this.#state = 'queued'
    this.#slot.ask(
      () => this.#send(),
      (why) => this.abort(upstreamBusy(why)),
    )
  }

  /** Remaining milliseconds of an open breaker. It does not refuse retries, which the budget limits. */
  #enterBreaker(): number | undefined {
    if (this.#ticket !== undefined) return undefined
    const { breaker, clock } = this.#deps
    if (this.#request.isUncounted === true) return breaker.refusal(clock.monotonic())
    const entry = breaker.enter(clock.monotonic())
    if (typeof entry === 'number') return entry
    this.#ticket = entry
    return undefined
  }

  #refuseWhileOpen(waitMs: number | undefined): void {
    if (waitMs !== undefined) this.abort(upstreamSuspended(waitMs))
  }

  #send(): void {
    this.#refuseWhileOpen(this.#enterBreaker())
    if (this.#state === 'done') return
    this.#state = 'sending'
    const { targets, clock, options } = this.#deps
    const mayRetry = this.#isRepeatable && options.retry.attempts > 1
    const mayTry = mayRetry && isReplayable(this.#request.content, false)
    const choice = targets.choose(clock.monotonic(), this.#tried, mayTry)
    this.#tried.push(choice.target)
    this.#attempt = new Attempt(this.#deps, choice, this.#tried.length, this.#request, this)
    choice.target.pool.dispatch(this.#dispatched, this.#attempt)
  }

  interim(status: number, headers: HeaderLines): void {
    this.#request.interim?.({ status, headers: endToEndHeaders(headers) })
  }

  contentSent(): void {
    this.#slot.contentArrived()
    // How fast a request body moves is bounded by `timeouts.idle` and by the minimum rate.
    this.#total.restart(this.#deps.clock.monotonic())
  }

  head(status: number, headers: HeaderLines): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    if (this.#failsAsInvalid(status, headers)) return
    // The upstream is not at fault if it gives up a request that the client does not complete.
    const isFailure = isGatewayStatus(status) && !attempt.isBlockedByClient
    attempt.judge(status, isFailure)
    if (isFailure && this.#retriesInsteadOf(attempt, headers)) return
    this.#settleBreaker(isFailure ? 'failed' : 'answered')
    this.#state = 'responding'
    this.#total.stop()
    this.#hasContent = !hasNoContent(this.#request.method, status)
    this.#head = responseHead(status, headers)
    // One read of the socket often contains head and content; all its events come before this microtask.
    queueMicrotask(() => this.#response())
  }

  #failsAsInvalid(status: number, headers: HeaderLines): boolean {
    const invalid = invalidResponse(this.#request.headers, status, headers)
    if (invalid === undefined) return false
    const error = new GatewayError('upstream_broken', { detail: `It sent ${invalid}.` })
    // The connection cannot be trusted with another response.
    this.#attempt?.stop(error, () => {})
    this.failed(error)
    return true
  }

  upgraded(status: number, headers: HeaderLines, connection: Duplex): void {
    if (this.#failsAsInvalid(status, headers)) {
      connection.destroy()
      return
    }
    this.#attempt?.judge(status, false)
    this.#settleBreaker('answered')
    this.#recordTime()
    // An open WebSocket takes no slot: it may last for days.
    this.#finish('answered')
    this.#request.upgrade?.(connection)
    this.#resolve({ status, headers: endToEndHeaders(headers), content: undefined })
  }

  #response(): void {
    const head = this.#head
    const buffered = this.#buffered
    if (head === undefined || buffered === undefined) return
    this.#buffered = undefined
    this.#recordTime()
    const { status, headers, hints } = head
    const response = { status, headers, hints, content: this.#contentOf(buffered) }
    this.#resolve(this.#everSent ? { ...response, isRepeated: true } : response)
    this.#attempt?.awaitContent()
  }

  #recordTime(): void {
    const { record } = this.#request
    if (record !== undefined) record.upstreamMs += this.#deps.clock.monotonic() - this.#startedMs
  }

  #contentOf(buffered: Buffer[]): Buffer | Readable | undefined {
    if (!this.#hasContent) return undefined
    if (this.#isWhole) return buffered.length === 1 ? buffered[0] : Buffer.concat(buffered)
    const content = new ResponseContent(this)
    this.#content = content
    let takesMore = true
    for (const chunk of buffered) takesMore = content.push(chunk)
    if (!takesMore) this.#attempt?.pause()
    return content
  }

  data(chunk: Buffer): void {
    if (this.#buffered !== undefined) this.#buffered.push(chunk)
    else if (this.#content?.push(chunk) === false) this.#attempt?.pause()
  }

  /** Trailers end here: merged into the head they could change its meaning (RFC 9110 §6.5.1). */
  end(): void {
    this.#finish('answered')
    this.#isWhole = true
    if (this.#content === undefined) return
    this.#content.settled = true
    this.#content.push(null)
  }

  failed(error: Error): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    // A length that a 204 must not have makes undici wait for content.
    if (!this.#hasContent) {
      this.end()
      return
    }
    const named = attemptError(this.#request.content, error)
    // An upstream may give up a request that its client does not complete.
    const kind = attempt.isBlockedByClient ? 'aborted' : failureKind(named, attempt.sent)
    if (kind === 'aborted' || this.#state === 'responding') {
      this.#fail(named, kind)
      return
    }
    const decision = this.#decideRetry(attempt, { kind })
    attempt.close(kind)
    if (decision.kind === 'retry') this.#retry(attempt, decision.waitMs)
    else this.#fail(named, kind)
  }

  /** A response like 503 may be followed by a retry; its content is not read, and its connection is closed. */
  #retriesInsteadOf(attempt: Attempt, headers: HeaderLines): boolean {
    const waitMs = retryAfterMs(headerValue(headers, 'retry-after'), this.#deps.clock.now())
    const decision = this.#decideRetry(attempt, { kind: 'status', retryAfterMs: waitMs })
    if (decision.kind === 'give-up') return false
    attempt.stop(new GatewayError('upstream_broken', { detail: 'response discarded for a retry' }), () => {})
    attempt.close('discarded')
    this.#retry(attempt, decision.waitMs)
    return true
  }

  /** Decides, takes a retry out of the budget, and reports the decision. */
  #decideRetry(attempt: Attempt, failure: AttemptFailure): RetryDecision {
    const { options, clock, targets, budget, report, random } = this.#deps
    const now = clock.monotonic()
    const decision = decideRetry({
      failure,
      repeatable: this.#isRepeatable,
      sent: attempt.sent,
      replayable: isReplayable(this.#request.content, attempt.sent),
      attemptsMade: this.#tried.length,
      attemptsAllowed: options.retry.attempts,
      otherTarget: targets.hasOther(now, this.#tried),
      remainingMs: this.#total.leftMs(now),
      random: random(),
    })
    const facts = { service: options.service, target: attempt.choice.target.origin }
    // A target that accepts no connection gets no load from it, so the budget does not count a retry at another one.
    const isFree = failure.kind === 'unreachable' && targets.hasOther(now, this.#tried)
    if (decision.kind === 'retry' && (isFree || budget.take(now))) {
      report({ kind: 'retried', ...facts, reason: decision.reason })
      return decision
    }
    const reason = decision.kind === 'retry' ? 'budget' : decision.reason
    report({ kind: 'gave-up', ...facts, reason })
    return { kind: 'give-up', reason }
  }

  /** Waits without a slot, then queues like a new request: a retry has no priority. */
  #retry(attempt: Attempt, waitMs: number): void {
    this.#state = 'retrying'
    this.#everSent ||= attempt.sent
    this.#attempt = undefined
    this.#slot.take()()
    this.#retryTimer = setTimeout(() => this.#enqueue(), waitMs)
  }

  #expire(): void {
    if (this.#attempt?.isUploading === true) return
    this.#fail(new GatewayError('upstream_timeout', { detail: 'The total timeout has passed.' }), 'timeout')
  }

  /** Only the first call counts. */
  #settleBreaker(result: RequestResult): void {
    if (this.#ticket === undefined) return
    this.#deps.breaker.settle(this.#ticket, result, this.#deps.clock.monotonic())
    this.#ticket = undefined
  }

  #fail(error: Error, outcome: AttemptOutcome): void {
    if (this.#state === 'done') return
    const release = this.#slot.take()
    const named = toGatewayError(error)
    this.#settleBreaker(outcome === 'aborted' ? 'withdrawn' : 'failed')
    this.#finish(outcome)
    if (this.#attempt === undefined) release()
    else this.#attempt.stop(error, release)
    this.#head = undefined
    if (this.#content === undefined) {
      this.#recordTime()
      this.#reject(named)
      return
    }
    this.#content.settled = true
    this.#content.destroy(named)
  }

  #finish(outcome: AttemptOutcome): void {
    if (this.#state === 'done') return
    this.#state = 'done'
    this.#total.stop()
    clearTimeout(this.#retryTimer)
    // A client's signal outlives many requests.
    this.#request.signal.removeEventListener('abort', this)
    this.#request.withdraw?.removeEventListener('abort', this)
    this.#slot.leave()
    this.#attempt?.close(outcome)
    this.#slot.take()()
    this.#deps.inFlight.remove(this)
  }
}
