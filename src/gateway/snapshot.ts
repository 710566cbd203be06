import type { Socket } from 'node:net'
import type { Cache } from '../cache/cache.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { type ErrorCode, type ErrorFacts, errorTable, type GatewayError } from '../errors.ts'
import { overloaded, type ShedOptions } from '../exchange/admit.ts'
import { type CompressResponse, createCompression } from '../exchange/compression.ts'
import type { PipelineEvent } from '../exchange/events.ts'
import type { OpenSpans } from '../exchange/exchange.ts'
import { ConfigSnapshot, type RequestContext, type Run } from '../exchange/exchange.ts'
import { type HandleDeps, handle } from '../exchange/handle.ts'
import type { CacheDeps, ExchangeWatch } from '../exchange/ports.ts'
import { isStreamCoding } from '../http/content-coding.ts'
import type { AccessLog } from '../observability/access-log.ts'
import { type createLogger, type createSampled, factsLogger } from '../observability/logger.ts'
import type { DeclaredServices } from '../observability/metrics.ts'
import type { BufferedBytes, UnreadResponses } from '../server/buffered-bytes.ts'
import { createInFlight, type InFlight, type Overload } from '../server/overload.ts'
import { buildRateLimits, type RateLimits } from '../server/rate-limiter.ts'
import type { Revocations } from '../server/revocations.ts'
import { createEdge, type Edge } from '../server/server.ts'
import type { WebSockets } from '../server/websockets.ts'
import {
  type BuiltService,
  buildService,
  closeServices,
  decideAdoption,
  type ServiceParts,
} from './build-service.ts'
import type { Downstreams } from './downstreams.ts'
import { createOperator, type SnapshotOperator } from './operator.ts'
import type { OperatorCache } from './operator-cache.ts'
import { workersOf } from './workers.ts'

/** Parts of the gateway that outlive a configuration. */
export type LastingParts = Omit<ServiceParts, 'config' | 'budget'> & {
  readonly logger: ReturnType<typeof createLogger>
  readonly cache: Cache
  readonly cacheContext: Omit<CacheDeps, 'forwarding' | 'writeRegistry' | 'clock' | 'report'>
  readonly writeRegistryFor: Downstreams['writeRegistryFor']
  readonly operatorCache: OperatorCache
  readonly overload: Overload
  readonly buffered: BufferedBytes
  /** Responses that wait for slow clients. */
  readonly unread: UnreadResponses
  readonly inFlight: InFlight
  /** Samples log lines of frequent refusals. */
  readonly sampled: ReturnType<typeof createSampled>
  readonly version: string
  readonly frontPage: string | undefined
  readonly via: string
  readonly websockets: WebSockets
  readonly revocations: Revocations
  /** Connections that take no further request. */
  readonly poisoned: Set<Socket>
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly accessLog: AccessLog | undefined
  readonly spans: OpenSpans | undefined
  isDraining(): boolean
}

/** Everything built from one configuration; replaced as a whole. */
export type BuiltSnapshot = {
  readonly config: Config
  readonly hash: string
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
  readonly handlers: Omit<Edge, 'close'>
  readonly operator: SnapshotOperator
  readonly inFlight: InFlight
  readonly limits: RateLimits | undefined
  readonly snapshot: ConfigSnapshot
  readonly run: Run
  /** Closes what `next` does not use; call it when no request is in flight. */
  close(next: readonly BuiltService[]): Promise<void>
}

/** Codes outside the error table come from validators: the client's fault. */
const faultOf = (code: string): ErrorFacts['fault'] =>
  code in errorTable ? errorTable[code as ErrorCode].fault : 'client'

/** Builds a service, and takes over what it can from the previous one of the same name. */
const builtFor = async (
  service: ServiceConfig,
  parts: ServiceParts,
  last: BuiltSnapshot | undefined,
): Promise<BuiltService> => {
  const previous = last?.built.find(({ config }) => config.name === service.name)
  if (previous === undefined || last === undefined) return buildService(service, parts)
  const adoption = decideAdoption(
    { service: previous.config, limits: last.config.limits },
    { service, limits: parts.config.limits },
  )
  if (adoption === 'service') return previous
  const { access } = previous
  return buildService(
    service,
    parts,
    adoption === 'upstream' ? { upstream: previous.upstream, access } : { access },
  )
}

