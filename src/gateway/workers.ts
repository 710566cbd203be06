import { availableParallelism } from 'node:os'
import { type DiagnosisParts, type DiagnosisRequest, respondToDiagnosis } from '../admin/diagnosis.ts'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { Ask } from '../cluster/supervisor.ts'
import type { WorkerLink, WorkerRequest } from '../cluster/worker-link.ts'
import type { Config } from '../config/config.ts'
import { type ConfigResult, filledAsData } from '../config/load.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { FeedMessage } from '../wordpress/changes/service-feed.ts'
import {
  type CacheRequest,
  isWaiting,
  type OperatorCacheParts,
  respondToCacheRequest,
} from './admin/operator-cache.ts'
import { configFromData } from './load-config.ts'
import type { UpstreamIssue } from './upstream-issues.ts'

type WorkerResponses = Pick<OperatorCacheParts, 'cache' | 'openWrites' | 'warmer'> & {
  readonly metrics: Pick<Metrics, 'snapshot'>
  readonly diagnosis: Pick<DiagnosisParts, 'history' | 'logLevel'>
  reload(): Promise<ReloadOutcome>
  issueFound(issue: UpstreamIssue): void
  /** Applies changes behind the gateway that another worker has received. */
  applyFeedMessage(message: FeedMessage): void
}

/** Each request to the admin side reaches one worker, and is answered for all of them. */
export const serveWorkers =
  ({
    cache,
    openWrites,
    warmer,
    metrics,
    diagnosis,
    reload,
    issueFound,
    applyFeedMessage,
  }: WorkerResponses) =>
  (question: WorkerRequest): unknown => {
    switch (question.topic) {
      case 'metrics':
        return metrics.snapshot()
      case 'reload':
        return reload()
      case 'issue':
        return issueFound(question.content as UpstreamIssue)
      case 'changes':
        return applyFeedMessage(question.content as FeedMessage)
      case 'history':
      case 'recent':
      case 'log-level':
        return respondToDiagnosis(diagnosis, question as DiagnosisRequest)
      default:
        return respondToCacheRequest({ cache, openWrites, warmer }, question as CacheRequest)
    }
  }

export const workerStatus = (
  worker: WorkerLink | undefined,
): { readonly starting: boolean; readonly workersMissing: boolean } => {
  if (worker === undefined) return { starting: false, workersMissing: false }
  const { complete, ready, wanted } = worker.status()
  return { starting: !complete, workersMissing: complete && ready < wanted }
}

export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 0 ? availableParallelism() : workers

const snapshots = (worker: WorkerLink): Promise<readonly unknown[]> =>
  worker.ask({ topic: 'metrics', content: null })

/** The metrics of this process, or of all that share the port. */
export const scrapeOf = async (
  worker: WorkerLink | undefined,
  metrics: Metrics,
  accept: string | undefined,
) => ({
  contentType: metrics.contentType(accept),
  text:
    worker === undefined
      ? await metrics.scrape(accept)
      : await metrics.together(await snapshots(worker), accept),
})

export const metricsOf = async (worker: WorkerLink | undefined, metrics: Metrics) =>
  worker === undefined ? metrics.snapshot() : metrics.snapshotTogether(await snapshots(worker))

const isGood = ({ kind }: ReloadOutcome): boolean => kind === 'applied' || kind === 'unchanged'

/** Result of a reload of all workers: a refusal of one counts. */
const reloadOutcomeOf = (responses: readonly unknown[]): ReloadOutcome => {
  const outcomes = responses as readonly ReloadOutcome[]
  return (
    outcomes.find((outcome) => !isGood(outcome)) ??
    outcomes.find(({ kind }) => kind === 'applied') ??
    outcomes[0] ?? { kind: 'failed', cause: undefined }
  )
}

/** The parent reads the configuration, and all workers apply it. */
export const reloadEverywhere = async (worker: Pick<WorkerLink, 'ask'>): Promise<ReloadOutcome> =>
  reloadOutcomeOf(await worker.ask({ topic: 'reload', content: null }))

/** The files that the parent has read, as plain data for its workers. */
export type HandedConfig =
  | { readonly kind: 'filled'; readonly filled: unknown }
  | Extract<ConfigResult, { kind: 'faults' }>

const asHanded = (result: ConfigResult): HandedConfig =>
  result.kind === 'ok' ? { kind: 'filled', filled: filledAsData(result.filled) } : result

/** The configuration in these files: the same for every worker, even if a file has changed since. */
export const fromHanded = (handed: HandedConfig): ConfigResult =>
  handed.kind === 'filled' ? configFromData(handed.filled) : handed

const readingFailed = (cause: unknown): readonly ReloadOutcome[] => [{ kind: 'failed', cause }]

/** Holds the files read at the start, or by the last reload that the workers applied: only the parent reads files. */
export const createWorkersConfig = (filled: unknown, readConfig: () => Promise<ConfigResult>) => {
  let inForce: HandedConfig = { kind: 'filled', filled: filledAsData(filled) }
  /** Requested; the workers may still refuse it. */
  let candidate: HandedConfig = inForce
  let before: Promise<unknown> = Promise.resolve()

  const reload = async (question: WorkerRequest, ask: Ask): Promise<readonly unknown[]> => {
    const read = asHanded(await readConfig())
    if (read.kind === 'filled') candidate = read
    // A slow worker, which reads a site's index, applies it as well.
    const responses = await ask({ ...question, content: read }, 'until-all')
    const { kind } = reloadOutcomeOf(responses)
    if (kind === 'applied' || kind === 'unchanged') inForce = candidate
    candidate = inForce
    return responses
  }
  return {
    /** The configuration that all workers have, also those that are started later. */
    get inForce() {
      return inForce
    },
    through: (question: WorkerRequest, ask: Ask): Promise<readonly unknown[]> => {
      // A warming that is waited for ends by itself.
      if (question.topic !== 'reload') return ask(question, isWaiting(question) ? 'until-all' : 'brief')
      const responses = before.then(() => reload(question, ask)).catch(readingFailed)
      before = responses
      return responses
    },
    // It got one configuration at its start, and another one was applied meanwhile.
    stale: (configOfWorker: unknown): WorkerRequest | undefined =>
      configOfWorker === candidate ? undefined : { topic: 'reload', content: candidate },
  }
}
