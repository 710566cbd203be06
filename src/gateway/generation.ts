import type { Socket } from 'node:net'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { Cache } from '../cache/cache.ts'
import type { Note } from '../cache/invalidation.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { faultLine } from '../config/fault.ts'
import type { ConfigResult } from '../config/load.ts'
import { restartKeys, sameSettings } from '../config/same-settings.ts'
import { type ErrorCode, type ErrorFacts, errorTable, type GatewayError } from '../errors.ts'
import type { PipelineEvent } from '../exchange/events.ts'
import type { Received } from '../exchange/exchange.ts'
import { type CompressResponse, createCompression } from '../exchange/finish.ts'
import { type HandleContext, handle } from '../exchange/handle.ts'
import {
  type CacheContext,
  type ExchangeWatch,
  type OpenSpans,
  overloaded,
  type ShedOptions,
} from '../exchange/ports.ts'
import type { Service } from '../exchange/service.ts'
import { isStreamCoding } from '../http/content-coding.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { AccessLog } from '../observability/access-log.ts'
import { type createLogger, type createSampled, factsLogger, type Log } from '../observability/logger.ts'
import { documentChanges } from '../openapi/notes.ts'
import type { BufferedBytes, UnreadAnswers } from '../server/buffered-bytes.ts'
import { createInFlight, type InFlight, type Overload } from '../server/overload.ts'
import { buildRateLimits, type RateLimits } from '../server/rate-limiter.ts'
import { createEdge, type Edge } from '../server/server.ts'
import type { WebSockets } from '../server/websockets.ts'
import { buildService, type ServiceParts } from './build-service.ts'
import {
  type BuiltService,
  closeServices,
  decideAdoption,
  outdatedAnswers,
  replacedNotes,
  sharingUpstream,
  stopChecks,
} from './built-service.ts'
import type { OperatorCache } from './membership.ts'
import { createOperator, type GenerationOperator } from './operator.ts'

/** Parts of the gateway that outlive a configuration. `run` is the pipeline of the configuration in use: for items of a batch that began under an earlier one. */
export type LastingParts = Omit<ServiceParts, 'config' | 'budget'> & {
  readonly logger: ReturnType<typeof createLogger>
  readonly cache: Cache
  readonly cacheContext: Omit<CacheContext, 'forwarding'>
  readonly operatorCache: OperatorCache
  readonly overload: Overload
  readonly buffered: BufferedBytes
  /** Responses that wait for slow clients. */
  readonly unread: UnreadAnswers
  /** Requests of all generations. */
  readonly inFlight: InFlight
  /** Samples log lines of frequent refusals. */
  readonly sampled: ReturnType<typeof createSampled>
  readonly version: string
  /** Pseudonym in Via. */
  readonly via: string
  readonly websockets: WebSockets
  /** Connections that take no further request. */
  readonly distrusted: Set<Socket>
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly accessLog: AccessLog | undefined
  readonly spans: OpenSpans | undefined
  isDraining(): boolean
}

/** Everything built from one configuration; replaced as a whole. */
export type Generation = {
  readonly config: Config
  readonly hash: string
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
  readonly handlers: Omit<Edge, 'close'>
  readonly operator: GenerationOperator
  readonly inFlight: InFlight
  readonly limits: RateLimits | undefined
  readonly sharing: ServiceParts['sharing']
  reaches(service: Service, target: string): boolean
  readonly serviceAt: Service['serviceAt']
  run(exchange: Received): Promise<GatewayResponse>
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
  last: Generation | undefined,
): Promise<BuiltService> => {
  const known = last?.built.find((one) => one.config.name === service.name)
  if (known === undefined || last === undefined) return buildService(service, parts)
  const adoption = decideAdoption(
    { service: known.config, limits: last.config.limits },
    { service, limits: parts.config.limits },
  )
  if (adoption === 'service') return known
  const { access } = known
  return buildService(
    service,
    parts,
    adoption === 'upstream' ? { upstream: known.upstream, access } : { access },
  )
}

