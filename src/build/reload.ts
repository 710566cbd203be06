import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache } from '../cache/cache.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import { restartKeys, sameSettings } from '../config/same-settings.ts'
import { decideAdoption, type Generation } from './generation.ts'
import { type BuiltService, stopChecks } from './service.ts'

/** Of what a service has stored after a reload: `keep` all, `drop` all, or `compare` the rule of each target. */
type Verdict =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'compare'; readonly from: BuiltService; readonly to: BuiltService }

const methods = ['GET', 'HEAD'] as const

const samePolicy = (a: CachePolicy, b: CachePolicy): boolean => sameSettings(a, b)

const verdictFor = (from: BuiltService, last: Generation, next: Generation): Verdict => {
  const to = next.built.find(({ config }) => config.name === from.config.name)
  if (to === undefined) return { kind: 'drop' }
  const adoption = decideAdoption(
    { service: from.config, limits: last.config.limits },
    { service: to.config, limits: next.config.limits },
  )
  if (adoption === 'service') return { kind: 'keep' }
  return adoption === 'rules' ? { kind: 'compare', from, to } : { kind: 'drop' }
}

/**
 * Which stored answers must go when `next` takes the place of `last`: lifetimes are worked out when an answer is stored, so
 * one that was stored under another rule would live by it. All of a service go when more than its rules has changed,
 * because they may hold what the new one would have answered otherwise.
 */
const outdatedAnswers = (
  last: Generation,
  next: Generation,
): ((service: string, target: string) => boolean) => {
  const verdicts = new Map(last.built.map((from) => [from.config.name, verdictFor(from, last, next)]))
  return (service, target) => {
    const verdict = verdicts.get(service)
    if (verdict === undefined || verdict.kind === 'drop') return true
    if (verdict.kind === 'keep') return false
    const path = target.split('?', 1)[0] ?? ''
    const { from, to } = verdict
    return !methods.every((method) =>
      samePolicy(from.contract.policyFor(method, path), to.contract.policyFor(method, path)),
    )
  }
}

/** The part of a logger that is needed here. */
type Log = {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** One line for each reload. Faults name keys and say what is wrong with them, not what they hold. */
export const logReload = (log: Log, outcome: ReloadOutcome): void => {
  switch (outcome.kind) {
    case 'applied':
    case 'unchanged':
      log.info({ outcome: outcome.kind, hash: outcome.hash }, 'reload')
      return
    case 'invalid':
      log.error({ outcome: outcome.kind, faults: outcome.faults }, 'reload')
      return
    case 'restart-needed':
      log.error({ outcome: outcome.kind, keys: outcome.keys }, 'reload')
      return
    case 'failed':
      log.error({ outcome: outcome.kind, err: outcome.cause }, 'reload')
  }
}

type ReloadParts = {
  readonly cache: Pick<Cache, 'purge'>
  current(): Generation
  readConfig(): Promise<ConfigResult>
  build(config: Config, hash: string, last: Generation): Promise<Generation>
  /** From here on requests are taken by the new one; happens at once. */
  replace(next: Generation): void
  /** Tells what came of it, before anybody is answered by the new one. */
  report(outcome: ReloadOutcome): void
  /** Ending the last one went wrong: nobody is answered by it any more. */
  endingFailed(cause: unknown): void
}

const faultLine = ({
  line,
  column,
  path,
  message,
}: {
  line: number
  column: number
  path: string
  message: string
}): string => `${line}:${column} ${path === '' ? '' : `${path}: `}${message}`

/** Takes the place of the last generation; what it still answers is answered by it, and then it is ended. `alive`: those not ended yet. */
const exchange = (parts: ReloadParts, alive: Set<Generation>, last: Generation, next: Generation): void => {
  const outdated = { kind: 'matching', matches: outdatedAnswers(last, next) } as const
  const drop = (): number => parts.cache.purge({ selector: outdated, mode: 'hard', dryRun: false })
  // One after the other without a pause between them: nobody is answered by new rules from an answer stored under old ones.
  alive.add(next)
  parts.replace(next)
  stopChecks(last.built, next.built)
  drop()
  const end = async (): Promise<void> => {
    const wasBusy = last.inFlight.count > 0
    await last.inFlight.settled(last.config.drain.timeoutMs)
    // What a request that began before has stored since.
    if (wasBusy) drop()
    alive.delete(last)
    await last.close([...alive].flatMap(({ built }) => built))
  }
  void end().catch(parts.endingFailed)
}

/** Reads the configuration anew and puts it in force, as a whole or not at all; one reload at a time. */
export const createReload = (parts: ReloadParts): (() => Promise<ReloadOutcome>) => {
  const alive = new Set([parts.current()])
  const attempt = async (): Promise<ReloadOutcome> => {
    const result = await parts.readConfig()
    if (result.kind === 'faults') return { kind: 'invalid', faults: result.faults.map(faultLine) }
    const { config, hash } = result
    const last = parts.current()
    if (sameSettings(last.config, config)) return { kind: 'unchanged', hash }
    const keys = restartKeys(last.config, config)
    if (keys.length > 0) return { kind: 'restart-needed', keys }
    exchange(parts, alive, last, await parts.build(config, hash, last))
    return { kind: 'applied', hash }
  }
  let before: Promise<unknown> = Promise.resolve()
  return () => {
    const outcome = before
      .then(attempt)
      .catch((cause: unknown): ReloadOutcome => ({ kind: 'failed', cause }))
      .then((settled) => {
        parts.report(settled)
        return settled
      })
    before = outcome
    return outcome
  }
}
