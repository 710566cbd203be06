import { hash } from 'node:crypto'
import { type BuiltBatch, buildBatch } from '../../batch/batch.ts'
import type { Clock } from '../../clock.ts'
import type { SharedStores } from '../../cluster/shared-store.ts'
import {
  type Config,
  changesOf,
  feedLifetimeMs,
  type LimitsConfig,
  pollMsOf,
  type ServiceConfig,
} from '../../config/config.ts'
import { configuredUrl, sameSettings } from '../../config/same-settings.ts'
import type { Service, ServiceAddress } from '../../exchange/service.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import { type ByteBudget, unlimited } from '../../http/bounds/byte-budget.ts'
import { createPublicLinks } from '../../http/headers/links.ts'
import { discard } from '../../http/message.ts'
import type { Redaction } from '../../http/redaction.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { BuiltAccess } from '../../server/access.ts'
import type { UpstreamRoutes } from '../../service/connection.ts'
import type { Contract } from '../../service/contract.ts'
import { createTargetMemo } from '../../service/target-memo.ts'
import { createUpstream, type Upstream } from '../../upstream/upstream.ts'
import type { ReportedLease } from '../../wordpress/changes/change-feeds.ts'
import { createWriteReceipts } from '../../wordpress/changes/write-receipts.ts'
import { buildAccess, contractOf, limitsOf, responseChangesOf, upstreamOptions } from '../contracts.ts'
import { startEmbedded } from '../embedded-upstreams.ts'
import type { Downstreams } from '../parts/downstreams.ts'
import { addressOf, dependsOnHost } from '../service-address.ts'

export type ServiceParts = {
  readonly config: Config
  readonly publicUrl: string
  readonly clock: Clock
  readonly metrics: Metrics
  /** Learns what services declare as secret. */
  readonly redaction: Redaction
  /** Bounds the bytes buffered for requests in flight. */
  readonly budget: ByteBudget
  /** Is knowledge that was read from an upstream earlier still valid? */
  mayRemember(): boolean
  /** Undefined without a store that instances share. */
  readonly stores?: SharedStores | undefined
  /** Caches in front of a service; absent where nothing is served. */
  readonly downstreamOf?: Downstreams['of']
  /** Drops what is stored of a service: its rows are others now; absent where nothing is served. */
  readonly tableChanged?: (name: string) => void
  /** Whether every change of a service is known; absent where nothing is served. */
  readonly feedLease?: (name: string) => ReportedLease
}

const buildUpstream = async (config: ServiceConfig, parts: ServiceParts): Promise<BuiltUpstream> => {
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
    close: async () => {
      await upstream.close()
      await embedded?.close()
    },
  }
}

/** At some 2 kB each, arguments included, at most 16 MB a service. */
const recalledTargets = 8192

/** Parts taken over when a service is built: its upstream, its access, and the idempotency keys of its batches. */
type ReusedParts = {
  readonly upstream?: BuiltUpstream
  readonly access?: BuiltAccess | undefined
  readonly batch?: BuiltBatch | undefined
}