const buildServices = async (
  config: Config,
  lasting: LastingParts,
  last: Generation | undefined,
): Promise<readonly BuiltService[]> => {
  const parts = { ...lasting, config, budget: lasting.buffered.budget }
  const built: BuiltService[] = []
  try {
    for (const service of config.services) built.push(await builtFor(service, parts, last))
    // A new discovery reads the index of its site before the first request for it; at a start the upstream may not be there yet.
    const described = built.filter((one) => !last?.built.some(({ announced }) => announced === one.announced))
    const waits = described.filter(
      ({ config: { upstream } }) => last !== undefined || upstream.targets === 'embedded',
    )
    await Promise.all(waits.map(({ announced }) => announced?.refresh()))
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

/** Builds a generation from a configuration, and takes over what has not changed. */
export const buildGeneration = async (
  { config, hash }: { readonly config: Config; readonly hash: string },
  lasting: LastingParts,
  last: Generation | undefined,
): Promise<Generation> => {
  const { clock, logger, metrics, publicUrl, version } = lasting
  const lines = factsLogger(logger)
  /** Clients decide how many requests fail: one log line for each service and code in ten seconds. */
  const linePermitted = (service: string, code: string): number | undefined =>
    lasting.sampled.pass(`${service} ${code}`)
  const refusalLine = ({ kind, ...facts }: Extract<PipelineEvent, { kind: 'request-refused' }>): void => {
    // `failed` logs faults of the gateway or an upstream, with their cause.
    if (faultOf(facts.code) !== 'client') return
    // The access line of the request has the code.
    if (lasting.accessLog !== undefined && facts.origin === 'client') return
    const held = linePermitted(facts.service, facts.code)
    if (held !== undefined) lines.info({ ...facts, held }, kind)
  }
  const report = (event: PipelineEvent): void => {
    metrics.observe.pipeline(event)
    switch (event.kind) {
      case 'undeclared-parameters': {
        const { service, count, handling, kind } = event
        const held = handling === 'stripped' ? linePermitted(service, kind) : undefined
        if (held !== undefined) lines.info({ service, count, held }, 'parameters-stripped')
        return
      }
      case 'access-refused': {
        if (lasting.accessLog !== undefined) return
        const { kind, service, reason } = event
        const held = linePermitted(service, `${kind} ${reason}`)
        if (held !== undefined) lines.info({ service, reason, held }, kind)
        return
      }
      case 'request-refused':
        refusalLine(event)
    }
  }
  const failed = (error: GatewayError, { id, service, record }: Received): void => {
    if (error.facts.fault === 'client') return
    const held = linePermitted(service.name, error.code)
    if (held === undefined) return
    logger.warn(
      { held, id, service: service.name, route: record.route, code: error.code, err: error.cause },
      'request-failed',
    )
  }
  const limits = buildRateLimits(
    config,
    {
      clock,
      partitionOf: lasting.stores?.partitionOf ?? lasting.cacheContext.partitionOf,
      store: lasting.stores?.limits,
    },
    last?.limits,
  )
  const shedding: ShedOptions = {
    admits: lasting.overload.admits,
    retryAfterSeconds: Math.ceil(config.overload.retryAfterMs / 1000),
  }
  const context: HandleContext = {
    ...lasting.cacheContext,
    clock,
    finished: metrics.observe.pipeline,
    report,
    failed,
    forwarding: { via: lasting.via },
    withholdsOrigin: config.cors.origins.length > 0,
    limits: limits && { count: limits.count, report: metrics.observe.edge },
    compress: compressionOf(config),
    watches: lasting.watches ?? [],
    spans: lasting.spans,
    overload: config.overload.intervalMs === 0 && config.overload.inFlight === 0 ? undefined : shedding,
  }
  const run = (exchange: Received): Promise<GatewayResponse> => handle(context, exchange)
  const built = await buildServices(config, lasting, last)
  for (const { service } of built)
    if (service.websockets)
      metrics.observe.websockets({ kind: 'websockets-configured', service: service.name })
  const inFlight = createInFlight(lasting.inFlight)
  const edge = await createEdge({
    limits: config.limits,
    trustedProxies: config.trustedProxies,
    cors: config.cors.origins.length === 0 ? undefined : config.cors,
    distrusted: lasting.distrusted,
    services: built.map(({ service }) => service),
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
    sharing: sharingUpstream(built),
    reaches: edge.reaches,
    serviceAt: edge.serviceFor,
    run,
    close: async (next) => {
      await edge.close()
      await closeServices(built, next)
    },
  }
}

/** Logs one line for each reload. Faults name keys and reasons, never values. */
export const logReload = (log: Pick<Log, 'info' | 'error'>, outcome: ReloadOutcome): void => {
  if (outcome.kind === 'failed') {
    log.error({ outcome: outcome.kind, err: outcome.cause }, 'reload')
    return
  }
  const { kind, ...facts } = outcome
  const level = kind === 'applied' || kind === 'unchanged' ? 'info' : 'error'
  log[level]({ outcome: kind, ...facts }, 'reload')
}

type ReloadParts = {
  readonly cache: Pick<Cache, 'purge'>
  current(): Generation
  readConfig(): Promise<ConfigResult>
  build(config: Config, hash: string, last: Generation): Promise<Generation>
  /** Makes the new generation handle the requests, synchronously. */
  replace(next: Generation): void
  /** Applies the notes in all other processes. */
  announce(notes: readonly Note[]): Promise<unknown>
  /** Reports the result, before the new generation answers a request. */
  report(outcome: ReloadOutcome): void
  /** Closing the previous generation failed; it handles no requests any more. */
  endingFailed(cause: unknown): void
}

/** Replaces the last generation, which finishes its requests and is then closed. `alive`: generations not closed yet. */
const exchange = (parts: ReloadParts, alive: Set<Generation>, last: Generation, next: Generation): void => {
  const outdated = { kind: 'matching', matches: outdatedAnswers(last, next) } as const
  // Synchronous: no request is answered under new rules from a response stored under old ones. Requests of services that have been
  // replaced store nothing from here on (`isCurrent`).
  alive.add(next)
  parts.replace(next)
  stopChecks(last.built, next.built)
  parts.cache.purge({ selector: outdated, mode: 'hard', dryRun: false })
  const end = async (): Promise<void> => {
    await last.inFlight.settled(last.config.drain.timeoutMs)
    alive.delete(last)
    await last.close([...alive].flatMap(({ built }) => built))
  }
  void end().catch(parts.endingFailed)
}

/** Reads the configuration and applies it completely or not at all; one reload at a time. */
export const createReload = (parts: ReloadParts): (() => Promise<ReloadOutcome>) => {
  const alive = new Set([parts.current()])
  const attempt = async (): Promise<ReloadOutcome> => {
    const result = await parts.readConfig()
    if (result.kind === 'faults') return { kind: 'invalid', faults: result.faults.map(faultLine) }
    const { config, hash } = result
    const last = parts.current()
    if (sameSettings(last.config, config)) return { kind: 'unchanged', hash }
    const keys = restartKeys(last.config, config)
    if (keys.length > 0) return { kind: 'restart-needed', keys }
    const next = await parts.build(config, hash, last)
    exchange(parts, alive, last, next)
    // Others may have this configuration already. The writes of this process did not reach what they stored of services that it did
    // not have, although these have an upstream in common.
    await parts.announce(replacedNotes(last, next))
    const documents = documentChanges(last.config, config)
    return documents.length === 0 ? { kind: 'applied', hash } : { kind: 'applied', hash, documents }
  }
  let before: Promise<unknown> = Promise.resolve()
  return () => {
    const outcome = before
      .then(attempt)
      .catch((cause: unknown): ReloadOutcome => ({ kind: 'failed', cause }))
      .then((settled) => {
        parts.report(settled)
        return settled
      })
    before = outcome
    return outcome
  }
}
