import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache, CacheOptions } from '../cache/cache.ts'
import { targetKeyOf } from '../cache/cache-key.ts'
import { type Clock, type Moment, readClock } from '../clock.ts'
import { type Coherence, createCoherence } from '../cluster/coherence.ts'
import type { CoherenceEvent } from '../cluster/events.ts'
import type { CoherenceOptions, Ledger } from '../cluster/ledger.ts'
import { type SharedStore, type SharedStores, sharedStore } from '../cluster/shared-store.ts'
import type { Ask, SupervisorOptions } from '../cluster/supervisor-options.ts'
import type { WorkerLink } from '../cluster/worker-link.ts'
import type { Question } from '../cluster/worker-messages.ts'
import type { Config } from '../config/config.ts'
import { type ConfigResult, configFromFilled } from '../config/load.ts'
import {
  type History,
  type HistoryPart,
  historyView,
  type RecentEvents,
  recentOfAll,
} from '../observability/history.ts'
import type { LogLevel, LogLevelChange, LogLevelName } from '../observability/logger.ts'
import { durationBounds, type Metrics } from '../observability/metrics.ts'
import { applyInvalidations } from '../pipeline/invalidate-write.ts'
import { answerCacheQuestion, type CacheQuestion, type Diagnosis } from './operator.ts'
import type { UpstreamFinding } from './upstream-findings.ts'

/** The part of a logger that is needed here. */
type MembershipLog = {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

type MembershipParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: MembershipLog
  readonly metrics: Metrics
  /** Where this process is one of several that share a port. */
  readonly worker: WorkerLink | undefined
}

/** The parts that notes of other members are applied to. */
export type MembershipRooms = {
  readonly cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>
  /** The gateway's documents about a site may predate a write. */
  documentsOutdated(service: string, collection: string): void
}

/** Membership among several processes: the parts that the cache needs before it is created. */
export type Membership = {
  readonly forCache: Pick<CacheOptions, 'lease' | 'tier'>
  /** Undefined without a shared store. */
  readonly stores: SharedStores | undefined
  /** Makes this process a member; start it afterwards. */
  join(rooms: MembershipRooms): Coherence
  /** Call it after the member has left. */
  close(): void
}

/** Are writes refused that other members cannot learn of? */
export const refusesUnheard = ({ cache }: Config): boolean => cache.shared.writes === 'refuse-while-cut-off'

const tell = (logger: MembershipLog, event: CoherenceEvent): void => {
  if (event.kind === 'trust-lost') logger.warn({ reason: event.reason }, event.kind)
  else if (event.kind === 'cut-off') logger.warn({ writes: event.writes }, event.kind)
  else if (event.kind === 'trust-regained' || event.kind === 'memory-dropped') logger.info({}, event.kind)
}

type Kind = {
  readonly ledger: Ledger
  readonly canBeCutOff: boolean
  readonly shared: SharedStore | undefined
}

const coherenceFor = (
  parts: MembershipParts,
  { cache, documentsOutdated }: MembershipRooms,
  member: string,
  { ledger, canBeCutOff, shared }: Kind,
): Coherence => {
  const { config, clock, logger, metrics } = parts
  const apply: CoherenceOptions['apply'] = (noted) => {
    shared?.noted(noted)
    return applyInvalidations(
      noted.map(({ note }) => note),
      cache,
      documentsOutdated,
      'elsewhere',
    )
  }
  return createCoherence({
    member,
    ledger,
    canBeCutOff,
    refusesUnheard: canBeCutOff && refusesUnheard(config),
    leaseMs: config.cache.shared.leaseMs,
    clock,
    apply,
    dropAll: (at) => {
      shared?.restarted(at)
      cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
      for (const { name } of config.services) documentsOutdated(name, '')
    },
    report: (event) => {
      metrics.observe.coherence(event)
      tell(logger, event)
    },
  })
}

/** Prepares the membership of this process; undefined for a single process. */
export const prepareMembership = async (parts: MembershipParts): Promise<Membership | undefined> => {
  const { clock, config, worker } = parts
  const isShared = config.cache.shared.url.isSet
  if (!isShared && worker === undefined) return undefined
  const member = worker?.assignment.member ?? randomBytes(6).toString('hex')
  let coherence: Coherence | undefined
  const mayTrust = (at: Moment): boolean => coherence?.mayTrust(at) === true
  const shared = isShared
    ? await sharedStore({ ...parts, report: parts.metrics.observe.sharedTier }, member, {
        position: () => coherence?.position ?? { epoch: '', applied: 0 },
        mayTrust: () => mayTrust(readClock(clock)),
        targetTag: targetKeyOf,
      })
    : undefined
  const ledger = shared?.ledger ?? worker?.ledger
  if (ledger === undefined) return undefined
  return {
    forCache: { lease: { isCurrent: mayTrust }, ...(shared === undefined ? {} : { tier: shared.tier }) },
    join: (rooms) => {
      const joined = coherenceFor(parts, rooms, member, { ledger, canBeCutOff: isShared, shared })
      coherence = joined
      // The exit was observed: do not wait for the lease to run out.
      worker?.onEnded((ended) => joined.forget(ended))
      return joined
    },
    stores: shared?.stores,
    close: () => shared?.close(),
  }
}

type DiagnosisParts = {
  readonly history: History
  readonly logLevel: LogLevel
  readonly now: () => number
  readonly worker: WorkerLink | undefined
}

