import { createSplitMemory, type SplitMemory } from '../batch/splitter.ts'
import type { Clock } from '../clock.ts'
import type { Config, ServiceConfig, SiteConfig } from '../config/config.ts'
import { createDiscovery, type Discovery } from '../discovery/discovery.ts'
import type { ByteBudget } from '../http/byte-budget.ts'
import type { Answer } from '../http/message.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import { createNames, type Names } from '../names/names.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { LocalAnswers, Service } from '../pipeline/service.ts'
import { createUpstream, type Upstream } from '../upstream/upstream.ts'
import { createIndexFetch } from './index-fetch.ts'
import { serverOf } from './server-of.ts'
import { limitsOf, type ServiceContract, serviceContract, siteNameTable } from './service-contract.ts'
import type { SharedStores } from './shared-store.ts'
import { siteAnswers } from './site-answers.ts'
import { startEmbedded } from './start-embedded.ts'
import { upstreamOptions } from './upstream-options.ts'

/** The way to a service's upstream, with what is known about its targets, and the embedded server where there is one. */
type UpstreamWay = {
  readonly upstream: Upstream
  readonly targets: readonly string[]
  /** The servers that these mean; see server-of.ts. */
  readonly servers: readonly string[]
  /** What batches have taught about it. */
  readonly splitMemory: SplitMemory
  close(): Promise<void>
}

/** A service with everything behind it, and how to end it. */
export type BuiltService = {
  readonly config: ServiceConfig
  readonly service: Service
  readonly contract: ServiceContract
  readonly discovery: Discovery | undefined
  readonly way: UpstreamWay
}

/** Ends the active checks of upstreams that do not go on; what is under way there is still answered. */
export const stopChecks = (ended: readonly BuiltService[], goingOn: readonly BuiltService[]): void => {
  const ways = new Set(goingOn.map(({ way }) => way))
  for (const { way } of ended) if (!ways.has(way)) way.upstream.stopChecks()
}

/** Ends what the services that go on do not use. */
export const closeServices = async (
  ended: readonly BuiltService[],
  goingOn: readonly BuiltService[],
): Promise<void> => {
  const ways = new Set(goingOn.map(({ way }) => way))
  const discoveries = new Set(goingOn.map(({ discovery }) => discovery))
  for (const { way, discovery } of ended) {
    if (discovery !== undefined && !discoveries.has(discovery)) await discovery.close()
    if (!ways.has(way)) await way.close()
  }
}

export type ServiceParts = {
  readonly config: Config
  readonly publicUrl: string
  readonly clock: Clock
  readonly metrics: Metrics
  /** Bounds what is held of requests under way. */
  readonly budget: ByteBudget
  run(exchange: Received): Answer
  /** Is what was read from an upstream before still known to be true? */
  mayRemember(): boolean
  /** Absent where there is no store that instances share. */
  readonly stores?: SharedStores | undefined
  /** A service by the configuration in force. */
  serviceNamed(name: string): Service | undefined
  /** See sharing-upstream.ts. */
  sharing(name: string): readonly Service[]
}

const indexTimeoutMs = 10_000
const indexRetryMs = 5_000

/** A site's index and its batches are made here of what is known of it. */
const storesAnswers = ({ cache, contract }: ServiceConfig): boolean =>
  cache.rules.length > 0 || cache.profile === 'rfc-shared-cache' || contract === 'site'

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

type SiteRooms = {
  readonly names: Names
  readonly discovery: Discovery
  readonly local: LocalAnswers
  allowsAnyOrigin(): boolean
}

