import { systemClock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import type { EmbeddedUpstream } from '../demo/embedded-server.ts'
import { freePort } from '../edge/free-port.ts'
import type { Gateway } from '../gateway.ts'
import { createLogger } from '../logging/logger.ts'
import type { WorkerEvent } from '../workers/events.ts'
import { startSupervisor } from '../workers/supervisor.ts'
import { createWorkersConfig, type HandedConfig } from './handed-config.ts'
import { startEmbedded } from './start-embedded.ts'
import { warnOf } from './upstream-findings.ts'
import { reloadEverywhere } from './worker-questions.ts'
import { workersOf } from './workers-of.ts'

/** What each worker is told beside the configuration. */
export type WorkerSettings = {
  /** Of the public side: taken once, shared by all. */
  readonly port: number
  /** Origins of the embedded upstreams, by service. */
  readonly embedded: Readonly<Record<string, string>>
  readonly config: HandedConfig
}

export type WorkersOptions = {
  /** The program that each worker runs. */
  readonly file: string
  /** As the configuration was read. */
  readonly filled: unknown
  readonly readConfig: () => Promise<ConfigResult>
  /** A worker was asked to end the program as SIGTERM does; called once or more. */
  readonly end: () => void
}

/** Beyond what draining may take. */
const marginMs = 3_000

const startUpstreams = async (
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

const tell = (logger: ReturnType<typeof createLogger>, { kind, ...facts }: WorkerEvent): void => {
  if (kind === 'worker-ended') logger.warn(facts, kind)
  else logger.info(facts, kind)
}

/** Starts the processes that share the port, and looks after them. */
export const startWorkers = async (config: Config, options: WorkersOptions): Promise<Gateway> => {
  const logger = createLogger({ ...config.log, access: 'off', dropped: () => {} })
  const port = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const publicUrl = config.publicUrl.replace(/:0$/, `:${port}`)
  const upstreams = await startUpstreams(config, publicUrl)
  const embedded = Object.fromEntries([...upstreams].map(([name, { origin }]) => [name, origin]))
  const handed = createWorkersConfig(options.filled, options.readConfig)
  const closeUpstreams = async (): Promise<void> => {
    for (const upstream of upstreams.values()) await upstream.close()
  }
  try {
    const supervisor = await startSupervisor({
      workers: workersOf(config),
      program: { file: options.file, args: process.argv.slice(2) },
      leaseMs: config.cache.shared.leaseMs,
      settings: (): WorkerSettings => ({ port, embedded, config: handed.inForce }),
      through: handed.through,
      end: options.end,
      outdated: (settings) => handed.outdated((settings as WorkerSettings).config),
      graceMs: config.drain.delayMs + config.drain.timeoutMs + marginMs,
      clock: systemClock,
      report: (event) => tell(logger, event),
    })
    const drain = async (): Promise<'finished' | 'cut'> => {
      const outcome = await supervisor.close()
      await closeUpstreams()
      return outcome
    }
    return {
      ...(supervisor.addresses as Pick<Gateway, 'publicAddress' | 'adminAddress'>),
      reload: () => reloadEverywhere(supervisor),
      warn: (finding) => warnOf(logger, finding),
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
