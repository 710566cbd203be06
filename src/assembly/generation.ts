import type { Logger } from 'pino'
import type { Cache } from '../cache/cache.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { EdgeHandlers } from '../edge/listener.ts'
import { createEdge } from '../edge/server.ts'
import { type ErrorCode, errorTable, type GatewayError } from '../errors.ts'
import type { Answer } from '../http/message.ts'
import { createInFlight, type InFlight } from '../lifecycle/in-flight.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import type { PipelineEvent } from '../pipeline/events.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { CacheRoom } from '../pipeline/phases/cache.ts'
import { buildPhases } from '../pipeline/phases.ts'
import { createPipeline } from '../pipeline/run.ts'
import { clientInterim, clientSignal } from '../upstream/client-signal.ts'
import { createOperator } from './admin-operator.ts'
import { type BuiltService, buildService, closeServices, withRules } from './build-service.ts'
import type { GenerationOperator } from './current-operator.ts'
import { decideAdoption } from './decide-adoption.ts'

/** What outlives a configuration. */
export type LastingRooms = {
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly cache: Cache
  readonly cacheRoom: CacheRoom
  readonly publicUrl: string
  readonly version: string
  /** Pseudonym in Via. */
  readonly via: string
  isDraining(): boolean
  /** The way of a request by the configuration in force: for items of a batch that began under another one. */
  run(exchange: Received): Answer
}

/** Everything that one configuration makes of the gateway; replaced as a whole. */
export type Generation = {
  readonly config: Config
  readonly hash: string
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
  readonly handlers: EdgeHandlers
  readonly operator: GenerationOperator
  readonly inFlight: InFlight
  run(exchange: Received): Answer
  /** Ends what is not used by `next`; to be called when nothing is under way. */
  close(next: readonly BuiltService[]): Promise<void>
}

/** Codes that are not in the error table come from validators, which find fault with clients only. */
const isClientFault = (code: string): boolean =>
  !(code in errorTable) || errorTable[code as ErrorCode].fault === 'client'

const buildServices = async (
  config: Config,
  rooms: LastingRooms,
  last: Generation | undefined,
): Promise<readonly BuiltService[]> => {
  const { clock, metrics, publicUrl, run } = rooms
  const parts = { config, publicUrl, clock, metrics, run }
  const built: BuiltService[] = []
  try {
    for (const service of config.services) {
      const known = last?.built.find((one) => one.config.name === service.name)
      const adoption =
        known === undefined || last === undefined
          ? 'nothing'
          : decideAdoption(
              { service: known.config, limits: last.config.limits },
              { service, limits: config.limits },
            )
      if (known === undefined || adoption === 'nothing') built.push(await buildService(service, parts))
      else if (adoption === 'service') built.push(known)
      else if (adoption === 'rules') built.push(withRules(known, service))
      else built.push(await buildService(service, parts, known.way))
    }
    // A site that is described anew has read its index before it is asked for it, when the upstream is there to be read.
    const described = built.filter((one) => !last?.built.some(({ discovery }) => discovery === one.discovery))
    if (last !== undefined) await Promise.all(described.map(({ discovery }) => discovery?.refresh()))
    return built
  } catch (error) {
    await closeServices(built, last?.built ?? [])
    throw error
  }
}

/** Builds all that a configuration asks for, and takes over from the last one what has not changed. */
export const buildGeneration = async (
  { config, hash }: { readonly config: Config; readonly hash: string },
  rooms: LastingRooms,
  last: Generation | undefined,
): Promise<Generation> => {
  const { cache, clock, logger, metrics, publicUrl, version } = rooms
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
      cacheRoom: rooms.cacheRoom,
      forwarding: { via: rooms.via, publicHost: new URL(publicUrl).host },
    }),
  )
  const built = await buildServices(config, rooms, last)
  const inFlight = createInFlight()
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
    isDraining: rooms.isDraining,
    inFlight,
  })
  return {
    config,
    hash,
    built,
    handlers: edge,
    operator: createOperator({ config, publicUrl, version, cache, built }),
    inFlight,
    run,
    close: async (next) => {
      await edge.close()
      await closeServices(built, next)
    },
  }
}
