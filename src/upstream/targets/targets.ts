import type { LookupFunction } from 'node:net'
import { type Client, Pool } from 'undici'
import { countText } from '../../http/count-text.ts'
import type { CheckResult, TargetState, UpstreamEvent } from '../events.ts'
import type { UpstreamOptions } from '../options.ts'
import { AgingClient, createConnector } from './connector.ts'
import {
  afterAbandonedTrial,
  afterCheck,
  afterFailure,
  afterSuccess,
  type CheckState,
  mayEject,
  stateOf,
  statusOf,
  type TargetHealth,
  uncheckedState,
  untriedHealth,
} from './target-health.ts'

export type Target = {
  readonly origin: string
  readonly pool: Pool
  /** Attempts begun and not ended. */
  outstanding: number
  health: TargetHealth
  /** Kept apart from `health`: a good check does not undo what real requests found. */
  checks: CheckState
  /** Gets no requests because its checks fail. Fewer are left out than fail: see `eject.maxShare`. */
  leftOut: boolean
  /** A request or a check has succeeded at some time. */
  hasResponded: boolean
  /** What all of these amount to, as it was reported last. */
  state: TargetState
}

/** A target to try; `trial` = this attempt decides whether it gets requests again. */
export type Choice = { readonly target: Target; readonly trial: boolean }

/**
 * Idle connections go before the upstream's own timeout would close them: node:http announces it in Keep-Alive
 * (5 s), many servers do not (gunicorn closes after 2 s). A POST or PATCH that meets the end of its connection is not sent again, and is 502.
 * Each new connection looks its name up again; none is used for ever.
 */
const connectionLife = {
  keepAliveTimeout: 1_000,
  keepAliveTimeoutThreshold: 1_500,
  keepAliveMaxTimeout: 20_000,
  maxRequestsPerClient: 5_000,
}

/** Connections to one target, by the settings. */
export const poolOf = (
  origin: string,
  options: UpstreamOptions,
  lookup: LookupFunction,
  report: (event: UpstreamEvent) => void,
): Pool => {
  const { service, connectionMaxAgeMs, headerBytes } = options
  const connect = createConnector(options, lookup, (cause) =>
    report({ kind: 'connection-fault', service, target: origin, cause }),
  )
  return new Pool(origin, {
    connect,
    factory: (target, given: Client.Options) =>
      new AgingClient(target, { ...given, connect }, connectionMaxAgeMs),
    // The slots limit the requests in flight. A limit here too would make requests wait where no timer of the gateway runs.
    connections: null,
    // The attempt has its own timers: undici's have a resolution of half a second.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: headerBytes,
    ...connectionLife,
  })
}

/** Of those that will do; the search begins elsewhere each time, so that equals take turns. */
const fewestOutstanding = (
  targets: readonly Target[],
  cursor: number,
  willDo: (target: Target) => boolean,
): Target | undefined => {
  let best: Target | undefined
  for (let i = 0; i < targets.length; i += 1) {
    const target = targets[(cursor + i) % targets.length]
    if (target === undefined || !willDo(target)) continue
    if (best === undefined || target.outstanding < best.outstanding) best = target
  }
  return best
}

/** Builds the targets with one connection pool each; the caller closes the pools. */
export class Targets {
  readonly #report: (event: UpstreamEvent) => void
  readonly #options: UpstreamOptions
  readonly all: readonly Target[]
  #cursor = 0

  constructor(options: UpstreamOptions, lookup: LookupFunction, report: (event: UpstreamEvent) => void) {
    this.#report = report
    this.#options = options
    this.all = options.targets.map((origin) => ({
      origin,
      pool: poolOf(origin, options, lookup, report),
      outstanding: 0,
      health: untriedHealth,
      checks: uncheckedState,
      leftOut: false,
      hasResponded: false,
      state: 'unknown',
    }))
  }

