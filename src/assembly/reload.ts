import type { Cache } from '../cache/cache.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import { restartKeys } from '../config/restart-keys.ts'
import { sameSettings } from '../config/same-settings.ts'
import type { ReloadOutcome } from '../lifecycle/reload-outcome.ts'
import { stopChecks } from './build-service.ts'
import type { Generation } from './generation.ts'
import { outdatedAnswers } from './outdated-answers.ts'

export type ReloadParts = {
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
