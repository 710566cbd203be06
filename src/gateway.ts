import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { AdminEvent } from './admin/events.ts'
import { createAdmin, type Readiness } from './admin/server.ts'
import { createOperator } from './assembly/admin-operator.ts'
import { type BuiltService, buildService } from './assembly/build-service.ts'
import { withDriftLog } from './assembly/drift-log.ts'
import { createCache } from './cache/cache.ts'
import { createPartitions } from './cache/cache-key.ts'
import { systemClock } from './clock.ts'
import type { Config } from './config/config.ts'
import { createEdge } from './edge/server.ts'
import { type ErrorCode, errorTable, type GatewayError } from './errors.ts'
import type { Answer } from './http/message.ts'
import { createLogger } from './logging/logger.ts'
import { createMetrics } from './metrics/create-metrics.ts'
import type { PipelineEvent } from './pipeline/events.ts'
import type { Received } from './pipeline/exchange.ts'
import { buildPhases } from './pipeline/phases.ts'
import { createPipeline } from './pipeline/run.ts'
import { clientInterim, clientSignal } from './upstream/client-signal.ts'

export type GatewayOptions = {
  /** Tells configurations apart in metrics. */
  readonly configHash: string
  readonly version: string
}

/** A gateway that accepts requests. */
export type Gateway = {
  /** Origin of the public side, with the port that was really taken. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Drains, then closes everything that was opened. */
  close(): Promise<void>
}

/** Codes that are not in the error table come from validators, which find fault with clients only. */
const isClientFault = (code: string): boolean =>
  !(code in errorTable) || errorTable[code as ErrorCode].fault === 'client'

/** Links must carry the port before anything listens; so a free one is looked up when the configuration leaves it open. */
const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Lets what is in flight finish, but not longer than `timeoutMs`. */
const closeWithin = async (server: FastifyInstance, timeoutMs: number): Promise<void> => {
  const hard = setTimeout(() => server.server.closeAllConnections(), timeoutMs)
  await server.close()
  clearTimeout(hard)
}

/** Builds every room, joins them and listens: the only place that knows all. */
export const startGateway = async (config: Config, options: GatewayOptions): Promise<Gateway> => {
  const clock = systemClock
  const logger = createLogger(config.log)
  const metrics = createMetrics({ ...options, processMetrics: true })
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const publicUrl = config.publicUrl.endsWith(':0')
    ? config.publicUrl.replace(/0$/, String(port))
    : config.publicUrl
  let draining = false
  let inFlight = 0

  const cache = createCache({
    maxBytes: config.cache.maxBytes,
    maxEntryBytes: config.cache.maxEntryBytes,
    admission: config.cache.admission,
    compression: {
      codings: config.cache.compression.encodings,
      minBytes: config.cache.compression.minBytes,
    },
    clock,
    report: metrics.observe.cache,
  })
  const report = (event: PipelineEvent): void => {
    metrics.observe.pipeline(event)
    // What failed here or at an upstream is told by `failed`, with its cause.
    if (event.kind !== 'request-refused' || !isClientFault(event.code)) return
    const { kind, ...facts } = event
    logger.info(facts, kind)
  }
  const failed = (error: GatewayError, { id, service, record }: Received): void => {
    if (error.facts.fault === 'client') return
    logger.warn(
      { id, service: service.name, route: record.route, code: error.code, err: error.cause },
      'request-failed',
    )
  }
  const run: (exchange: Received) => Answer = createPipeline(
    buildPhases({
      clock,
      report,
      failed,
      cacheRoom: { cache, partitionOf: createPartitions() },
      forwarding: { via: `trellis-${randomBytes(6).toString('hex')}`, publicHost: new URL(publicUrl).host },
    }),
  )

  const parts = { config, publicUrl, clock, metrics: withDriftLog(metrics, logger), run }
  const built: BuiltService[] = []
  for (const service of config.services) {
    built.push(await buildService(service, parts))
  }
  const readiness = (): Readiness => ({ ready: !draining, reasons: draining ? ['draining'] : [] })
  const edge = await createEdge({
    limits: config.limits,
    trustedProxies: config.trustedProxies,
    services: built.map(({ service }) => service),
    logger,
    signalKey: clientSignal,
    interimKey: clientInterim,
    run,
    refusedEarly: (error, service) =>
      report({
        kind: 'request-refused',
        id: '',
        service: service?.name ?? 'none',
        route: 'unmatched',
        code: error.code,
      }),
    isDraining: () => draining,
    inFlight: {
      enter: () => {
        inFlight += 1
      },
      leave: () => {
        inFlight -= 1
      },
    },
  })
  metrics.readAtScrape({
    inFlight: () => inFlight,
    cache: () => ({ ...cache.stats(), maxBytes: config.cache.maxBytes }),
    upstreams: () => built.map(({ service }) => ({ service: service.name, ...service.upstream.snapshot() })),
  })
  const admin = createAdmin({
    logger,
    token: config.admin.token.reveal(),
    operator: createOperator({ config, publicUrl, version: options.version, cache, built }),
    scrape: async (accept) => ({
      contentType: metrics.contentType(accept),
      text: await metrics.scrape(accept),
    }),
    readiness,
    report: ({ kind, ...facts }: AdminEvent) => logger.info(facts, kind),
  })

  const closeRooms = async (): Promise<void> => {
    for (const { close } of built) await close()
    cache.close()
  }
  try {
    await edge.listen({ host: config.listen.host, port })
    await admin.listen({ host: config.admin.host, port: config.admin.port })
  } catch (error) {
    // What was opened is closed by whoever opened it, also when a port is taken.
    await Promise.all([edge.close(), admin.close(), closeRooms()])
    throw error
  }
  const adminPort = (admin.server.address() as AddressInfo).port
  return {
    publicAddress: `http://${urlHost(config.listen.host)}:${port}`,
    adminAddress: `http://${urlHost(config.admin.host)}:${adminPort}`,
    close: async () => {
      draining = true
      await sleep(config.drain.delayMs)
      await closeWithin(edge, config.drain.timeoutMs)
      await closeRooms()
      await admin.close()
    },
  }
}