  /** `mayTry`: this request can be repeated elsewhere when a trial fails. */
  choose(nowMs: number, tried: readonly Target[], mayTry: boolean): Choice {
    this.#cursor = (this.#cursor + 1) % this.all.length
    const isFresh = (target: Target): boolean => !tried.includes(target)
    const usable = fewestOutstanding(
      this.all,
      this.#cursor,
      (target) => isFresh(target) && this.#isUsable(target, nowMs),
    )
    const due = this.all.find((target) => this.#isTrialDue(target, nowMs) && !tried.includes(target))
    if (due !== undefined && (mayTry || usable === undefined)) {
      due.health = { state: 'trial' }
      return { target: due, trial: true }
    }
    // When nothing else is left an ejected target is better than none: the ejection may be what is wrong.
    const target =
      usable ??
      fewestOutstanding(this.all, this.#cursor, (candidate) => this.#isUsable(candidate, nowMs)) ??
      fewestOutstanding(this.all, this.#cursor, isFresh) ??
      fewestOutstanding(this.all, this.#cursor, () => true)
    if (target === undefined) throw new RangeError(`service ${this.#options.service} has no upstream target`)
    return { target, trial: false }
  }

  /** Is there a target, not tried yet, that would be chosen in earnest? */
  hasOther(nowMs: number, tried: readonly Target[]): boolean {
    return this.all.some((target) => !tried.includes(target) && this.#isUsable(target, nowMs))
  }

  succeeded({ target, trial }: Choice): void {
    const health = afterSuccess(target.health, trial)
    if (health === target.health && target.hasResponded) return
    target.health = health
    target.hasResponded = true
    this.#settle(target, trial ? 'a trial request succeeded' : 'a request succeeded')
  }

  /** `what`: how the attempt failed, in words. */
  failed({ target, trial }: Choice, nowMs: number, what: string): void {
    // A request sent before the ejection fails late: only the trial itself may end the trial.
    if (target.health.state === 'trial' && !trial) return
    const before = target.health
    target.health = afterFailure(before, nowMs, this.#options.eject, this.#mayLeave(target))
    const failures = before.state === 'healthy' ? before.failures + 1 : 1
    this.#settle(target, `${countText(failures, 'request')} failed consecutively, the last one: ${what}`)
  }

  abandoned({ target, trial }: Choice, nowMs: number): void {
    if (trial) target.health = afterAbandonedTrial(target.health, nowMs)
  }

  /** After an active check; `cause`: why it failed, in words. */
  checked(target: Target, result: CheckResult, cause: string): void {
    const { service, health } = this.#options
    this.#report({ kind: 'check-finished', service, target: target.origin, result })
    const passed = result === 'good'
    const wasFailing = target.checks.failing
    target.checks = afterCheck(target.checks, passed, health)
    target.hasResponded ||= passed
    const { failing } = target.checks
    if (failing !== wasFailing) target.leftOut = failing && this.#mayLeave(target)
    this.#settle(
      target,
      passed
        ? `${countText(wasFailing ? health.recoverAfter : 1, 'check')} passed consecutively`
        : `${cause}; ${countText(failing ? health.failAfter : 1, 'check')} failed consecutively`,
    )
  }

  #isOut(target: Target): boolean {
    return target.health.state !== 'healthy' || target.leftOut
  }

  #outCount(except: Target): number {
    return this.all.filter((target) => target !== except && this.#isOut(target)).length
  }

  #mayLeave(target: Target): boolean {
    return mayEject(this.#outCount(target), this.all.length, this.#options.eject.maxShare)
  }

  #isUsable(target: Target, nowMs: number): boolean {
    return !target.leftOut && statusOf(target.health, nowMs) === 'usable'
  }

  #isTrialDue(target: Target, nowMs: number): boolean {
    return !target.leftOut && statusOf(target.health, nowMs) === 'trial-due'
  }

  /** Reports the state of a target when it is another one than before. */
  #settle(target: Target, cause: string): void {
    const { service, eject } = this.#options
    const from = target.state
    const to = stateOf(target, eject.after)
    if (from === to || to === 'unknown') return
    target.state = to
    // The first contact changes no state that was reported.
    if (from === 'unknown' && to === 'healthy') return
    this.#report({ kind: 'target-changed', service, target: target.origin, from, to, cause })
    if (from === 'left-out') this.#leaveOutOthers()
  }

  /** A recovered target replaces one that fails its checks and was used for lack of another. */
  #leaveOutOthers(): void {
    for (const target of this.all) {
      if (!target.checks.failing || target.leftOut || !this.#mayLeave(target)) continue
      target.leftOut = true
      this.#settle(target, 'its checks fail, and another target has recovered')
    }
  }
}