/** A worker's question to all workers about what happened there. */
type DiagnosisQuestion =
  | { readonly topic: 'history'; readonly content: string }
  | { readonly topic: 'recent' }
  | { readonly topic: 'log-level'; readonly content: LogLevelChange }

/** Answers the question of another worker. */
const answerDiagnosis = (
  { history, logLevel }: Pick<DiagnosisParts, 'history' | 'logLevel'>,
  question: DiagnosisQuestion,
): unknown => {
  switch (question.topic) {
    case 'history':
      return history.read(question.content)
    case 'recent':
      return history.recent()
    case 'log-level':
      return logLevel.set(question.content)
  }
}

/** Diagnosis of this process, or of all workers. */
export const createDiagnosis = ({ history, logLevel, now, worker }: DiagnosisParts): Diagnosis => {
  const ask = async <Value>(question: DiagnosisQuestion): Promise<readonly Value[]> => {
    if (worker === undefined) return [answerDiagnosis({ history, logLevel }, question) as Value]
    const answers = (await worker.ask({ content: null, ...question })) as readonly (Value | null)[]
    return answers.filter((answer) => answer !== null)
  }
  return {
    history: async (service) =>
      historyView(await ask<HistoryPart>({ topic: 'history', content: service }), durationBounds),
    recent: async () => recentOfAll(await ask<RecentEvents>({ topic: 'recent' })),
    logLevel: logLevel.state,
    setLogLevel: async ({ level, forMs }) => {
      const untilMs = forMs === undefined ? undefined : now() + forMs
      await ask({ topic: 'log-level', content: { level: level as LogLevelName, untilMs } })
      return logLevel.state()
    },
  }
}

/** The parts that a worker needs to answer questions of other workers. */
type WorkerAnswers = {
  readonly cache: Pick<Cache, 'purge' | 'entries'>
  readonly metrics: Pick<Metrics, 'snapshot'>
  readonly diagnosis: Pick<DiagnosisParts, 'history' | 'logLevel'>
  reload(): Promise<ReloadOutcome>
  note(finding: UpstreamFinding): void
}

/** Each request to the admin side reaches one worker, and is answered for all of them. */
export const answerWorkers =
  ({ cache, metrics, diagnosis, reload, note }: WorkerAnswers) =>
  (question: Question): unknown => {
    switch (question.topic) {
      case 'metrics':
        return metrics.snapshot()
      case 'reload':
        return reload()
      case 'finding':
        return note(question.content as UpstreamFinding)
      case 'history':
      case 'recent':
      case 'log-level':
        return answerDiagnosis(diagnosis, question as DiagnosisQuestion)
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

/** Result of a reload of all workers: a refusal of one counts. */
const reloadOutcomeOf = (answers: readonly unknown[]): ReloadOutcome => {
  const known = (answers as readonly (ReloadOutcome | null)[]).filter((one) => one !== null)
  return (
    known.find((one) => !isGood(one)) ??
    known.find(({ kind }) => kind === 'applied') ??
    known[0] ?? { kind: 'failed', cause: undefined }
  )
}

/** The parent reads the configuration, and all workers apply it. */
export const reloadEverywhere = async (worker: Pick<WorkerLink, 'ask'>): Promise<ReloadOutcome> =>
  reloadOutcomeOf(await worker.ask({ topic: 'reload', content: null }))

/** State of the workers, for readiness. */
export const workerStanding = (
  worker: WorkerLink | undefined,
): { readonly starting: boolean; readonly workersMissing: boolean } => {
  if (worker === undefined) return { starting: false, workersMissing: false }
  const { complete, ready, wanted } = worker.standing()
  return { starting: !complete, workersMissing: complete && ready < wanted }
}

/** The files that the parent has read, as plain data for its workers. */
export type HandedConfig =
  | { readonly kind: 'filled'; readonly filled: unknown }
  | Extract<ConfigResult, { kind: 'faults' }>

const asHanded = (result: ConfigResult): HandedConfig =>
  result.kind === 'ok' ? { kind: 'filled', filled: result.filled } : result

/** The configuration in these files: the same for every worker, even if a file has changed since. */
export const fromHanded = (handed: HandedConfig): ConfigResult =>
  handed.kind === 'filled' ? configFromFilled(handed.filled) : handed

/** The configuration that all workers have, also those that are started later. */
type WorkersConfig = Pick<SupervisorOptions, 'through' | 'outdated'> & {
  readonly inForce: HandedConfig
}

const readingFailed = (cause: unknown): readonly ReloadOutcome[] => [{ kind: 'failed', cause }]

/** Holds the files read at the start, or by the last reload that the workers applied: only the parent reads files. */
export const createWorkersConfig = (
  filled: unknown,
  readConfig: () => Promise<ConfigResult>,
): WorkersConfig => {
  let inForce: HandedConfig = { kind: 'filled', filled }
  /** Requested; the workers may still refuse it. */
  let asked: HandedConfig = inForce
  let before: Promise<unknown> = Promise.resolve()

  const reload = async (question: Question, ask: Ask): Promise<readonly unknown[]> => {
    const read = asHanded(await readConfig())
    if (read.kind === 'filled') asked = read
    // A slow worker, which reads a site's index, applies it as well.
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
    // It got one configuration at its start, and another one was applied meanwhile.
    outdated: (told) => (told === asked ? undefined : { topic: 'reload', content: asked }),
  }
}

/** How many processes a configuration asks for. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 0 ? availableParallelism() : workers
