import { buildBatch } from '../batch/batch-route.ts'
import type { Clock } from '../clock.ts'
import type { SharedStores } from '../cluster/shared-store.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { changesOf, heardLifetimeMs, pollMsOf } from '../config/sites.ts'
import type { Received } from '../exchange/exchange.ts'
import { createTargetMemo, type Service } from '../exchange/service.ts'
import type { ByteBudget } from '../http/bounds.ts'
import { createPublicLinks } from '../http/links.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { BuiltAccess } from '../server/access.ts'
import type { Contract } from '../service/contract.ts'
import { createUpstream } from '../upstream/upstream.ts'
import type { ReportedLease } from '../wordpress/changes/change-feeds.ts'
import { createWitness } from '../wordpress/changes/witness.ts'
import { harmlessWritesOf } from '../wordpress/routes/harmless-writes.ts'
import {
  type BuiltService,
  type BuiltUpstream,
  contentIdOf,
  type FormAt,
  ownGet,
  serverOf,
  withoutRoot,
} from './built-service.ts'
import {
  addressOf,
  buildAccess,
  contractOf,
  dependsOnHost,
  limitsOf,
  responseChangesOf,
  startEmbedded,
  upstreamOptions,
} from './contracts.ts'

const withForms = (service: Omit<Service, 'atHost'>, formAt: FormAt | undefined): Service => ({
  ...service,
  atHost: formAt && ((host) => ({ ...service, ...formAt(host), atHost: undefined })),
})

export type ServiceParts = {
  readonly config: Config
  readonly publicUrl: string
  readonly clock: Clock
  readonly metrics: Metrics
  /** Bounds the bytes buffered for requests in flight. */
  readonly budget: ByteBudget
  run(exchange: Received): Promise<GatewayResponse>
  /** Is knowledge that was read from an upstream earlier still valid? */
  mayRemember(): boolean
  /** Undefined without a store that instances share. */
  readonly stores?: SharedStores | undefined
  /** The next four follow the configuration in use. */
  serviceNamed(name: string): Service | undefined
  reaches(service: Service, target: string): boolean
  readonly serviceAt: Service['serviceAt']
  /** Other services with one of the servers of an upstream. */
  sharing(servers: BuiltUpstream['servers']): readonly Service[]
  /** Drops what is stored of a service: its rows are others now; absent where nothing is served. */
  readonly tableChanged?: (name: string) => void
  /** Whether every change of a service is known; absent where nothing is served. */
  readonly feedLease?: (name: string) => ReportedLease
}

/** May responses of the service be stored? */
const storesAnswers = ({ cache }: ServiceConfig): boolean =>
  cache.rules.length > 0 || cache.profile === 'rfc-shared-cache'

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
const rememberedTargets = 8192

/** Parts taken over when a service is built: its upstream, and its access. */
type TakenOver = {
  readonly upstream?: BuiltUpstream
  readonly access?: BuiltAccess | undefined
}

/** A site whose table has changed gives its responses other tags. */
const contentIdIn =
  (id: string, { tableId }: Contract) =>
  (): string =>
    id + tableId()

/** Builds one service: its embedded server if it has one, its upstream, and its parts. */
export const buildService = async (
  config: ServiceConfig,
  parts: ServiceParts,
  known: TakenOver = {},
): Promise<BuiltService> => {
  const limits = limitsOf(config, parts.config.limits)
  const built = known.upstream ?? (await buildUpstream(config, parts))
  const { upstream, targets } = built
  const lifetimeMs = heardLifetimeMs(config)
  const feed = parts.feedLease?.(config.name)
  const changes = changesOf(config)
  const whileHeard = lifetimeMs === undefined || feed === undefined ? undefined : { lifetimeMs, feed }
  const contract = await contractOf(config, limits, whileHeard)
  const memo = createTargetMemo(rememberedTargets)
  const address = addressOf(config, parts.publicUrl)
  const connected = contract.connect?.({
    ...parts,
    targets,
    publicRoot: address.publicUrl + withoutRoot(config.mount),
    hostField: address.hostField,
    get: (request, mostBytes) => ownGet(upstream, request, mostBytes),
    rowsLearned: memo.clear,
    tableChanged: () => parts.tableChanged?.(config.name),
    report: parts.metrics.observe.discovery,
  })
  const basePath = withoutRoot(config.upstream.basePath)
  const roots = targets.map((origin) => origin + basePath)
  const form = (host?: string) => {
    const { publicUrl, publicHost, hostField } = addressOf(config, parts.publicUrl, host)
    const publicRoot = publicUrl + withoutRoot(config.mount)
    return {
      publicHost,
      hostField: host === undefined ? undefined : hostField,
      publicRoot,
      // An upstream may write its own URLs with the host of X-Forwarded-Host.
      roots: [...roots, `http://${publicHost}${basePath}`, publicRoot],
      translation: connected?.translationAt(publicRoot, hostField),
      links:
        connected === undefined
          ? createPublicLinks({ targets, publicHost, publicRoot, basePath, mount: withoutRoot(config.mount) })
          : undefined,
    }
  }
  const formAt: FormAt | undefined = dependsOnHost(config) ? (host) => ({ ...form(host), host }) : undefined
  const access = await buildAccess(config, parts, known.access)
  const general: Omit<Service, 'atHost'> = {
    ...form(),
    name: config.name,
    contract,
    mount: withoutRoot(config.mount),
    hosts: config.hosts,
    host: '',
    responseChanges: responseChangesOf(config),
    compresses: config.compress,
    websockets: 'websockets' in config && config.websockets,
    access,
    bodyBytes: limits.bodyBytes,
    uploadBytes: limits.uploadBytes,
    memo,
    witness:
      feed === undefined || changes === undefined || pollMsOf(config, changes) === 0
        ? undefined
        : createWitness(changes.token.reveal(), feed, parts.clock),
    harmlessWrite: harmlessWritesOf(config, () =>
      parts.sharing(built.servers).flatMap((one) => (one.contract.announces ? [one.basePath] : [])),
    ),
    storesAnswers: storesAnswers(config) || connected !== undefined,
    contentId: contentIdIn(contentIdOf(config, targets, parts.config), contract),
    isCurrent: () => parts.serviceNamed(config.name)?.memo === memo,
    sharing: () => parts.sharing(built.servers),
    serviceAt: parts.serviceAt,
    // Where the gateway answers CORS itself, the upstream decides nothing.
    anyOrigins: parts.config.cors.origins.length > 0 ? undefined : connected?.anyOrigins,
    basePath,
    upstream,
    upstreamTotalMs: config.upstream.timeouts.totalMs,
    local: connected?.local,
    batch: buildBatch(config, contract, {
      clock: parts.clock,
      report: (event) => parts.metrics.observe.batch(config.name, event),
      budget: parts.budget,
      run: parts.run,
      reaches: parts.reaches,
      stores: parts.stores,
    }),
  }
  const announced = connected?.announced
  announced?.start()
  const service = withForms(general, formAt)
  return { config, service, contract, announced, upstream: built, formAt, access }
}
