import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { createDiagnosis, decideReadiness } from './admin/diagnosis.ts'
import type { AdminEvent, Readiness, ReloadOutcome } from './admin/operator.ts'
import { createAdmin } from './admin/server.ts'
import { createCache } from './cache/cache.ts'
import { createPartitions } from './cache/cache-read.ts'
import { systemClock } from './clock.ts'
import type { DrainStart, WorkerLink } from './cluster/worker-link.ts'
import type { Config } from './config/config.ts'
import type { ConfigResult } from './config/load.ts'
import { ratePerSecond } from './config/quantities.ts'
import { configWarnings } from './config/warnings.ts'
import { admit, isRevoked } from './exchange/access.ts'
import type { Service } from './exchange/exchange.ts'
import { refusedRoutes } from './gateway/build-service.ts'
import { connectChangeFeeds, feedNotices } from './gateway/change-feeds.ts'
import { connectDownstreams } from './gateway/downstreams.ts'
import { prepareMembership, refusesUnacknowledged } from './gateway/membership.ts'
import { currentOperator } from './gateway/operator.ts'
import { operatorCache } from './gateway/operator-cache.ts'
import { createReload, logReload, refusedReload } from './gateway/reload.ts'
import {
  type BuiltSnapshot,
  buildSnapshot,
  declaredServices,
  type LastingParts,
  markDocumentsStale,
  replacedServices,
  servicesThat,
} from './gateway/snapshot.ts'
import { type UpstreamIssue, warnOf } from './gateway/upstream-issues.ts'
import { createVerifier, dropDiffering } from './gateway/verifier.ts'
import { createWarmer } from './gateway/warmer.ts'
import {
  metricsOf,
  reloadEverywhere,
  scrapeOf,
  serveWorkers,
  workerStatus,
  workersOf,
} from './gateway/workers.ts'
import { whenKnown } from './http/message.ts'
import { redactTarget } from './http/targets.ts'
import { startWatches } from './observability/access-log.ts'
import { createEmptyingLog, createStateLog } from './observability/event-lines.ts'
import { createHistory } from './observability/history.ts'
import {
  createLogger,
  createLogLevel,
  createSampled,
  factsLogger,
  type LogLevelChange,
} from './observability/logger.ts'
import { createMetrics, observedBy } from './observability/metrics.ts'
import { createBufferedBytes, createUnreadResponses } from './server/buffered-bytes.ts'
import { createPublicPort, freePort } from './server/listener.ts'
import { createInFlight } from './server/overload.ts'
import { Revocations } from './server/revocations.ts'
import { createWebSockets } from './server/websockets.ts'

export type GatewayOptions = {
  /** Identifies the configuration in metrics. */
  readonly configHash: string
  readonly version: string
  /** HTML for `GET /`: the demo says where to go. One of several workers has none. */
  readonly frontPage?: string
  /** Reads the configuration; without it a reload is impossible. */
  readonly readConfig?: () => Promise<ConfigResult>
  /** Ends the program as SIGTERM does, for POST /drain; called once or more. Without it only the gateway is drained. */
  readonly end?: () => void
  /** Where this process is one of several that share the port. */
  readonly worker?: WorkerLink
  /** A level of the log that an operator has set before this process began. */
  readonly logLevel?: LogLevelChange | undefined
  /** The issues of the check at the start, before this process began. */
  readonly findings?: readonly UpstreamIssue[]
}

export type Gateway = {
  /** Origin of the public side, with the port in use. */
  readonly publicAddress: string
  readonly adminAddress: string
  /** Reads the configuration file and applies it completely or not at all. */
  reload(): Promise<ReloadOutcome>
  /** Logs a mismatch between a service and its upstream as a warning, and lists it at /readyz until a reload. */
  warn(issue: UpstreamIssue): void
  /** Logs and counts an uncaught error; call `close` afterwards. */
  faulted(cause: unknown): void
  /** Drains, then closes everything; `cut`: some requests got no response. */
  drain(start?: DrainStart): Promise<'finished' | 'cut'>
  /** As `drain`, without the result. */
  close(): Promise<void>
}

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const noReload = async (): Promise<ConfigResult> => {
  throw new TypeError('this gateway was started without a configuration that can be read again')
}

const within = async (work: Promise<unknown>, timeoutMs: number): Promise<void> => {
  const timeout = new AbortController()
  await Promise.race([work, sleep(timeoutMs, undefined, { signal: timeout.signal }).catch(() => undefined)])
  timeout.abort()
}

