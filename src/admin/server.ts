import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'
import { type AdminRequest, createAccess } from './access.ts'
import { addDrain } from './drain.ts'
import type { AdminEvent } from './events.ts'
import type { Operator } from './operator.ts'
import { addPages } from './pages.ts'
import { sendProblem, sendRefusal } from './problem.ts'
import { readPurgeRequest } from './purge-request.ts'
import type { Readiness } from './readiness.ts'
import { addReload } from './reload.ts'
import { statusReport } from './status-report.ts'
import { addViews } from './views.ts'

export type AdminOptions = {
  readonly logger: Logger
  /** '' when none is configured. */
  readonly token: string
  readonly operator: Operator
  /** What Prometheus gets, in the format that its Accept field asks for. */
  scrape(accept: string | undefined): Promise<{ readonly contentType: string; readonly text: string }>
  readiness(): Readiness
  report(event: AdminEvent): void
}

/** Asked by orchestrators and balancers under any name, with any fields; they tell no more than whether the process is well. */
const probePaths: ReadonlySet<string | undefined> = new Set(['/livez', '/readyz'])

const guard = (server: FastifyInstance, { token, report }: AdminOptions): void => {
  const access = createAccess(token)
  server.addHook('onRequest', async (request, reply) => {
    const writes = request.method !== 'GET' && request.method !== 'HEAD'
    const { url } = request.routeOptions
    if (probePaths.has(url) && !writes) return undefined
    const address = request.socket.remoteAddress ?? ''
    const isOpen = url === '/metrics'
    const asked: AdminRequest = { writes, isOpen, peer: address, fields: request.headers }
    const decision = access(asked)
    if (decision.kind === 'granted') return undefined
    report({ kind: 'admin-refused', address, reason: decision.reason })
    return sendRefusal(reply, decision.reason)
  })
}

const addPurge = (server: FastifyInstance, { operator, report }: AdminOptions): void => {
  server.post('/cache/purge', async (request, reply) => {
    const reading = readPurgeRequest(request.body)
    if (reading.kind === 'fault') return sendProblem(reply, 400, 'invalid-purge', reading.detail)
    const { selection, mode, dryRun } = reading.request
    const outcome = await operator.purge(reading.request)
    if (outcome.kind === 'refused') return sendProblem(reply, 400, 'invalid-purge', outcome.detail)
    if (outcome.kind === 'unheard') {
      reply.header('retry-after', '1')
      return sendProblem(
        reply,
        503,
        'not-heard',
        'Purged in this instance only: the other instances cannot be reached.',
      )
    }
    const { entries } = outcome
    const address = request.socket.remoteAddress ?? ''
    report({ kind: 'admin-purge', address, selector: selection.by, mode, dryRun, entries })
    return reply.send({ entries, mode, dryRun })
  })
}

/** The operator's side, on a port of its own. */
export const createAdmin = (options: AdminOptions): FastifyInstance => {
  const server = fastify({
    loggerInstance: options.logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 64 * 1024,
    requestTimeout: 10_000,
    return503OnClosing: false,
  }) as unknown as FastifyInstance
  server.addHook('onSend', async (_request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
  })
  server.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, 404, 'not-found', 'No such page. GET / is the status page.'),
  )
  server.setErrorHandler((error, _request, reply) => {
    const status = (error as { statusCode?: number }).statusCode ?? 500
    if (status < 500) return sendProblem(reply, status, 'invalid-request', 'The request cannot be read.')
    options.logger.error({ err: error }, 'admin request failed')
    return sendProblem(reply, 500, 'internal', 'See the log.')
  })
  guard(server, options)
  server.get('/metrics', async (request, reply) => {
    const { contentType, text } = await options.scrape(request.headers.accept)
    return reply.type(contentType).header('vary', 'Accept').send(text)
  })
  server.get('/livez', async () => ({ status: 'alive' }))
  server.get('/readyz', async (_request, reply) => {
    const { ready, reasons, degraded } = options.readiness()
    const status = ready ? 'ready' : 'not-ready'
    return reply.code(ready ? 200 : 503).send({ status, reasons, degraded })
  })
  server.get('/status', async () => statusReport((await options.scrape(undefined)).text, options.readiness()))
  addPurge(server, options)
  addDrain(server, options)
  addReload(server, options)
  addViews(server, options.operator)
  addPages(server)
  return server
}
