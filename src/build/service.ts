import { randomBytes } from 'node:crypto'
import { type BatchAnswersOptions, batchAnswers } from '../batch/batch-answers.ts'
import { createSplitMemory, type SplitMemory } from '../batch/splitter.ts'
import type { Clock } from '../clock.ts'
import type { SharedStores } from '../cluster/shared-store.ts'
import type { Config, ServiceConfig, SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { type ByteBudget, unlimited } from '../http/bounds/byte-budget.ts'
import { type Answer, discard, type GatewayResponse } from '../http/message.ts'
import type { Metrics } from '../observability/metrics.ts'
import { permits } from '../pipeline/any-origin.ts'
import type { Received } from '../pipeline/exchange.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { LocalAnswers, Service } from '../pipeline/service.ts'
import { createNames, type Names } from '../request/names.ts'
import type { BuiltAccess } from '../server/access.ts'
import { createDiscovery, type Discovery } from '../site/discovery.ts'
import type { DiscoveryDocument } from '../site/discovery-answer.ts'
import type { IndexAnswer } from '../site/index-source.ts'
import { createUpstream, type Upstream } from '../upstream/upstream.ts'
import {
  buildAccess,
  limitsOf,
  type ServiceContract,
  serverOf,
  serviceContract,
  siteNameTable,
  startEmbedded,
  upstreamOptions,
} from './service-contract.ts'

const asResponse = ({ fields, content }: DiscoveryDocument): GatewayResponse => ({
  status: 200,
  fields: [...fields, 'Content-Length', String(content.length)],
  content,
})

/** The schema from the upstream, or the table's arguments without one. */
const askedOptions = async (ask: () => Answer, fallback: DiscoveryDocument): Promise<GatewayResponse> => {
  try {
    const response = await ask()
    if (response.status === 200) return response
    discard(response.content)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.facts.fault === 'client') throw error
  }
  return asResponse(fallback)
}

type SiteAnswersOptions = BatchAnswersOptions & {
  readonly discovery: Discovery
  /** Is what was read from the upstream before still known to be true? */
  mayRemember(): boolean
}

/** Writes to these, and to what no row lists, can change the site's identity or its routes. */
const describedBy: ReadonlySet<string> = new Set(['settings', 'plugins', 'themes', ''])

/** Requests that the gateway answers itself for a site: its documents and the batch. */
const siteAnswers = (options: SiteAnswersOptions): LocalAnswers => {
  const { discovery } = options
  return {
    index: async (exchange, row) => {
      const { query } = exchange
      if (!options.mayRemember()) discovery.invalidate()
      const answer =
        row.namespace === ''
          ? await discovery.index(query)
          : await discovery.namespaceIndex(row.namespace, query)
      switch (answer.kind) {
        case 'document':
          return asResponse(answer)
        case 'identity-unknown':
          throw new GatewayError('upstream_unreachable', {
            detail: "The site's own index has not been read yet.",
            retryAfterSeconds: 5,
          })
        case 'unknown-namespace':
          throw new GatewayError('no_route')
      }
    },
    written: (collection) => {
      if (describedBy.has(collection)) discovery.invalidate()
    },
    options: (row, ask) => {
      const answer = discovery.options(row)
      return answer.kind === 'document' ? asResponse(answer) : askedOptions(ask, answer.fallback)
    },
    batch: batchAnswers(options),
  }
}

const mostIndexBytes = 8 * 1024 * 1024

/** Fetches the index of a site with an unknown origin: the response shows whether the site allows every origin. */
const createIndexFetch = (upstream: Upstream, basePath: string) => {
  let anyOrigin = false
  const ask = (signal: AbortSignal, fields: readonly string[]): Promise<GatewayResponse> =>
    upstream.forward({
      method: 'GET',
      target: `${basePath}/`,
      fields: [
        'accept',
        'application/json',
        'accept-encoding',
        'identity',
        'user-agent',
        'trellis',
        ...fields,
      ],
      content: undefined,
      signal,
    })
  const fetchIndex = async (signal: AbortSignal): Promise<IndexAnswer> => {
    const origin = `https://${randomBytes(8).toString('hex')}.invalid`
    const first = await ask(signal, ['origin', origin])
    const isRefused = first.status >= 400 && first.status < 500
    if (isRefused && first.content !== undefined && !Buffer.isBuffer(first.content)) first.content.destroy()
    // A plugin may refuse other origins: fetch the index without one then.
    const response = isRefused ? await ask(signal, []) : first
    anyOrigin = response.status === 200 && permits(response.fields, origin)
    const { content, status } = await completed(response, mostIndexBytes, unlimited)
    if (content === undefined) return { status, content: Buffer.alloc(0) }
    if (Buffer.isBuffer(content)) return { status, content }
    content.destroy()
    throw new RangeError('the index of the upstream is larger than 8 MiB')
  }
  return { fetchIndex, allowsAnyOrigin: () => anyOrigin }
}