const siteRooms = (
  config: SiteConfig,
  contract: ServiceContract,
  { upstream, targets, splitMemory }: UpstreamWay,
  parts: ServiceParts,
): SiteRooms => {
  const publicRoot = `${parts.publicUrl}${withoutRoot(config.mount)}`
  const basePath = withoutRoot(config.upstream.basePath)
  const ownRoots = targets.map((origin) => `${origin}${basePath}`)
  const names = createNames({
    mode: config.names,
    table: siteNameTable,
    publicRoot,
    upstreamRoots: () => {
      const learned = discovery.upstreamRoot()
      return learned === undefined ? ownRoots : [learned, ...ownRoots]
    },
  })
  const index = createIndexFetch(upstream, basePath)
  const { identity } = config.discovery.source === 'static' ? config.discovery : { identity: undefined }
  const discovery: Discovery = createDiscovery({
    service: config.name,
    clock: parts.clock,
    rows: contract.rows,
    announced: contract.announced,
    publicRoot,
    upstreamBasePath: basePath,
    source:
      identity === undefined
        ? {
            kind: 'upstream',
            refreshMs: config.discovery.refreshMs,
            timeoutMs: indexTimeoutMs,
            retryAfterMs: indexRetryMs,
          }
        : {
            kind: 'static',
            identity: {
              name: identity.name,
              description: identity.description,
              url: identity.url,
              home: identity.home,
              gmt_offset: String(identity.gmtOffset),
              timezone_string: identity.timezone,
            },
          },
    unlistedRoutes: config.unlistedRoutes,
    undeclaredParameters: config.parameters.unknown,
    fetchIndex: index.fetchIndex,
    toPublic: (content) => names.fromUpstreamDocument(content),
    rowsLearned: contract.learn,
    report: parts.metrics.observe.discovery,
  })
  const local = siteAnswers({
    config,
    publicRoot,
    discovery,
    clock: parts.clock,
    report: (event) => parts.metrics.observe.batch(config.name, event),
    budget: parts.budget,
    run: parts.run,
    mayRemember: parts.mayRemember,
    idempotencyKeys: parts.stores?.idempotencyKeys(config.batch.idempotency),
    splitMemory,
    serviceNamed: parts.serviceNamed,
    bodyBytes: config.limits.bodyBytes,
  })
  return { names, discovery, local, allowsAnyOrigin: index.allowsAnyOrigin }
}

const buildWay = async (
  config: ServiceConfig,
  parts: ServiceParts,
  splitMemory: SplitMemory,
): Promise<UpstreamWay> => {
  const embedded = await startEmbedded(config, limitsOf(config, parts.config.limits), parts.publicUrl)
  const targets = embedded === undefined ? (config.upstream.targets as readonly string[]) : [embedded.origin]
  const upstream = createUpstream(upstreamOptions(config, targets, parts.publicUrl, parts.config.limits), {
    clock: parts.clock,
    random: Math.random,
    report: parts.metrics.observe.upstream,
  })
  return {
    upstream,
    targets,
    servers: targets.map(serverOf),
    splitMemory,
    close: async () => {
      await upstream.close()
      await embedded?.close()
    },
  }
}

/** What is there already when a service is built: the way to its upstream, or what is known of it. */
type Known = { readonly way?: UpstreamWay; readonly splitMemory?: SplitMemory }

/** Builds one service: its embedded server when it has one, the way to its upstream, and its rooms. */
export const buildService = async (
  config: ServiceConfig,
  parts: ServiceParts,
  known: Known = {},
): Promise<BuiltService> => {
  const limits = limitsOf(config, parts.config.limits)
  const way = known.way ?? (await buildWay(config, parts, known.splitMemory ?? createSplitMemory()))
  const { upstream, targets } = way
  const contract = serviceContract(config, limits)
  const site = config.contract === 'site' ? siteRooms(config, contract, way, parts) : undefined
  const service: Service = {
    name: config.name,
    contract: config.contract,
    mount: withoutRoot(config.mount),
    requiresBearer: contract.requiresBearer,
    unlisted:
      config.contract === 'open' || (config.contract === 'site' && config.unlistedRoutes !== 'refuse')
        ? 'pass'
        : 'refuse',
    bodyBytes: limits.bodyBytes,
    uploadBytes: limits.uploadBytes,
    find: contract.find,
    memo: contract.memo,
    validator: contract.validator,
    policyFor: contract.policyFor,
    translation: site?.names,
    tagger: contract.tagger,
    storesAnswers: storesAnswers(config),
    invalidatesTargets: config.contract === 'open',
    sharing: () => parts.sharing(config.name),
    allowsAnyOrigin: site?.allowsAnyOrigin ?? (() => false),
    roots: [
      ...[upstream.placeholderOrigin, ...targets].map(
        (origin) => origin + withoutRoot(config.upstream.basePath),
      ),
      parts.publicUrl + withoutRoot(config.mount),
    ],
    publicRoot: parts.publicUrl + withoutRoot(config.mount),
    basePath: withoutRoot(config.upstream.basePath),
    upstream,
    upstreamTotalMs: config.upstream.timeouts.totalMs,
    local: site?.local,
  }
  site?.discovery.start()
  return { config, service, contract, discovery: site?.discovery, way }
}

/** The same service under other cache rules: everything else goes on, learned routes included. */
export const withRules = (built: BuiltService, config: ServiceConfig): BuiltService => {
  const contract = built.contract.withRules(config.cache)
  const { memo, policyFor } = contract
  return {
    ...built,
    config,
    contract,
    service: { ...built.service, memo, policyFor, storesAnswers: storesAnswers(config) },
  }
}
