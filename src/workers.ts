import { isDeepStrictEqual } from 'node:util'
import { systemClock } from './clock.ts'
import { startSupervisor } from './cluster/supervisor.ts'
import type { DrainStart, WorkerEvent, WorkerLink } from './cluster/worker-link.ts'
import type { Config, ServiceConfig } from './config/config.ts'
import type { ConfigResult } from './config/load.ts'
import { type EmbeddedUpstream, startEmbedded } from './gateway/embedded-upstreams.ts'
import { type UpstreamIssue, warnOf } from './gateway/upstream-issues.ts'
import {
  createWorkersConfig,
  fromHanded,
  type HandedConfig,
  reloadEverywhere,
  workersOf,
} from './gateway/workers.ts'
import { type Gateway, type GatewayOptions, startGateway } from './gateway.ts'
import { createLogger, createLogLevel, type LogLevelChange } from './observability/logger.ts'
import { freePort } from './server/listener.ts'

/** The message of the parent to each worker. */
type WorkerSettings = {
  /** Of the public side, shared by all workers. */
  readonly port: number
  /** Origins of the embedded upstreams, by service. */
  readonly embedded: Readonly<Record<string, string>>
  readonly config: HandedConfig
  /** Of the start check, as long as the configuration is the one that it has checked. */
  readonly issues: readonly UpstreamIssue[]
  /** The level of the log that an operator has set. */
  readonly logLevel: LogLevelChange | undefined
}

type WorkersOptions = {
  /** The module that each worker runs. */
  readonly file: string
  /** The configuration file with environment and secrets filled in. */
  readonly filled: unknown
} & Required<Pick<GatewayOptions, 'readConfig' | 'end'>>

/** Added to the time of draining. */
const marginMs = 3_000

const startEmbeddedUpstreams = async (
  config: Config,
  publicUrl: string,
): Promise<ReadonlyMap<string, EmbeddedUpstream>> => {
  const started = new Map<string, EmbeddedUpstream>()
  for (const service of config.services) {
    const upstream = await startEmbedded(service, config.limits, publicUrl)
    if (upstream !== undefined) started.set(service.name, upstream)
  }
  return started
}

const logEvent = (logger: ReturnType<typeof createLogger>, { kind, ...facts }: WorkerEvent): void => {
  if (kind === 'worker-ended') logger.warn(facts, kind)
  else logger.info(facts, kind)
}

/** Starts and supervises the processes that share the port. */
const startWorkers = async (config: Config, options: WorkersOptions): Promise<Gateway> => {
  const logger = createLogger({ ...config.log, dropped: () => {} })
  const logLevel = createLogLevel(logger, systemClock.now)
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const publicUrl = config.publicUrl.replace(/:0$/, `:${port}`)
  const upstreams = await startEmbeddedUpstreams(config, publicUrl)
  const embedded = Object.fromEntries([...upstreams].map(([name, { origin }]) => [name, origin]))
  const handed = createWorkersConfig(options.filled, options.readConfig)
  const checked = handed.inForce
  const issues: UpstreamIssue[] = []
  const closeUpstreams = async (): Promise<void> => {
    for (const upstream of upstreams.values()) await upstream.close()
  }
  try {
    const supervisor = await startSupervisor({
      workers: workersOf(config),
      program: { file: options.file, args: process.argv.slice(2) },
      settings: (): WorkerSettings => ({
        port,
        embedded,
        config: handed.inForce,
        issues: isDeepStrictEqual(handed.inForce, checked) ? issues : [],
        logLevel: logLevel.change(),
      }),
      through: (question, ask) => {
        // The parent has its own log, and starts workers later.
        if (question.topic === 'log-level') logLevel.set(question.content as LogLevelChange)
        return handed.through(question, ask)
      },
      end: options.end,
      stale: (settings) => handed.stale((settings as WorkerSettings).config),
      graceMs: config.drain.delayMs + config.drain.timeoutMs + marginMs,
      clock: systemClock,
      report: (event) => logEvent(logger, event),
    })
    const drain = async (start?: DrainStart): Promise<'finished' | 'cut'> => {
      const outcome = await supervisor.close(start)
      await closeUpstreams()
      return outcome
    }
    return {
      ...(supervisor.addresses as Pick<Gateway, 'publicAddress' | 'adminAddress'>),
      reload: () => reloadEverywhere(supervisor),
      warn: (issue) => {
        issues.push(issue)
        warnOf(logger, issue)
        void supervisor.ask({ topic: 'issue', content: issue })
      },
      faulted: (cause) => logger.fatal({ err: cause }, 'process-fault'),
      drain,
      close: async () => {
        await drain()
      },
    }
  } catch (error) {
    await closeUpstreams()
    throw error
  }
}

/** Starts a gateway: in this process, or in as many as the configuration asks for. */
export const startProcesses = (config: Config, options: WorkersOptions & GatewayOptions): Promise<Gateway> =>
  workersOf(config) === 1 ? startGateway(config, options) : startWorkers(config, options)

/** Embedded upstreams run in the parent, so that all workers use the same ones. */
const withOrigins = (config: Config, { embedded, port }: WorkerSettings): Config => ({
  ...config,
  listen: { ...config.listen, port },
  services: config.services.map((service): ServiceConfig => {
    const origin = embedded[service.name]
    if (origin === undefined) return service
    return { ...service, upstream: { ...service.upstream, targets: [origin] } } as ServiceConfig
  }),
})

/** The configuration that a worker got from its parent. */
export const handedConfig = (link: WorkerLink): ConfigResult =>
  fromHanded((link.assignment.settings as WorkerSettings).config)

/** Starts a gateway in a worker process; the parent ends it. */
export const startAsWorker = async (
  config: Config,
  options: GatewayOptions,
  link: WorkerLink,
): Promise<Gateway> => {
  const settings = link.assignment.settings as WorkerSettings
  const withOwnOrigins = (result: ConfigResult): ConfigResult =>
    result.kind === 'ok' ? { ...result, config: withOrigins(result.config, settings) } : result
  let latest = settings.config
  const worker: WorkerLink = {
    ...link,
    onRequest: (response) =>
      link.onRequest((question) => {
        if (question.topic === 'reload') latest = question.content as HandedConfig
        return response(question)
      }),
  }
  try {
    const gateway = await startGateway(withOrigins(config, settings), {
      ...options,
      readConfig: async () => withOwnOrigins(fromHanded(latest)),
      worker,
      findings: settings.issues,
      logLevel: settings.logLevel,
    })
    link.onDrain((start) => {
      void gateway.drain(start).then((outcome) => process.exit(outcome === 'finished' ? 0 : 1))
    })
    link.ready({ publicAddress: gateway.publicAddress, adminAddress: gateway.adminAddress })
    return gateway
  } catch (error) {
    link.failed(error)
    throw error
  }
}