/** A service's upstream with the state of its targets, and its embedded server if it has one. */
type UpstreamWay = {
  readonly upstream: Upstream
  readonly targets: readonly string[]
  /** The servers of the targets; see `serverOf`. */
  readonly servers: readonly string[]
  /** Measurements of its batches. */
  readonly splitMemory: SplitMemory
  close(): Promise<void>
}

/** A service with everything behind it, and the function that closes it. */
export type BuiltService = {
  readonly config: ServiceConfig
  readonly service: Service
  readonly contract: ServiceContract
  readonly discovery: Discovery | undefined
  readonly way: UpstreamWay
  readonly access: BuiltAccess | undefined
}

/** Ends the health checks of upstreams that are not taken over; their requests in flight finish. */
export const stopChecks = (ended: readonly BuiltService[], goingOn: readonly BuiltService[]): void => {
  const ways = new Set(goingOn.map(({ way }) => way))
  for (const { way } of ended) if (!ways.has(way)) way.upstream.stopChecks()
}

/** Closes what the remaining services do not use. */
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
  /** Bounds the bytes buffered for requests in flight. */
  readonly budget: ByteBudget
  run(exchange: Received): Answer
  /** Is knowledge that was read from an upstream earlier still valid? */
  mayRemember(): boolean
  /** Absent where there is no store that instances share. */
  readonly stores?: SharedStores | undefined
  /** A service of the configuration in use. */
  serviceNamed(name: string): Service | undefined
  /** See sharing-upstream.ts. */
  sharing(name: string): readonly Service[]
}

const indexTimeoutMs = 10_000
const indexRetryMs = 5_000

/** Builds the answers that the gateway gives itself for a site. */
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

/** Parts taken over when a service is built: its upstream or the measurements of it, and its access. */
type Known = {
  readonly way?: UpstreamWay
  readonly splitMemory?: SplitMemory
  readonly access?: BuiltAccess | undefined
}

/** Builds one service: its embedded server if it has one, its upstream, and its parts. */
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
  const access = await buildAccess(config, parts, known.access)
  const service: Service = {
    name: config.name,
    contract: config.contract,
    mount: withoutRoot(config.mount),
    requiresBearer: contract.requiresBearer,
    access,
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
  return { config, service, contract, discovery: site?.discovery, way, access }
}

/** The same service with other cache rules or another access; keeps everything else, learned routes included. */
export const withRules = async (
  built: BuiltService,
  config: ServiceConfig,
  parts: Pick<ServiceParts, 'clock' | 'metrics'>,
): Promise<BuiltService> => {
  const contract = built.contract.withRules(config)
  const { memo, policyFor } = contract
  const access = await buildAccess(config, parts, built.access)
  return {
    ...built,
    config,
    contract,
    access,
    service: { ...built.service, memo, policyFor, access, storesAnswers: storesAnswers(config) },
  }
}

/**
 * The other services with one of the same servers, whose stored responses a write through this service may outdate: a
 * WordPress behind its interface and, for its pages and wp-admin, behind an open service. Stored responses of an open service
 * are invalidated by their own targets and tags (RFC 9111 §4.4).
 */
const othersOf = (writing: BuiltService, built: readonly BuiltService[]): readonly Service[] => {
  const servers = new Set(writing.way.servers)
  return built
    .filter((one) => one !== writing && one.config.contract !== 'open')
    .filter(({ way }) => way.servers.some((server) => servers.has(server)))
    .map(({ service }) => service)
}

/** Services sharing an upstream, by name, computed once for each configuration: every write needs them. Empty for a removed service. */
export const sharingUpstream = (built: readonly BuiltService[]): ((name: string) => readonly Service[]) => {
  const found = new Map(built.map((one) => [one.config.name, othersOf(one, built)]))
  return (name) => found.get(name) ?? []
}

/** Services without an available target. */
export const servicesDown = (built: readonly BuiltService[]): readonly string[] =>
  built.filter(({ service }) => service.upstream.snapshot().down).map(({ service }) => service.name)

/** Marks the gateway's own documents of a site outdated after a write in another process. */
export const outdateDocuments = (built: readonly BuiltService[], name: string, collection: string): void => {
  built.find(({ config }) => config.name === name)?.service.local?.written(collection)
}
