import type { ReloadOutcome } from '../lifecycle/reload-outcome.ts'

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