/** Builds one service: its embedded server if it has one, its upstream, and its parts. */
export const buildService = async (
  config: ServiceConfig,
  parts: ServiceParts,
  previous: ReusedParts = {},
): Promise<BuiltService> => {
  const limits = limitsOf(config, parts.config.limits)
  const built = previous.upstream ?? (await buildUpstream(config, parts))
  const { upstream, targets } = built
  const lifetimeMs = feedLifetimeMs(config)
  const feed = parts.feedLease?.(config.name)
  const changes = changesOf(config)
  const feedLifetime = lifetimeMs === undefined || feed === undefined ? undefined : { lifetimeMs, feed }
  const contract = await contractOf(config, limits, feedLifetime)
  parts.redaction.declare(contract.secretParameters)
  const memo = createTargetMemo(recalledTargets)
  const address = addressOf(config, parts.publicUrl)
  const connected = contract.connect?.({
    ...parts,
    targets,
    publicRoot: address.publicUrl + withoutRoot(config.mount),
    hostHeader: address.hostHeader,
    get: (request, maxBytes) => ownGet(upstream, request, maxBytes),
    rowsLearned: memo.clear,
    tableChanged: () => parts.tableChanged?.(config.name),
    report: parts.metrics.observe.discovery,
  })
  const basePath = withoutRoot(config.upstream.basePath)
  const roots = targets.map((origin) => origin + basePath)
  const addressAt = (host?: string): ServiceAddress => {
    const { publicUrl, publicHost, hostHeader } = addressOf(config, parts.publicUrl, host)
    const publicRoot = publicUrl + withoutRoot(config.mount)
    return {
      host: host ?? '',
      publicRoot,
      publicHost,
      hostHeader: host === undefined ? undefined : hostHeader,
      servers: built.servers,
      basePath,
      // An upstream may write its own URLs with the host of X-Forwarded-Host.
      roots: [...roots, `http://${publicHost}${basePath}`, publicRoot],
      translation: connected?.translationAt(publicRoot, hostHeader),
      links:
        connected === undefined
          ? createPublicLinks({ targets, publicHost, publicRoot, basePath, mount: withoutRoot(config.mount) })
          : undefined,
    }
  }
  const access = await buildAccess(config, parts, previous.access)
  const contentId = contentIdOf(config, targets, parts.config)
  const service: Service = {
    name: config.name,
    contract,
    writeReceipts:
      feed === undefined || changes === undefined || pollMsOf(config, changes) === 0
        ? undefined
        : createWriteReceipts(changes.token.reveal(), feed, parts.clock),
    mount: withoutRoot(config.mount),
    hosts: config.hosts,
    address: addressAt(),
    addressAt: dependsOnHost(config) ? addressAt : undefined,
    upstream,
    access,
    limits: {
      urlBytes: limits.urlBytes,
      bodyBytes: limits.bodyBytes,
      uploadBytes: limits.uploadBytes,
      upstreamMs: config.upstream.timeouts.totalMs,
    },
    websockets: 'websockets' in config && config.websockets,
    responses: {
      changes: responseChangesOf(config),
      cors: config.cors.origins.length === 0 ? undefined : config.cors,
      compresses: config.compress,
      mayBeStored:
        config.cache.rules.length > 0 ||
        config.cache.profile === 'rfc-shared-cache' ||
        connected !== undefined,
      // A site whose table has changed gives its responses other tags.
      contentId: () => contentId + contract.tableId(),
      // Where the gateway answers CORS itself, the upstream decides nothing.
      downstream: parts.downstreamOf?.(config, contract),
      anyOrigins: config.cors.origins.length > 0 ? undefined : connected?.anyOrigins,
    },
    memo,
    documents: connected?.local,
  }
  const upstreamRoutes = connected?.upstreamRoutes
  upstreamRoutes?.start()
  const batch = buildBatch(config, contract, {
    clock: parts.clock,
    report: (event) => parts.metrics.observe.batch(config.name, event),
    budget: parts.budget,
    stores: parts.stores,
    keysInMemory: previous.batch?.keysInMemory,
  })
  return { config, service, contract, batch, upstreamRoutes, upstream: built, access }
}

/** A service's upstream with the state of its targets, and its embedded server if it has one. */
export type BuiltUpstream = {
  readonly upstream: Upstream
  readonly targets: readonly string[]
  /** The servers of the targets; see `serverOf`. */
  readonly servers: readonly string[]
  close(): Promise<void>
}

/** A service with everything behind it, and the function that closes it. */
export type BuiltService = {
  readonly config: ServiceConfig
  readonly service: Service
  readonly contract: Contract
  readonly batch: BuiltBatch | undefined
  readonly upstreamRoutes: UpstreamRoutes | undefined
  readonly upstream: BuiltUpstream
  readonly access: BuiltAccess | undefined
}

/** Sends a GET of the gateway itself, and reads the response; `content` is undefined where it is larger than `maxBytes`. */
export const ownGet = async (
  upstream: Upstream,
  request: Omit<Parameters<Upstream['request']>[0], 'method' | 'effect' | 'content'>,
  maxBytes: number,
) => {
  const response = await upstream.request({ ...request, method: 'GET', effect: 'pass', content: undefined })
  const { content = Buffer.alloc(0), ...head } = await bufferedResponse(response, maxBytes, unlimited)
  discard(content)
  return { ...head, content: Buffer.isBuffer(content) ? content : undefined }
}

