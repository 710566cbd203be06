import type { Operator } from '../admin/operator.ts'
import type { WorkerLink } from '../cluster/worker-link.ts'
import {
  type History,
  type HistoryPart,
  historyView,
  type RecentEvents,
  recentOfAll,
} from '../observability/history.ts'
import type { LogLevel, LogLevelChange, LogLevelName } from '../observability/logger.ts'
import { durationBounds } from '../observability/metrics.ts'

/** What outlives a configuration: views of what happened, and the log. */
export type Diagnosis = Pick<Operator, 'history' | 'recent' | 'logLevel' | 'setLogLevel'>

export type DiagnosisParts = {
  readonly history: History
  readonly logLevel: LogLevel
  readonly now: () => number
  readonly worker: WorkerLink | undefined
}

/** A worker's question to all workers about what happened there. */
export type DiagnosisQuestion =
  | { readonly topic: 'history'; readonly content: string }
  | { readonly topic: 'recent' }
  | { readonly topic: 'log-level'; readonly content: LogLevelChange }

/** Answers the question of another worker. */
export const answerDiagnosis = (
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
