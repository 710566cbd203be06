import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache } from '../cache/cache.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import { restartKeys, sameSettings } from '../config/same-settings.ts'
import { type BuiltService, stopChecks } from './built-service.ts'
import { documentChanges } from './document-contract.ts'
import { decideAdoption, type Generation } from './generation.ts'

/** What happens to a service's stored responses at a reload: `keep` all, `drop` all, or `compare` the rule of each target. */
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
 * Selects the stored responses to drop when `next` replaces `last`. A lifetime is computed when a response is stored, so a
 * response would keep the lifetime of its old rule. All responses of a service are dropped when more than its rules has changed,
 * because the new service might answer differently.
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

/** Logs one line for each reload. Faults name keys and reasons, never values. */
export const logReload = (log: Log, outcome: ReloadOutcome): void => {
  switch (outcome.kind) {
    case 'applied': {
      const { kind, hash, documents } = outcome
      log.info({ outcome: kind, hash, ...(documents === undefined ? {} : { documents }) }, 'reload')
      return
    }
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
  /** Makes the new generation handle the requests, synchronously. */
  replace(next: Generation): void
  /** Reports the result, before the new generation answers a request. */
  report(outcome: ReloadOutcome): void
  /** Closing the previous generation failed; it handles no requests any more. */
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

/** Replaces the last generation, which finishes its requests and is then closed. `alive`: generations not closed yet. */
const exchange = (parts: ReloadParts, alive: Set<Generation>, last: Generation, next: Generation): void => {
  const outdated = { kind: 'matching', matches: outdatedAnswers(last, next) } as const
  const drop = (): number => parts.cache.purge({ selector: outdated, mode: 'hard', dryRun: false })
  // Synchronous: no request is answered under new rules from a response stored under old ones.
  alive.add(next)
  parts.replace(next)
  stopChecks(last.built, next.built)
  drop()
  const end = async (): Promise<void> => {
    const wasBusy = last.inFlight.count > 0
    await last.inFlight.settled(last.config.drain.timeoutMs)
    // Drops what an earlier request has stored since.
    if (wasBusy) drop()
    alive.delete(last)
    await last.close([...alive].flatMap(({ built }) => built))
  }
  void end().catch(parts.endingFailed)
}

/** Reads the configuration and applies it completely or not at all; one reload at a time. */
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
    const documents = documentChanges(last.config, config)
    return documents.length === 0 ? { kind: 'applied', hash } : { kind: 'applied', hash, documents }
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
