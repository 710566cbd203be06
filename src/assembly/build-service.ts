import type { Clock } from '../clock.ts'
import type { Config, ServiceConfig, SiteConfig } from '../config/config.ts'
import { createDiscovery, type Discovery } from '../discovery/discovery.ts'
import type { IndexAnswer } from '../discovery/index-source.ts'
import type { Answer } from '../http/message.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import { createNames, type Names } from '../names/names.ts'
import type { Received } from '../pipeline/exchange.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { LocalAnswers, Service } from '../pipeline/service.ts'
import { createUpstream, type Upstream } from '../upstream/upstream.ts'
import { type ServiceContract, serviceContract, siteNameTable } from './service-contract.ts'
import { siteAnswers } from './site-answers.ts'
import { startEmbedded } from './start-embedded.ts'
import { upstreamOptions } from './upstream-options.ts'

/** A service with everything behind it, and how to end it. */
export type BuiltService = {
  readonly service: Service
  readonly contract: ServiceContract
  readonly discovery: Discovery | undefined
  close(): Promise<void>
}

export type ServiceParts = {
  readonly config: Config
  readonly publicUrl: string
  readonly clock: Clock
  readonly metrics: Metrics
  run(exchange: Received): Answer
}

const mostIndexBytes = 8 * 1024 * 1024
const indexTimeoutMs = 10_000
const indexRetryMs = 5_000

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

const fetchIndex =
  (upstream: Upstream, basePath: string) =>
  async (signal: AbortSignal): Promise<IndexAnswer> => {
    const response = await upstream.forward({
      method: 'GET',
      target: `${basePath}/`,
      fields: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': 'trellis' },
      content: undefined,
      signal,
    })
    const { content, status } = await completed(response, mostIndexBytes)
    if (content === undefined) return { status, content: Buffer.alloc(0) }
    if (Buffer.isBuffer(content)) return { status, content }
    content.destroy()
    throw new RangeError('the index of the upstream is larger than 8 MiB')
  }

type SiteRooms = { readonly names: Names; readonly discovery: Discovery; readonly local: LocalAnswers }

const siteRooms = (
  config: SiteConfig,
  contract: ServiceContract,
  upstream: Upstream,
  targets: readonly string[],
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
  const { identity } = config.discovery.source === 'static' ? config.discovery : { identity: undefined }
  const discovery: Discovery = createDiscovery({
    service: config.name,
    clock: parts.clock,
    rows: contract.rows,
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
    fetchIndex: fetchIndex(upstream, basePath),
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
    run: parts.run,
  })
  return { names, discovery, local }
}

/** Builds one service: its embedded server when it has one, the way to its upstream, and its rooms. */
export const buildService = async (config: ServiceConfig, parts: ServiceParts): Promise<BuiltService> => {
  const { limits } = parts.config
  const embedded = await startEmbedded(config, limits, parts.publicUrl)
  const targets = embedded === undefined ? (config.upstream.targets as readonly string[]) : [embedded.origin]
  const upstream = createUpstream(
    upstreamOptions(config, targets, parts.publicUrl),
    { clock: parts.clock, random: Math.random, report: parts.metrics.observe.upstream },
  )
  const contract = serviceContract(config, limits)
  const site = config.contract === 'site' ? siteRooms(config, contract, upstream, targets, parts) : undefined
  const service: Service = {
    name: config.name,
    contract: config.contract,
    mount: withoutRoot(config.mount),
    requiresBearer: config.contract === 'plants',
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
    invalidatesTargets: config.contract === 'open',
    roots: [
      ...[upstream.placeholderOrigin, ...targets].map(
        (origin) => origin + withoutRoot(config.upstream.basePath),
      ),
      parts.publicUrl + withoutRoot(config.mount),
    ],
    basePath: withoutRoot(config.upstream.basePath),
    upstream,
    upstreamTotalMs: config.upstream.timeouts.totalMs,
    local: site?.local,
  }
  site?.discovery.start()
  return {
    service,
    contract,
    discovery: site?.discovery,
    close: async () => {
      await site?.discovery.close()
      await upstream.close()
      await embedded?.close()
    },
  }
}
