import { randomBytes } from 'node:crypto'
import { buildBatch } from '../batch/batch-route.ts'
import type { Clock } from '../clock.ts'
import type { SharedStores } from '../cluster/shared-store.ts'
import type { Config, ServiceConfig, SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { anyOriginOf, createAnyOrigins } from '../exchange/any-origin.ts'
import { type Received, upstreamTarget } from '../exchange/exchange.ts'
import { createTargetMemo, type LocalAnswers, type Service } from '../exchange/service.ts'
import type { ByteBudget } from '../http/bounds.ts'
import { urlAtHost } from '../http/hosts.ts'
import { createPublicLinks } from '../http/links.ts'
import { remembered } from '../http/memo.ts'
import { type Answer, discard, type GatewayResponse, ownJsonFields, withField } from '../http/message.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { BuiltAccess } from '../server/access.ts'
import type { Contract } from '../service/contract.ts'
import { createUpstream, type Upstream } from '../upstream/upstream.ts'
import type { ReportedLease } from '../wordpress/changes/change-feeds.ts'
import { createWitness } from '../wordpress/changes/witness.ts'
import { siteNameTable } from '../wordpress/contract.ts'
import { createDiscovery, type Discovery, rowsBeforeIndex } from '../wordpress/index/discovery.ts'
import type { IndexAnswer } from '../wordpress/index/index-source.ts'
import { createNames, type Names } from '../wordpress/names/names.ts'
import { harmlessWritesOf } from '../wordpress/routes/harmless-writes.ts'
import {
  type BuiltService,
  type BuiltUpstream,
  changesOf,
  contentIdOf,
  type FormAt,
  heardLifetimeMs,
  ownGet,
  pollMsOf,
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
} from './service-contract.ts'

type SiteDocument = Extract<ReturnType<Discovery['options']>, { readonly kind: 'document' }>

/** Gives the documents of a site with links for the service that was asked: they are made for one root. */
const createDocumentResponse = (madeFor: string) => {
  const namesFor = remembered((publicRoot) =>
    createNames({
      mode: 'same',
      table: siteNameTable,
      publicRoot,
      learned: { root: madeFor },
      upstreamRoots: () => [madeFor],
    }),
  )
  return ({ fields, content }: SiteDocument, { publicRoot }: Service): GatewayResponse => {
    const isAsMade = publicRoot === madeFor
    const shown = isAsMade ? content : namesFor(publicRoot).fromUpstreamDocument(content)
    const lines = isAsMade ? fields : withField(fields, 'Link', `<${publicRoot}/>; rel="https://api.w.org/"`)
    return { status: 200, fields: [...lines, 'Content-Length', String(shown.length)], content: shown }
  }
}

/** The schema from the upstream, or the table's arguments without one. */
const askedOptions = async (ask: () => Answer, fallback: () => GatewayResponse): Promise<GatewayResponse> => {
  try {
    const response = await ask()
    if (response.status === 200) return response
    discard(response.content)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.facts.fault === 'client') throw error
  }
  return fallback()
}

type SiteAnswersOptions = {
  readonly discovery: Discovery
  /** The root that the documents of `discovery` are made for. */
  readonly publicRoot: string
  /** Is the index that was read before still valid? */
  mayRemember(): boolean
}

/** Writes to these, and to what no row lists, can change the site's identity or its routes. */
const describedBy: ReadonlySet<string> = new Set(['settings', 'plugins', 'themes', ''])