/** Closes what the remaining services do not use. */
export const closeServices = async (
  ended: readonly BuiltService[],
  goingOn: readonly BuiltService[],
): Promise<void> => {
  const upstreams = new Set(goingOn.map(({ upstream }) => upstream))
  const keptRoutes = new Set(goingOn.map(({ upstreamRoutes }) => upstreamRoutes))
  for (const { upstream, upstreamRoutes } of ended) {
    if (upstreamRoutes !== undefined && !keptRoutes.has(upstreamRoutes)) await upstreamRoutes.close()
    if (!upstreams.has(upstream)) await upstream.close()
  }
}

const loopback = /^(?:localhost|.+\.localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\[::ffff:7f00:1\])$/

/**
 * The server of an origin, judged by its spelling: the same for `localhost` and its addresses (RFC 6761 §6.3), for a name with
 * and without its final dot, and for http and https on their default ports. Other names and addresses of one machine count as
 * different servers: names are not resolved.
 */
export const serverOf = (origin: string): string => {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/\.$/, '')
  return `${loopback.test(host) ? 'localhost' : host}:${port === '80' || port === '443' ? '' : port}`
}

/** The path of a mount in front of other paths. */
export const withoutRoot = (path: string): string => (path === '/' ? '' : path)

/**
 * Of the settings that decide the content of a response beside its key. A store that outlives the configuration, or is shared with
 * instances that have another one, keeps the responses of each apart.
 */
const contentIdOf = (
  service: ServiceConfig,
  targets: readonly string[],
  general: Pick<Config, 'listen' | 'publicUrl'>,
): string => {
  const { contract, hosts, mount, upstream } = service
  const publicUrl = service.publicUrl === '' ? configuredUrl(general) : service.publicUrl
  const names = 'names' in service ? service.names : ''
  const facts = [contract, targets, upstream.basePath, upstream.host, hosts, mount, publicUrl, names]
  return hash('sha256', JSON.stringify(facts), 'base64url')
}

/**
 * What a service of a new configuration takes over from the previous one of the same name: `service` everything, because no setting
 * differs; `upstream` its upstream with breakers, ejections and connections; `nothing`.
 */
type Adoption = 'service' | 'upstream' | 'nothing'

export type Configured = { readonly service: ServiceConfig; readonly limits: LimitsConfig }

/** The limits that a service is built with. */
export const ofService = ({ bodyBytes, uploadBytes, queryParameters, jsonDepth }: LimitsConfig): unknown => ({
  bodyBytes,
  uploadBytes,
  queryParameters,
  jsonDepth,
})

/** Of one contract each: they make an embedded server beside the settings of all upstreams. */
const embeddedKeys: ReadonlySet<string> = new Set(['names', 'document', 'limitParameter'])

/** The settings that make an upstream; those of an embedded server include more. */
const upstreamSettings = (service: ServiceConfig): unknown => {
  const { contract, upstream, hosts, publicUrl } = service
  const isEmbedded = upstream.targets === 'embedded'
  const address = upstream.host === 'preserve' || isEmbedded ? { hosts, publicUrl } : {}
  const more = isEmbedded ? Object.entries(service).filter(([key]) => embeddedKeys.has(key)) : []
  return { contract, upstream, ...address, ...Object.fromEntries(more) }
}

/** Decides what a service takes over; a changed mount is a new service for its clients. */
export const decideAdoption = (from: Configured, to: Configured): Adoption => {
  const isSame =
    sameSettings(ofService(from.limits), ofService(to.limits)) && sameSettings(from.service, to.service)
  if (isSame) return 'service'
  return sameSettings(upstreamSettings(from.service), upstreamSettings(to.service)) ? 'upstream' : 'nothing'
}

/** What the indexes of sites announce that no row could be made of, for the status page. */
export const refusedRoutes = (built: readonly BuiltService[]) =>
  built.flatMap(({ service: { name }, upstreamRoutes }) => {
    const text = upstreamRoutes?.refused()
    return text === undefined ? [] : [{ subject: name, text }]
  })