const buildServices = async (
  config: Config,
  lasting: LastingParts,
  last: BuiltSnapshot | undefined,
): Promise<readonly BuiltService[]> => {
  const parts = { ...lasting, config, budget: lasting.buffered.budget }
  const built: BuiltService[] = []
  try {
    for (const service of config.services) built.push(await builtFor(service, parts, last))
    // A new discovery reads the index of its site before the first request for it; at a start the upstream may not be there yet.
    const described = built.filter(
      (service) => !last?.built.some(({ upstreamRoutes }) => upstreamRoutes === service.upstreamRoutes),
    )
    const waits = described.filter(
      ({ config: { upstream } }) => last !== undefined || upstream.targets === 'embedded',
    )
    await Promise.all(waits.map(({ upstreamRoutes }) => upstreamRoutes?.refresh()))
    return built
  } catch (error) {
    await closeServices(built, last?.built ?? [])
    throw error
  }
}

/** Shorter contents are not worth the work, whether they are stored or not. */
const compressionOf = ({ cache: { compression } }: Config): CompressResponse | undefined =>
  compression.encodings.length === 0
    ? undefined
    : createCompression({
        codings: compression.encodings.filter(isStreamCoding),
        minBytes: compression.minBytes,
      })

/** Builds a configuration snapshot from a configuration, and takes over what has not changed. */
export const buildSnapshot = async (
  { config, hash }: { readonly config: Config; readonly hash: string },
  lasting: LastingParts,
  last: BuiltSnapshot | undefined,
): Promise<BuiltSnapshot> => {
  const { clock, logger, metrics, publicUrl, version } = lasting
  const lines = factsLogger(logger)
  /** Clients decide how many requests fail: one log line for each service and code in ten seconds. */
  const admitLine = (service: string, code: string): number | undefined =>
    lasting.sampled.pass(`${service} ${code}`)
  const refusalLine = ({ kind, ...facts }: Extract<PipelineEvent, { kind: 'request-refused' }>): void => {
    // `failed` logs faults of the gateway or an upstream, with their cause.
    if (faultOf(facts.code) !== 'client') return
    // The access line of the request has the code.
    if (lasting.accessLog !== undefined && facts.origin === 'client') return
    const admitted = admitLine(facts.service, facts.code)
    if (admitted !== undefined) lines.info({ ...facts, held: admitted }, kind)
  }
  const report = (event: PipelineEvent): void => {
    metrics.observe.pipeline(event)
    switch (event.kind) {
      case 'undeclared-parameters': {
        const { service, count, handling, kind } = event
        const admitted = handling === 'stripped' ? admitLine(service, kind) : undefined
        if (admitted !== undefined) lines.info({ service, count, held: admitted }, 'parameters-stripped')
        return
      }
      case 'access-refused': {
        if (lasting.accessLog !== undefined) return
        const { kind, service, reason } = event
        const admitted = admitLine(service, `${kind} ${reason}`)
        if (admitted !== undefined) lines.info({ service, reason, held: admitted }, kind)
        return
      }
      case 'request-refused':
        refusalLine(event)
    }
  }
  const failed = (error: GatewayError, { id, service, record }: RequestContext): void => {
    if (error.facts.fault === 'client') return
    const admitted = admitLine(service.name, error.code)
    if (admitted === undefined) return
    logger.warn(
      { held: admitted, id, service: service.name, route: record.route, code: error.code, err: error.cause },
      'request-failed',
    )
  }
  const limits = buildRateLimits(
    config,
    {
      clock,
      partitionOf: lasting.stores?.partitionOf ?? lasting.cacheContext.partitionOf,
      store: lasting.stores?.limits,
      processes: lasting.stores === undefined ? workersOf(config) : 1,
    },
    last?.limits,
  )
  const shedding: ShedOptions = {
    admits: lasting.overload.admits,
    retryAfterSeconds: Math.ceil(config.overload.retryAfterMs / 1000),
  }
  const writeRegistry = lasting.writeRegistryFor(config)
  const deps: HandleDeps = {
    ...lasting.cacheContext,
    ...(writeRegistry === undefined ? {} : { writeRegistry }),
    clock,
    finished: metrics.observe.pipeline,
    report,
    failed,
    forwarding: { via: lasting.via },
    limits: limits && { count: limits.count, report: metrics.observe.edge },
    compress: compressionOf(config),
    watches: lasting.watches ?? [],
    spans: lasting.spans,
    overload: config.overload.intervalMs === 0 && config.overload.inFlight === 0 ? undefined : shedding,
  }
  const run: Run = (requestContext) => handle(deps, requestContext)
  const built = await buildServices(config, lasting, last)
  for (const { service } of built)
    if (service.websockets)
      metrics.observe.websockets({ kind: 'websockets-configured', service: service.name })
  const snapshot = new ConfigSnapshot(built.map(({ service }) => service))
  const inFlight = createInFlight(lasting.inFlight)
  const edge = await createEdge({
    limits: config.limits,
    frontPage: lasting.frontPage,
    trustedProxies: config.trustedProxies,
    cors: config.cors.origins.length === 0 ? undefined : config.cors,
    poisoned: lasting.poisoned,
    snapshot,
    certificates: config.listen.tls.certificates,
    logger,
    run,
    refusedEarly: ({ id, service, error, client, request }) => {
      const refusal = {
        id,
        service: service?.name ?? 'none',
        code: error.code,
        status: error.facts.status,
      }
      report({ kind: 'request-refused', route: 'unmatched', origin: 'client', ...refusal })
      lasting.accessLog?.refused({ ...refusal, address: client.address, request })
    },
    report: metrics.observe.edge,
    unread: lasting.unread,
    buffered: lasting.buffered,
    websockets: lasting.websockets,
    revocations: lasting.revocations,
    isDraining: lasting.isDraining,
    turnedAway: () =>
      lasting.overload.admits('hit') ? undefined : overloaded(shedding, ['Connection', 'close']),
    inFlight,
  })
  return {
    config,
    hash,
    built,
    handlers: edge,
    operator: createOperator({ config, publicUrl, version, cache: lasting.operatorCache, built }),
    inFlight,
    limits,
    snapshot,
    run,
    close: async (next) => {
      await edge.close()
      await closeServices(built, next)
    },
  }
}

