import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { AdminEvent } from './admin/events.ts'
import { createAdmin } from './admin/server.ts'
import { currentOperator } from './assembly/current-operator.ts'
import { withDriftLog } from './assembly/drift-log.ts'
import { buildGeneration, type Generation, type LastingRooms } from './assembly/generation.ts'
import { createReload, type ReloadOutcome } from './assembly/reload.ts'
import { logReload } from './assembly/reload-log.ts'
import { servicesDown } from './assembly/services-down.ts'
import { createCache } from './cache/cache.ts'
import { createPartitions } from './cache/cache-key.ts'
import { systemClock } from './clock.ts'
import type { Config } from './config/config.ts'
import type { ConfigResult } from './config/load.ts'
import { freePort } from './edge/free-port.ts'
import { createListener } from './edge/listener.ts'
import { decideReadiness, type Readiness } from './lifecycle/decide-readiness.ts'
import { createLogger } from './logging/logger.ts'
import { createMetrics } from './metrics/create-metrics.ts'

export type GatewayOptions = {
  /** Tells configurations apart in metrics. */
  readonly configHash: string
  readonly version: string
  /** Reads the configuration anew; without it there is nothing to reload. */
  readonly readConfig?: () => Promise<ConfigResult>
}

/** A gateway that accepts requests. */
export type Gateway = {
  /** Origin of the public side, with the port that was really taken. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Puts the configuration in force that its file holds now, as a whole or not at all. */
  reload(): Promise<ReloadOutcome>
  /** Writes down and counts an error that nothing caught; to be followed by `close`. */
  faulted(cause: unknown): void
  /** Drains, then closes everything that was opened; `cut`: not everybody who was waiting got an answer. */
  drain(): Promise<'finished' | 'cut'>
  /** As `drain`, for those who do not ask what came of it. */
  close(): Promise<void>
}

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const noReload = async (): Promise<ConfigResult> => {
  throw new TypeError('this gateway was started without a configuration to read anew')
}

const within = async (work: Promise<unknown>, timeoutMs: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([
    work,
    new Promise((resolve) => {
      timer = setTimeout(resolve, timeoutMs)
    }),
  ])
  clearTimeout(timer)
}

/** What rooms need to end after the last answer. */
const closingMs = 2_000

/** Builds every room, joins them and listens: the only place that knows all. */
export const startGateway = async (config: Config, options: GatewayOptions): Promise<Gateway> => {
  const clock = systemClock
  const logger = createLogger(config.log)
  const metrics = withDriftLog(
    createMetrics({ configHash: options.configHash, version: options.version, processMetrics: true }),
    logger,
  )
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const publicUrl = config.publicUrl.endsWith(':0')
    ? config.publicUrl.replace(/0$/, String(port))
    : config.publicUrl
  let draining = false
  let lastReloadRefused = false

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
  const rooms: LastingRooms = {
    clock,
    logger,
    metrics,
    cache,
    cacheRoom: { cache, partitionOf: createPartitions() },
    publicUrl,
    version: options.version,
    via: `trellis-${randomBytes(6).toString('hex')}`,
    isDraining: () => draining,
    run: (exchange) => current.run(exchange),
  }
  const listener = createListener({
    certificate: undefined,
    http2: false,
    headerBytes: config.limits.headerBytes,
    headersTimeoutMs: 60_000,
    requestTimeoutMs: config.limits.requestTimeoutMs,
    keepAliveTimeoutMs: 72_000,
    readerTimeoutMs: 0,
    connections: 0,
    connectionsPerAddress: 0,
    isExempt: () => false,
    report: () => {},
  })
  let current: Generation = await buildGeneration({ config, hash: options.configHash }, rooms, undefined)
  listener.use(current.handlers)

  const reload = createReload({
    cache,
    current: () => current,
    readConfig: options.readConfig ?? noReload,
    build: (next, hash, last) => buildGeneration({ config: next, hash }, rooms, last),
    replace: (next) => {
      current = next
      listener.use(next.handlers)
      metrics.setConfigHash(next.hash)
    },
    report: (outcome) => {
      lastReloadRefused = outcome.kind !== 'applied' && outcome.kind !== 'unchanged'
      metrics.observe.lifecycle({
        kind: 'reloaded',
        outcome: outcome.kind,
        atSeconds: clock.now() / 1000,
      })
      logReload(logger, outcome)
    },
    endingFailed: (cause) => logger.error({ err: cause }, 'last-configuration-not-ended'),
  })
  const readiness = (): Readiness =>
    decideReadiness({ draining, lastReloadRefused, servicesDown: servicesDown(current.built) })
  metrics.readAtScrape({
    inFlight: () => current.inFlight.count,
    cache: () => ({ ...cache.stats(), maxBytes: config.cache.maxBytes }),
    upstreams: () =>
      current.built.map(({ service }) => ({ service: service.name, ...service.upstream.snapshot() })),
  })
  const admin = createAdmin({
    logger,
    token: config.admin.token.reveal(),
    operator: currentOperator(() => current.operator, reload),
    scrape: async (accept) => ({
      contentType: metrics.contentType(accept),
      text: await metrics.scrape(accept),
    }),
    readiness,
    report: ({ kind, ...facts }: AdminEvent) => logger.info(facts, kind),
  })

  const closeRooms = async (): Promise<void> => {
    await within(current.close([]), closingMs)
    cache.close()
  }
  try {
    await listener.listen(config.listen.host, port)
    await admin.listen({ host: config.admin.host, port: config.admin.port })
  } catch (error) {
    // What was opened is closed by whoever opened it, also when a port is taken.
    await Promise.all([listener.close(0), admin.close(), closeRooms()])
    throw error
  }
  const drain = async (): Promise<'finished' | 'cut'> => {
    draining = true
    const { delayMs, timeoutMs } = current.config.drain
    await sleep(delayMs)
    const cut = await listener.close(timeoutMs)
    await closeRooms()
    await admin.close()
    return cut === 0 ? 'finished' : 'cut'
  }
  const adminPort = (admin.server.address() as AddressInfo).port
  return {
    publicAddress: `http://${urlHost(config.listen.host)}:${port}`,
    adminAddress: `http://${urlHost(config.admin.host)}:${adminPort}`,
    reload,
    faulted: (cause) => {
      metrics.observe.lifecycle({ kind: 'process-fault' })
      logger.fatal({ err: cause }, 'process-fault')
    },
    drain,
    close: async () => {
      await drain()
    },
  }
}
