import type { Socket } from 'node:net'
import type { Cache } from '../../cache/cache.ts'
import type { Config, ServiceConfig } from '../../config/config.ts'
import { GatewayError } from '../../errors.ts'
import { type CompressResponse, createCompression } from '../../exchange/compression.ts'
import { ConfigSnapshot } from '../../exchange/config-snapshot.ts'
import { type HandleDeps, handle } from '../../exchange/handle.ts'
import type { CacheDeps, ExchangeWatch, ShedOptions } from '../../exchange/ports.ts'
import type { HandleRequest } from '../../exchange/request-context.ts'
import type { OpenSpans } from '../../exchange/spans.ts'
import { isStreamCoding } from '../../http/content-coding.ts'
import type { AccessLog } from '../../observability/access-log.ts'
import type { createLogger, createSampled } from '../../observability/logger.ts'
import type { DeclaredServices } from '../../observability/metrics.ts'
import type { BufferedBytes } from '../../server/buffered-bytes.ts'
import { createInFlight, type InFlight, type Overload } from '../../server/overload.ts'
import { buildRateLimits, type RateLimits } from '../../server/rate-limiter.ts'
import type { Revocations } from '../../server/revocations.ts'
import { createEdge, type Edge } from '../../server/server.ts'
import type { UnreadResponses } from '../../server/unread-responses.ts'
import type { WebSockets } from '../../server/websockets.ts'
import { createOperator, type SnapshotOperator } from '../admin/operator.ts'
import type { OperatorCache } from '../admin/operator-cache.ts'
import type { Broadcast } from '../parts/broadcast.ts'
import { workersOf } from '../workers.ts'
import {
  type BuiltService,
  buildService,
  closeServices,
  decideAdoption,
  type ServiceParts,
} from './build-service.ts'
import { RequestReports } from './request-reports.ts'

/** Parts of the gateway that outlive a configuration. */
export type LastingParts = Omit<ServiceParts, 'config' | 'budget'> & {
  readonly logger: ReturnType<typeof createLogger>
  readonly cache: Cache
  readonly cacheContext: Omit<CacheDeps, 'forwarding' | 'writeRegistry' | 'clock' | 'report'>
  readonly writeRegistryFor: Broadcast['writeRegistryFor']
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
  readonly handle: HandleRequest
  /** Closes what `next` does not use; call it when no request is in flight. */
  close(next: readonly BuiltService[]): Promise<void>
}

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
  const { access, batch, upstream } = previous
  return buildService(
    service,
    parts,
    adoption === 'upstream' ? { upstream, access, batch } : { access, batch },
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

const sheddingOf = ({ overload }: Config, { overload: { accepts } }: LastingParts): ShedOptions => ({
  accepts,
  retryAfterSeconds: Math.ceil(overload.retryAfterMs / 1000),
})

const rateLimitsOf = (
  config: Config,
  { cacheContext, clock, stores }: LastingParts,
  last: BuiltSnapshot | undefined,
): RateLimits | undefined =>
  buildRateLimits(
    config,
    {
      clock,
      partitionOf: stores?.partitionOf ?? cacheContext.partitionOf,
      store: stores?.limits,
      processes: stores === undefined ? workersOf(config) : 1,
    },
    last?.limits,
  )

/** What `handle` needs beside a request. */
const handleDepsOf = (
  config: Config,
  lasting: LastingParts,
  reports: RequestReports,
  limits: RateLimits | undefined,
): Omit<HandleDeps, 'batchOf'> => {
  const { clock, metrics, spans, via, watches } = lasting
  const writeRegistry = lasting.writeRegistryFor(config)
  const { intervalMs, inFlight } = config.overload
  return {
    ...lasting.cacheContext,
    ...(writeRegistry === undefined ? {} : { writeRegistry }),
    clock,
    finished: metrics.observe.exchange,
    report: (event) => reports.report(event),
    failed: (error, context) => reports.failed(error, context),
    forwarding: { via },
    limits: limits && { count: limits.count, report: metrics.observe.edge },
    compress: compressionOf(config),
    watches: watches ?? [],
    spans,
    overload: intervalMs === 0 && inFlight === 0 ? undefined : sheddingOf(config, lasting),
  }
}

type HandlerParts = {
  readonly snapshot: ConfigSnapshot
  readonly handle: HandleRequest
  readonly reports: RequestReports
  readonly inFlight: InFlight
}

/** The handlers of the public port. */
const createHandlers = (config: Config, lasting: LastingParts, parts: HandlerParts): Promise<Edge> => {
  const { buffered, frontPage, isDraining, logger, metrics, poisoned, revocations, unread, websockets } =
    lasting
  const { reports, ...served } = parts
  const { retryAfterSeconds } = sheddingOf(config, lasting)
  return createEdge({
    ...{ buffered, frontPage, isDraining, logger, poisoned, revocations, unread, websockets },
    ...served,
    limits: config.limits,
    trustedProxies: config.trustedProxies,
    cors: config.cors.origins.length === 0 ? undefined : config.cors,
    certificates: config.listen.tls.certificates,
    refusedEarly: (refusal) => reports.refusedEarly(refusal),
    report: metrics.observe.edge,
    turnedAway: () =>
      lasting.overload.accepts('hit')
        ? undefined
        : new GatewayError('overloaded', { retryAfterSeconds, headers: ['Connection', 'close'] }),
  })
}

/** Builds a configuration snapshot from a configuration, and takes over what has not changed. */
export const buildSnapshot = async (
  { config, hash }: { readonly config: Config; readonly hash: string },
  lasting: LastingParts,
  last: BuiltSnapshot | undefined,
): Promise<BuiltSnapshot> => {
  const { metrics, operatorCache: cache, publicUrl, redaction, version } = lasting
  const reports = new RequestReports(lasting)
  const limits = rateLimitsOf(config, lasting, last)
  const built = await buildServices(config, lasting, last)
  const batches = new Map(built.map(({ service, batch }) => [service.name, batch]))
  const deps: HandleDeps = {
    ...handleDepsOf(config, lasting, reports, limits),
    batchOf: (service) => batches.get(service)?.handle,
  }
  const handleRequest: HandleRequest = (requestContext) => handle(deps, requestContext)
  for (const { service } of built)
    if (service.websockets)
      metrics.observe.websockets({ kind: 'websockets-configured', service: service.name })
  const snapshot = new ConfigSnapshot(built.map(({ service }) => service))
  const inFlight = createInFlight(lasting.inFlight)
  const handlers = await createHandlers(config, lasting, {
    snapshot,
    handle: handleRequest,
    reports,
    inFlight,
  })
  return {
    ...{ config, hash, built, handlers, inFlight, limits, snapshot, handle: handleRequest },
    operator: createOperator({ config, publicUrl, version, redaction, cache, built }),
    close: async (next) => {
      await handlers.close()
      await closeServices(built, next)
    },
  }
}

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