/** Services of earlier configurations whose upstreams the current one does not use, each upstream once. */
export const replacedServices = (
  ending: readonly BuiltSnapshot[],
  { built }: Pick<BuiltSnapshot, 'built'>,
): readonly BuiltService[] => {
  const used = new Set(built.map(({ upstream }) => upstream))
  const replaced = new Map(ending.flatMap((last) => last.built.map((one) => [one.upstream, one])))
  return [...replaced.values()].filter(({ upstream }) => !used.has(upstream))
}

/** Services of which no useful response can be expected, or of which nobody knows. */
export const servicesThat = (are: 'down' | 'unknown', built: readonly BuiltService[]): readonly string[] =>
  built.filter(({ service }) => service.upstream.snapshot()[are]).map(({ service }) => service.name)

export const declaredServices = ({
  built,
  config,
}: {
  readonly built: readonly BuiltService[]
  readonly config: Pick<Config, 'rateLimits'>
}): DeclaredServices => ({
  services: built.map(({ service: { name, contract }, upstream: { targets } }) => ({
    name,
    hasIndex: contract.hasIndex,
    targets,
  })),
  limits: config.rateLimits.map(({ name }) => name),
})

/** Marks the gateway's own documents of a site stale after a write in another process. */
export const markDocumentsStale = (
  built: readonly BuiltService[],
  name: string,
  collection: string,
): void => {
  built.find(({ config }) => config.name === name)?.service.local.documents?.written(collection)
}
