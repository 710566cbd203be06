import type { FastifyInstance, FastifyReply } from 'fastify'
import type { WorkerLink } from '../cluster/worker-link.ts'
import { parseDuration } from '../config/quantities.ts'
import { isJsonObject } from '../http/json-text.ts'
import {
  type History,
  type HistoryPart,
  historyView,
  type RecentEvents,
  recentOfAll,
} from '../observability/history.ts'
import { type LogLevel, type LogLevelChange, type LogLevelName, logLevels } from '../observability/logger.ts'
import { durationBounds } from '../observability/metrics.ts'
import type { AdminEvent } from './events.ts'
import type { LogLevelRequest, Operator } from './operator.ts'
import { fault, type RequestReading } from './purge-request.ts'

type DiagnosisOptions = {
  readonly operator: Operator
  report(event: AdminEvent): void
  invalid(reply: FastifyReply, code: string, detail: string): FastifyReply
}

const levels: ReadonlySet<unknown> = new Set(logLevels)

/** Timers end within 24 days. */
const longestMs = 86_400_000

const readLogLevel = (content: unknown): RequestReading<LogLevelRequest> => {
  if (!isJsonObject(content)) return fault('expected a JSON object')
  const { level, for: duration, ...others } = content
  if (Object.keys(others).length > 0) return fault('unknown member; known are level, for')
  if (!levels.has(level)) return fault(`level: expected one of ${[...levels].join(', ')}`)
  const forMs = typeof duration === 'string' ? parseDuration(duration) : undefined
  const isValid = duration === undefined || (forMs !== undefined && forMs > 0 && forMs <= longestMs)
  return isValid
    ? { kind: 'read', request: { level: String(level), forMs } }
    : fault('for: expected a duration of at most 1d, such as 10m')
}

/** Views of what happened lately, and the level of the log. */
export const addDiagnosis = (
  server: FastifyInstance,
  { operator, report, invalid }: DiagnosisOptions,
): void => {
  server.get('/history', async (request, reply) => {
    const { service = '' } = request.query as Readonly<Record<string, unknown>>
    return typeof service === 'string' && service.length <= 32
      ? reply.send(await operator.history(service))
      : invalid(reply, 'invalid-query', 'service: the name of a service; all together without it')
  })
  server.get('/recent', async (_request, reply) => reply.send(await operator.recent()))
  server.get('/log-level', (_request, reply) => reply.send(operator.logLevel()))
  server.put('/log-level', async (request, reply) => {
    const reading = readLogLevel(request.body)
    if (reading.kind === 'fault') return invalid(reply, 'invalid-log-level', reading.detail)
    const { level, forMs } = reading.request
    report({ kind: 'admin-log-level', address: request.socket.remoteAddress ?? '', to: level, forMs })
    return reply.send(await operator.setLogLevel(reading.request))
  })
}

/** What outlives a configuration: views of what happened, and the log. */
export type Diagnosis = Pick<Operator, 'history' | 'recent' | 'logLevel' | 'setLogLevel'>

export type DiagnosisParts = {
  readonly history: History
  readonly logLevel: LogLevel
  readonly now: () => number
  readonly worker: WorkerLink | undefined
}

/** A worker's question to all workers about what happened there. */
export type DiagnosisRequest =
  | { readonly topic: 'history'; readonly content: string }
  | { readonly topic: 'recent' }
  | { readonly topic: 'log-level'; readonly content: LogLevelChange }

export const respondToDiagnosis = (
  { history, logLevel }: Pick<DiagnosisParts, 'history' | 'logLevel'>,
  question: DiagnosisRequest,
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
  const ask = async <Value>(question: DiagnosisRequest): Promise<readonly Value[]> => {
    if (worker === undefined) return [respondToDiagnosis({ history, logLevel }, question) as Value]
    return (await worker.ask({ content: null, ...question })) as readonly Value[]
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
