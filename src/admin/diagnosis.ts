import type { FastifyInstance, FastifyReply } from 'fastify'
import { parseDuration } from '../config/quantities.ts'
import type { AdminEvent } from './events.ts'
import type { LogLevelRequest, Operator } from './operator.ts'

type DiagnosisOptions = {
  readonly operator: Operator
  report(event: AdminEvent): void
  /** Answers 400. */
  invalid(reply: FastifyReply, code: string, detail: string): FastifyReply
}

const levels: ReadonlySet<unknown> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])

/** Timers end within 24 days. */
const longestMs = 86_400_000

type LevelReading =
  | { readonly kind: 'read'; readonly request: LogLevelRequest }
  | { readonly kind: 'fault'; readonly detail: string }

const fault = (detail: string): LevelReading => ({ kind: 'fault', detail })

/** Reads the content of PUT /log-level. */
const readLogLevel = (content: unknown): LevelReading => {
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    return fault('expected a JSON object')
  const { level, for: duration, ...others } = content as Readonly<Record<string, unknown>>
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
