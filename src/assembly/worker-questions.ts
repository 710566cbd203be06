import type { Cache } from '../cache/cache.ts'
import type { ReloadOutcome } from '../lifecycle/reload-outcome.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import type { Question } from '../workers/messages.ts'
import type { WorkerLink } from '../workers/worker-link.ts'
import { answerCacheQuestion, type CacheQuestion } from './operator-cache.ts'

/** What a worker needs to answer what another one is asked by an operator. */
export type WorkerAnswers = {
  readonly cache: Pick<Cache, 'purge' | 'entries'>
  readonly metrics: Pick<Metrics, 'snapshot'>
  reload(): Promise<ReloadOutcome>
}

/** Each request to the admin side reaches one worker, and is answered for all of them. */
export const answerWorkers =
  ({ cache, metrics, reload }: WorkerAnswers) =>
  (question: Question): unknown => {
    switch (question.topic) {
      case 'metrics':
        return metrics.snapshot()
      case 'reload':
        return reload()
      default:
        return answerCacheQuestion(cache, question as CacheQuestion)
    }
  }

/** The metrics of all workers as one scrape. */
export const scrapeAll = async (
  worker: WorkerLink,
  metrics: Pick<Metrics, 'together'>,
  accept: string | undefined,
): Promise<string> => {
  const snapshots = await worker.ask({ topic: 'metrics', content: null })
  return metrics.together(
    snapshots.filter((one) => one !== null),
    accept,
  )
}

const isGood = ({ kind }: ReloadOutcome): boolean => kind === 'applied' || kind === 'unchanged'

/** What came of a reload of all workers: what one of them refuses is told. */
export const reloadOutcomeOf = (answers: readonly unknown[]): ReloadOutcome => {
  const known = (answers as readonly (ReloadOutcome | null)[]).filter((one) => one !== null)
  return (
    known.find((one) => !isGood(one)) ??
    known.find(({ kind }) => kind === 'applied') ??
    known[0] ?? { kind: 'failed', cause: undefined }
  )
}

/** The parent reads the configuration anew, and all workers put it in force. */
export const reloadEverywhere = async (worker: Pick<WorkerLink, 'ask'>): Promise<ReloadOutcome> =>
  reloadOutcomeOf(await worker.ask({ topic: 'reload', content: null }))

/** How the workers stand, for readiness. */
export const workerStanding = (
  worker: WorkerLink | undefined,
): { readonly starting: boolean; readonly workersMissing: boolean } => {
  if (worker === undefined) return { starting: false, workersMissing: false }
  const { complete, ready, wanted } = worker.standing()
  return { starting: !complete, workersMissing: complete && ready < wanted }
}