/** Longest time to close the parts and the admin side after the last response. */
const closingMs = 2_000

const mebibyte = 1024 * 1024

/** The program and the young generation take up to 96 MiB of the heap; of the rest, half is for requests and for garbage. */
const heapForCache = (limit: number): number => Math.max((limit - 96 * mebibyte) / 2, 16 * mebibyte)

/** Builds all parts of the gateway, connects them and listens. */
export const startGateway = async (config: Config, options: GatewayOptions): Promise<Gateway> => {
  const clock = systemClock
  const logger = createLogger({
    ...config.log,
    dropped: () => metrics.observe.log(),
  })
  const counted = createMetrics({
    configHash: options.configHash,
    version: options.version,
    processMetrics: true,
  })
  const history = createHistory(counted.totals, clock)
  const metrics = observedBy(counted, createStateLog(logger), createEmptyingLog(logger), {
    pipeline: history.observe,
  })
  const logLevel = createLogLevel(logger, clock.now)
  if (options.logLevel !== undefined) logLevel.set(options.logLevel)
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const publicUrl = config.publicUrl.endsWith(':0')
    ? config.publicUrl.replace(/0$/, String(port))
    : config.publicUrl
  let draining = false
  let lastReload: ReloadOutcome | undefined
  /** By service and kind: the check finds at most one of each. */
  const issues = new Map<string, UpstreamIssue>()
  const recordIssue = (issue: UpstreamIssue): void => {
    issues.set(`${issue.service} ${issue.kind}`, issue)
  }
  for (const issue of options.findings ?? []) recordIssue(issue)

  const { worker } = options
  const membership = await prepareMembership({ config, clock, logger, metrics, worker })
  if (membership === undefined) metrics.setAlone()
  const processes = worker === undefined ? 1 : workersOf(config)
  const maxBytes = Math.floor(config.cache.maxBytes / processes)
  const buffered = createBufferedBytes({
    maxBytes: () => current.config.limits.bufferedBytes,
    report: metrics.observe.edge,
  })
  const cache = createCache({
    ...membership?.forCache,
    maxBytes,
    maxHeapBytes: heapForCache(getHeapStatistics().heap_size_limit),
    maxEntryBytes: config.cache.maxEntryBytes,
    admission: config.cache.admission,
    budget: buffered.budget,
    compression: {
      codings: config.cache.compression.encodings,
      minBytes: config.cache.compression.minBytes,
    },
    clock,
    report: metrics.observe.cache,
  })
  const coherence = membership?.join({
    cache,
    documentsStale: (name, collection) => markDocumentsStale(current.built, name, collection),
    contacted: (invalidations) => downstreams.contacted(invalidations),
  })
  const downstreams = connectDownstreams({ clock, coherence, metrics, logger })
  const lines = factsLogger(logger)
  const watches = await startWatches(config, { lines, metrics, version: options.version })
  const inFlight = createInFlight()
  const revocations = new Revocations(({ service: name, address, headers }, kind) => {
    const service = serviceNamed(name)
    if (service === undefined || (kind === 'websocket' && !service.websockets)) return false
    const { access } = service
    return (
      access === undefined || whenKnown(admit(access, address, headers), (admission) => !isRevoked(admission))
    )
  })
  const websockets = createWebSockets({
    limits: () => current.config.limits.websockets,
    revocations,
    report: metrics.observe.websockets,
  })
  const publicPort = createPublicPort(config, {
    inFlight,
    current: () => current,
    report: (event) => {
      metrics.observe.edge(event)
      if (event.kind === 'pressure-changed')
        logger.warn({ pressure: event.level, signal: event.signal }, event.kind)
    },
    reportLifecycle: metrics.observe.lifecycle,
  })
  const serviceNamed = (name: string): Service | undefined =>
    current.built.find(({ service }) => service.name === name)?.service
  /** For requests of the gateway itself. */
  const beginOwn = () => {
    const { inFlight: requests, run, snapshot } = current
    requests.enter()
    return { run, snapshot, end: requests.leave }
  }
  const warmer = createWarmer({
    limits: config.cache.warm,
    clock,
    begin: beginOwn,
    report: metrics.observe.pipeline,
    finished: (counts) => logger.info(counts, 'cache-warmed'),
  })
  const feeds = connectChangeFeeds({
    ...{ clock, cache, worker, metrics, logger, serviceNamed },
    broadcast: downstreams.broadcast,
    stores: membership?.stores,
    current: () => current,
  })
  const lasting: LastingParts = {
    clock,
    logger,
    metrics,
    cache,
    cacheContext: {
      cache,
      budget: buffered.budget,
      partitionOf: createPartitions(),
    },
    writeRegistryFor: downstreams.writeRegistryFor,
    downstreamOf: downstreams.of,
    operatorCache: operatorCache({
      cache,
      warmer,
      broadcast: downstreams.broadcast,
      worker,
      refusesUnacknowledged: refusesUnacknowledged(config),
    }),
    stores: membership?.stores,
    mayRemember: () => coherence?.quarantine() === undefined,
    tableChanged: (name) => {
      const selector = { kind: 'matching', matches: (service: string) => service === name } as const
      cache.purge({ selector, mode: 'hard', dryRun: false })
      // Receivers have its responses under other tags.
      downstreams.stale([{ kind: 'prefix', service: name, prefix: '', mode: 'hard' }])
    },
    feedLease: feeds.lease,
    watches: watches.watches,
    spans: watches.spans,
    accessLog: watches.accessLog,
    overload: publicPort.overload,
    buffered,
    unread: createUnreadResponses({
      maxBytes: () => current.config.limits.bufferedBytes,
      forced: buffered.forced,
      report: metrics.observe.edge,
    }),
    websockets,
    revocations,
    inFlight,
    sampled: createSampled(10_000, clock.monotonic),
    poisoned: new Set(),
    publicUrl,
    version: options.version,
    frontPage: options.frontPage,
    via: `trellis-${randomBytes(6).toString('hex')}`,
    isDraining: () => draining,
  }
  let current: BuiltSnapshot = await buildSnapshot({ config, hash: options.configHash }, lasting, undefined)
  const use = (): void => {
    publicPort.use()
    downstreams.use(current.built.map(({ service }) => service))
    metrics.setConfig({ hash: current.hash, ...declaredServices(current) })
  }
  use()

  /** Configurations that finish their requests. */
  const ending = new Set<BuiltSnapshot>()
  const reload = createReload({
    cache,
    current: () => current,
    readConfig: options.readConfig ?? noReload,
    build: (next, hash, last) => buildSnapshot({ config: next, hash }, lasting, last),
    replace: (next) => {
      ending.add(current)
      current = next
      feeds.useBuilt(next.built)
      issues.clear()
      use()
    },
    broadcast: async (invalidations) =>
      invalidations.length === 0 ? undefined : downstreams.broadcast(invalidations),
    report: (outcome) => {
      lastReload = outcome
      metrics.observe.lifecycle({
        kind: 'reloaded',
        outcome: outcome.kind,
        atSeconds: clock.now() / 1000,
      })
      logReload(logger, outcome)
    },
    ended: (last) => ending.delete(last),
    endingFailed: (cause) => logger.error({ err: cause }, 'last-configuration-not-ended'),
  })
  const readiness = (): Readiness => {
    const { starting, workersMissing } = workerStatus(worker)
    return decideReadiness({
      draining,
      lastReloadRefused: refusedReload(lastReload).length > 0,
      servicesDown: servicesThat('down', current.built),
      servicesUnknown: servicesThat('unknown', current.built),
      starting: starting || coherence?.isJoining() === true,
      workersMissing,
      memoryTrusted: coherence?.quarantine() === undefined,
      silentFeeds: feeds
        .statuses()
        .filter(({ state }) => state !== 'heard')
        .map(({ service }) => service),
      laggingServices: downstreams.statuses().filter(({ behind }) => behind),
      findings: [
        ...configWarnings(current.config).map(({ path }) => ({ finding: 'config', setting: path }) as const),
        ...[...issues.values()].map(({ service, kind }) => ({ finding: kind, service })),
      ],
    })
  }
  metrics.readAtScrape({
    publicSide: () => ({ ...publicPort.traffic(), inFlight: inFlight.count, draining }),
    bufferedBytes: () => buffered.bytes,
    websockets: () => {
      const open = websockets.open()
      const configured = current.built.filter(({ service }) => service.websockets)
      // Those of a removed service count until the last one has ended.
      const names = new Set([...configured.map(({ service }) => service.name), ...open.keys()])
      return [...names].map((service) => ({ service, open: open.get(service) ?? 0 }))
    },
    changes: feeds.statuses,
    receivers: downstreams.statuses,
    cache: () => ({ ...cache.stats(), maxBytes }),
    upstreams: () =>
      current.built.map(({ service }) => ({ service: service.name, ...service.upstream.snapshot() })),
    replacedUpstreams: () =>
      replacedServices([...ending], current).map(({ service }) => ({
        service: service.name,
        ...service.upstream.snapshot(),
      })),
    ...(worker === undefined ? {} : { workers: worker.status }),
  })
  const reloadAll = worker === undefined ? reload : () => reloadEverywhere(worker)
  const diagnosis = { history, logLevel }
  worker?.onRequest(
    serveWorkers({
      cache,
      warmer,
      metrics,
      diagnosis,
      reload,
      issueFound: recordIssue,
      applyFeedMessage: feeds.receiveMessage,
    }),
  )
  const admin = createAdmin({
    logger,
    token: config.admin.token.reveal(),
    operator: currentOperator(
      () => current.operator,
      { reload: reloadAll, drain: options.end ?? (() => void drain()), changes: feeds },
      { ...createDiagnosis({ ...diagnosis, now: clock.now, worker }), purged: history.purged },
    ),
    scrape: (accept) => scrapeOf(worker, metrics, accept),
    metrics: () => metricsOf(worker, metrics),
    readiness,
    notices: () => [
      ...refusedReload(lastReload),
      ...configWarnings(current.config).map(({ path, message }) => ({ subject: path, text: message })),
      ...[...issues.values()].map(({ service, text }) => ({ subject: service, text })),
      ...refusedRoutes(current.built),
      ...feedNotices(feeds),
    ],
    report: (event: AdminEvent) => {
      const { kind, ...facts } = event
      const held = event.kind === 'admin-refused' ? lasting.sampled.pass(`${kind} ${event.reason}`) : 0
      if (held !== undefined) logger.info({ ...facts, ...(held === 0 ? {} : { held }) }, kind)
    },
  })

  const closeParts = async (): Promise<void> => {
    verifier.close()
    warmer.close()
    feeds.close()
    await within(downstreams.close(), closingMs)
    await within(current.close([]), closingMs)
    await within(watches.close(), closingMs)
    if (coherence !== undefined) await within(coherence.close(), closingMs)
    membership?.close()
    cache.close()
    history.close()
  }
  /** A client that sends half a request, or reads nothing, would keep the process from ending. */
  const closeAdmin = async (): Promise<void> => {
    const closed = admin.close()
    await within(closed, closingMs)
    admin.server.closeAllConnections()
    await closed
  }
  const verifier = createVerifier({
    verification: cache.verification,
    perSecond: (ratePerSecond(config.cache.verify.rate) ?? 0) / processes,
    broadcastMs: config.cache.shared.leaseMs,
    begin: beginOwn,
    report: metrics.observe.pipeline,
    differed: dropDiffering({ cache: lasting.operatorCache, history, logger }),
    varies: ({ service, target }) =>
      logger.info({ service, target: redactTarget(target) }, 'verified-varies'),
  })
  await coherence?.start()
  feeds.useBuilt(current.built)
  try {
    await publicPort.listen(config.listen.host, port)
    await admin.listen({
      host: config.admin.host,
      port: config.admin.port,
      listenTextResolver: (address) => `admin side listens on ${address}`,
    })
  } catch (error) {
    // Close everything that was opened, for example when a port is in use.
    await Promise.all([publicPort.close(0), closeAdmin(), closeParts()])
    throw error
  }
  const drain = async (start: DrainStart = 'after-delay'): Promise<'finished' | 'cut'> => {
    draining = true
    const { delayMs, timeoutMs } = current.config.drain
    if (start === 'after-delay') await sleep(delayMs)
    websockets.drain()
    const outcome = await publicPort.close(timeoutMs)
    await Promise.all([closeParts(), closeAdmin()])
    return outcome
  }
  const adminPort = (admin.server.address() as AddressInfo).port
  return {
    publicAddress: `${config.listen.tls.cert.isSet ? 'https' : 'http'}://${urlHost(config.listen.host)}:${port}`,
    adminAddress: `http://${urlHost(config.admin.host)}:${adminPort}`,
    reload,
    warn: (issue) => {
      recordIssue(issue)
      warnOf(logger, issue)
    },
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
