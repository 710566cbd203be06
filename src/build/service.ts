import { randomBytes } from 'node:crypto'
import { type BatchAnswersOptions, batchAnswers } from '../batch/batch-answers.ts'
import { createSplitMemory, type SplitMemory } from '../batch/splitter.ts'
import type { Clock } from '../clock.ts'
import type { SharedStores } from '../cluster/shared-store.ts'
import type { Config, LimitsConfig, ServiceConfig, SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { type ByteBudget, unlimited } from '../http/byte-budget.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
import type { Metrics } from '../observability/metrics.ts'
import { permits } from '../pipeline/any-origin.ts'
import type { Received } from '../pipeline/exchange.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { LocalAnswers, Service } from '../pipeline/service.ts'
import { createNames, type Names } from '../request/names.ts'
import { createDiscovery, type Discovery } from '../site/discovery.ts'
import type { DiscoveryDocument } from '../site/discovery-answer.ts'
import type { IndexAnswer } from '../site/index-source.ts'
import type { UpstreamOptions } from '../upstream/options.ts'
import { createUpstream, type Upstream } from '../upstream/upstream.ts'
import {
  limitsOf,
  type ServiceContract,
  serviceContract,
  siteNameTable,
  startEmbedded,
} from './service-contract.ts'

const asResponse = ({ fields, content }: DiscoveryDocument): GatewayResponse => ({
  kind: 'response',
  status: 200,
  fields: [...fields, 'Content-Length', String(content.length)],
  content,
})

/** The schema that only the upstream knows, or what the table says when the upstream says nothing. */
const askedOptions = async (ask: () => Answer, fallback: DiscoveryDocument): Promise<GatewayResponse> => {
  try {
    const outcome = await ask()
    if (outcome.kind === 'response' && outcome.status === 200) return outcome
    if (outcome.kind === 'response' && outcome.content !== undefined && !Buffer.isBuffer(outcome.content)) {
      outcome.content.destroy()
    }
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

/** What the gateway answers itself for a site: its documents, and the batch. */
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

/** Reads the index of a site, under an origin that the site cannot know: its answer tells whether it lets every origin read. */
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
    // A plugin may refuse what comes from other origins: the index is not to be missed for that.
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

/**
 * The other services that ask one of the same servers and hold answers which a write through this one may make wrong:
 * a WordPress behind its interface and, for its pages and wp-admin, behind an open service. What an open service holds
 * is invalidated by targets and tags of its own (RFC 9111 §4.4).
 */
const othersOf = (writing: BuiltService, built: readonly BuiltService[]): readonly Service[] => {
  const servers = new Set(writing.way.servers)
  return built
    .filter((one) => one !== writing && one.config.contract !== 'open')
    .filter(({ way }) => way.servers.some((server) => servers.has(server)))
    .map(({ service }) => service)
}

/** Of services by their names, found once for each configuration: every write asks. None for one that is no longer there. */
export const sharingUpstream = (built: readonly BuiltService[]): ((name: string) => readonly Service[]) => {
  const found = new Map(built.map((one) => [one.config.name, othersOf(one, built)]))
  return (name) => found.get(name) ?? []
}

/** Services of which no answer is to be expected. */
export const servicesDown = (built: readonly BuiltService[]): readonly string[] =>
  built.filter(({ service }) => service.upstream.snapshot().down).map(({ service }) => service.name)

/** What the gateway answers itself of a site may be from before a write in another process. */
export const outdateDocuments = (built: readonly BuiltService[], name: string, collection: string): void => {
  built.find(({ config }) => config.name === name)?.service.local?.written(collection)
}

/** What the upstream room is told of a service. */
export const upstreamOptions = (
  { name, upstream }: ServiceConfig,
  targets: readonly string[],
  publicUrl: string,
  { minBytesPerSecond }: LimitsConfig,
): UpstreamOptions => {
  const { connections, tls, host, ...rest } = upstream
  return {
    ...rest,
    service: name,
    targets,
    minBytesPerSecond,
    connectionMaxAgeMs: connections.maxAgeMs,
    hostField: host === 'preserve' ? new URL(publicUrl).host : '',
    tls: { ...tls, ca: tls.ca.reveal(), cert: tls.cert.reveal(), key: tls.key.reveal() },
  }
}

const loopback = /^(?:localhost|.+\.localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\[::ffff:7f00:1\])$/

/**
 * Which server an origin means, as far as its spelling tells: the same for `localhost` and its addresses (RFC 6761 §6.3),
 * for a name with and without its final dot, and for a host's default ports, where http and https are two doors of one house.
 * Other names and addresses of one machine are told apart: nobody is asked.
 */
export const serverOf = (origin: string): string => {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/\.$/, '')
  return `${loopback.test(host) ? 'localhost' : host}:${port === '80' || port === '443' ? '' : port}`
}