/** Requests that the gateway answers itself for a site: its documents and the batch. */
const siteAnswers = (options: SiteAnswersOptions): LocalAnswers => {
  const { discovery } = options
  const asResponse = createDocumentResponse(options.publicRoot)
  return {
    index: async (exchange, row) => {
      const { query, service } = exchange
      if (!options.mayRemember()) discovery.invalidate()
      const answer =
        row.namespace === ''
          ? await discovery.index(query)
          : await discovery.namespaceIndex(row.namespace, query)
      switch (answer.kind) {
        case 'document':
          return asResponse(answer, service)
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
    options: ({ service }, row, ask) => {
      const answer = discovery.options(row)
      return answer.kind === 'document'
        ? asResponse(answer, service)
        : askedOptions(ask, () => asResponse(answer.fallback, service))
    },
  }
}

const mostIndexBytes = 8 * 1024 * 1024

const mostAnswerBytes = 1024 * 1024

const unknownOrigin = (): string => `https://${randomBytes(8).toString('hex')}.invalid`

/** Fetches the index of a site with an unknown origin: the response shows whether the site allows every origin. */
const createIndexFetch = (upstream: Upstream, basePath: string, targetOf: (path: string) => string) => {
  const ask = (target: string, signal: AbortSignal, fields: readonly string[], mostBytes: number) =>
    ownGet(upstream, { target, fields: [...ownJsonFields, ...fields], signal }, mostBytes)
  const anyOrigins = createAnyOrigins(async (path) => {
    const origin = unknownOrigin()
    const signal = AbortSignal.timeout(routeTimeoutMs)
    const { status, fields } = await ask(targetOf(path), signal, ['origin', origin], mostAnswerBytes)
    if (status >= 500) throw new RangeError(`the upstream answered ${status}`)
    return anyOriginOf(fields, origin)
  })
  const askIndex = (signal: AbortSignal, fields: readonly string[]) =>
    ask(`${basePath}/`, signal, fields, mostIndexBytes)
  const fetchIndex = async (signal: AbortSignal): Promise<IndexAnswer> => {
    const origin = unknownOrigin()
    const first = await askIndex(signal, ['origin', origin])
    const isRefused = first.status >= 400 && first.status < 500
    // A plugin may refuse other origins: fetch the index without one then.
    const { status, fields, content } = isRefused ? await askIndex(signal, []) : first
    anyOrigins.indexRead(status === 200 ? anyOriginOf(fields, origin) : undefined)
    if (content === undefined) throw new RangeError('the index of the upstream is larger than 8 MiB')
    return { status, content }
  }
  return { fetchIndex, anyOrigins }
}

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
  run(exchange: Received): Answer
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

const indexTimeoutMs = 10_000
const routeTimeoutMs = 2_000
const indexRetryMs = 5_000

/** May responses of the service be stored, or made by the gateway itself? */
const storesAnswers = ({ cache, contract }: ServiceConfig): boolean =>
  cache.rules.length > 0 || cache.profile === 'rfc-shared-cache' || contract === 'site'

const siteParts = (
  config: SiteConfig,
  contract: Contract,
  { upstream, targets }: BuiltUpstream,
  parts: ServiceParts,
) => {
  const address = addressOf(config, parts.publicUrl)
  const publicRoot = `${address.publicUrl}${withoutRoot(config.mount)}`
  const basePath = withoutRoot(config.upstream.basePath)
  const ownRoots = targets.map((origin) => `${origin}${basePath}`)
  /** Translates to the root of one host, or to the root of the service. */
  const namesAt = (root: string, hostField: string): Names =>
    createNames({
      mode: config.names,
      table: siteNameTable,
      publicRoot: root,
      learned: discovery.upstream,
      upstreamRoots: (learned) => {
        if (learned === undefined) return ownRoots
        // An upstream that gets the client's host may write its links with it.
        const isOfHost = hostField !== address.hostField && new URL(learned).host === address.hostField
        return [learned, ...(isOfHost ? [urlAtHost(learned, hostField)] : []), ...ownRoots]
      },
    })
  const index = createIndexFetch(upstream, basePath, (path) =>
    upstreamTarget({ basePath, translation: names }, path, ''),
  )
  if (config.discovery.source === 'upstream') contract.learn(rowsBeforeIndex(contract.rows), [])
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
    tableChanged: () => parts.tableChanged?.(config.name),
    report: parts.metrics.observe.discovery,
  })
  const names = namesAt(publicRoot, address.hostField)
  const local = siteAnswers({ publicRoot, discovery, mayRemember: parts.mayRemember })
  // Without readings of the index nothing that was learnt of a route would end.
  const anyOrigins = identity === undefined ? index.anyOrigins : undefined
  return { namesAt, discovery, local, anyOrigins }
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
const rememberedTargets = 8192

/** Parts taken over when a service is built: its upstream, and its access. */
type Known = {
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
  known: Known = {},
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
  const learn: Contract['learn'] = (listed, learned) => {
    contract.learn(listed, learned)
    memo.clear()
  }
  const site =
    config.contract === 'site' ? siteParts(config, { ...contract, learn }, built, parts) : undefined
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
      translation: site?.namesAt(publicRoot, hostField),
      links:
        site === undefined
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
    websockets: config.contract === 'open' && config.websockets,
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
    storesAnswers: storesAnswers(config),
    contentId: contentIdIn(contentIdOf(config, targets, parts.config), contract),
    isCurrent: () => parts.serviceNamed(config.name)?.memo === memo,
    sharing: () => parts.sharing(built.servers),
    serviceAt: parts.serviceAt,
    // Where the gateway answers CORS itself, the upstream decides nothing.
    anyOrigins: parts.config.cors.origins.length > 0 ? undefined : site?.anyOrigins,
    basePath,
    upstream,
    upstreamTotalMs: config.upstream.timeouts.totalMs,
    local: site?.local,
    batch: buildBatch(config, contract, {
      clock: parts.clock,
      report: (event) => parts.metrics.observe.batch(config.name, event),
      budget: parts.budget,
      run: parts.run,
      reaches: parts.reaches,
      stores: parts.stores,
    }),
  }
  const discovery = site?.discovery
  discovery?.start()
  const service = withForms(general, formAt)
  return { config, service, contract, discovery, upstream: built, formAt, access }
}
