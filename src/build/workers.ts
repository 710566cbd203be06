import { availableParallelism } from 'node:os'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache } from '../cache/cache.ts'
import type { Ask, SupervisorOptions } from '../cluster/supervisor-options.ts'
import type { WorkerLink } from '../cluster/worker-link.ts'
import type { Question } from '../cluster/worker-messages.ts'
import type { Config } from '../config/config.ts'
import { type ConfigResult, configFromFilled } from '../config/load.ts'
import type { Metrics } from '../observability/metrics.ts'
import { answerCacheQuestion, type CacheQuestion } from './operator.ts'

/** What a worker needs to answer what another one is asked by an operator. */
type WorkerAnswers = {
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
const reloadOutcomeOf = (answers: readonly unknown[]): ReloadOutcome => {
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

/** What the parent has read, as its workers get it: plain data. */
export type HandedConfig =
  | { readonly kind: 'filled'; readonly filled: unknown }
  | Extract<ConfigResult, { kind: 'faults' }>

const asHanded = (result: ConfigResult): HandedConfig =>
  result.kind === 'ok' ? { kind: 'filled', filled: result.filled } : result

/** What it means: the same for every worker, whatever its file says by now. */
export const fromHanded = (handed: HandedConfig): ConfigResult =>
  handed.kind === 'filled' ? configFromFilled(handed.filled) : handed

/** The configuration that all workers have, also those that are started later. */
type WorkersConfig = Pick<SupervisorOptions, 'through' | 'outdated'> & {
  readonly inForce: HandedConfig
}

const readingFailed = (cause: unknown): readonly ReloadOutcome[] => [{ kind: 'failed', cause }]

/** Keeps what was read at the start, or by the last reload that the workers took over: files are read here alone. */
export const createWorkersConfig = (
  filled: unknown,
  readConfig: () => Promise<ConfigResult>,
): WorkersConfig => {
  let inForce: HandedConfig = { kind: 'filled', filled }
  /** Asked for, and perhaps refused in a moment. */
  let asked: HandedConfig = inForce
  let before: Promise<unknown> = Promise.resolve()

  const reload = async (question: Question, ask: Ask): Promise<readonly unknown[]> => {
    const read = asHanded(await readConfig())
    if (read.kind === 'filled') asked = read
    // One that takes long, since it reads a site's index, has taken it over all the same.
    const answers = await ask({ ...question, content: read }, 'until-all')
    const { kind } = reloadOutcomeOf(answers)
    if (kind === 'applied' || kind === 'unchanged') inForce = asked
    asked = inForce
    return answers
  }
  return {
    get inForce() {
      return inForce
    },
    through: (question, ask) => {
      if (question.topic !== 'reload') return ask(question, 'brief')
      const answers = before.then(() => reload(question, ask)).catch(readingFailed)
      before = answers
      return answers
    },
    // It was told one, and started while another one was put in force.
    outdated: (told) => (told === asked ? undefined : { topic: 'reload', content: asked }),
  }
}

/** How many processes a configuration asks for. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 0 ? availableParallelism() : workers
