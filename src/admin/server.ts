import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import type { Logger } from 'pino'

/** What readiness depends on; `reasons` say why it is off, or what a client may notice although it is on. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly string[]
}

export type AdminOptions = {
  readonly logger: Logger
  readonly contentType: string
  scrape(): Promise<string>
  readiness(): Readiness
}

/** The operator's side, on a port of its own. */
export const createAdmin = (options: AdminOptions): FastifyInstance => {
  const server = fastify({
    loggerInstance: options.logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 64 * 1024,
    requestTimeout: 10_000,
    return503OnClosing: false,
  })
  server.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
  })
  server.get('/metrics', async (_request, reply) =>
    reply.type(options.contentType).send(await options.scrape()),
  )
  server.get('/livez', async () => ({ status: 'alive' }))
  server.get('/readyz', async (_request, reply) => {
    const { ready, reasons } = options.readiness()
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not-ready', reasons })
  })
  return server as unknown as FastifyInstance
}
