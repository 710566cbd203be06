import { systemClock } from '../clock.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import type { Endpoint, Row } from '../contracts/row.ts'
import { GatewayError } from '../errors.ts'
import { unlimited } from '../http/byte-budget.ts'
import { fieldValue } from '../http/fields.ts'
import { createMetrics } from '../observability/metrics.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { Difference } from '../site/drift.ts'
import type { DiscoveryEvent, IndexRefusal } from '../site/events.ts'
import {
  homeFinding,
  indexFinding,
  isIndex,
  loopFinding,
  otherRoots,
  type Reached,
  type Seen,
  type SiteFinding,
} from '../site/site-findings.ts'
import { createUpstream } from '../upstream/upstream.ts'
import { type BuiltService, buildService, closeServices, serverOf, upstreamOptions } from './service.ts'
import { type ServiceContract, serviceContract } from './service-contract.ts'

/** What asking the upstream of one service came to. */
export type ServiceDrift = {
  readonly service: string
  readonly outcome:
    | { readonly kind: 'compared'; readonly differences: readonly Difference[] }
    /** The reason in words, for a person. */
    | { readonly kind: 'unread'; readonly reason: string }
}

const inWords: Readonly<Record<IndexRefusal, string>> = {
  unreachable: 'no connection, or it broke off',
  timeout: 'no answer in time',
  status: 'the status of the answer was not 200; is upstream.basePath the root of the interface?',
  'too-large': 'the answer is too large',
  'too-deep': 'the answer is nested too deep',
  'too-many-routes': 'it announces too many routes',
  'not-json': 'the answer is not JSON; is upstream.basePath the root of the interface?',
  'not-an-index': 'the answer has no routes; is upstream.basePath the root of the interface?',
  unusable: 'no use could be made of it',
}

/** No request is served while upstreams are looked at. */
const neverRun = (): never => {
  throw new Error('nothing is served')
}

/** A service that was built to be looked at, and why the index of its upstream could not be read, if it could not. */
type Asked = { readonly built: BuiltService; readonly refusal: string | undefined }

const ask = async (service: ServiceConfig, config: Config): Promise<Asked> => {
  let refusal: IndexRefusal | undefined
  const metrics = createMetrics({ version: '', configHash: '', processMetrics: false })
  const discovery = (event: DiscoveryEvent): void => {
    if (event.kind === 'index-failed') refusal = event.reason
  }
  // An identity of its own does not say what the upstream offers: the upstream is asked all the same.
  const asked: ServiceConfig =
    service.contract === 'site'
      ? { ...service, discovery: { source: 'upstream', refreshMs: service.discovery.refreshMs } }
      : service
  const built = await buildService(asked, {
    config,
    publicUrl: config.publicUrl,
    clock: systemClock,
    metrics: { ...metrics, observe: { ...metrics.observe, discovery } },
    budget: () => unlimited,
    run: neverRun,
    mayRemember: () => true,
    serviceNamed: () => undefined,
    sharing: () => [],
  })
  // The one request that building has begun.
  await built.discovery?.refresh()
  return { built, refusal: refusal === undefined ? undefined : inWords[refusal] }
}

/** Builds these services one after the other, asks the upstream of each site for its index, once, and ends them after `use`. Listens nowhere public. */
export const withAskedServices = async <Value>(
  services: readonly ServiceConfig[],
  config: Config,
  use: (asked: readonly Asked[]) => Value,
): Promise<Value> => {
  const asked: Asked[] = []
  try {
    for (const service of services) asked.push(await ask(service, config))
    return use(asked)
  } finally {
    await closeServices(
      asked.map(({ built }) => built),
      [],
    )
  }
}

/** Compares what the upstream of each site service announces with the contract. */
export const driftReport = (config: Config): Promise<readonly ServiceDrift[]> =>
  withAskedServices(
    config.services.filter(({ contract }) => contract === 'site'),
    config,
    (asked) =>
      asked.map(({ built, refusal }) => ({
        service: built.config.name,
        outcome:
          refusal === undefined
            ? { kind: 'compared', differences: built.discovery?.drift() ?? [] }
            : { kind: 'unread', reason: refusal },
      })),
  )

/** One line of `trellis routes`: an endpoint of a row, under its public path. */
type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How answers are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
  /** `learned`: the contract does not list it, the index of the upstream does. */
  readonly source: 'contract' | 'learned'
}

/** What `trellis routes` shows, and of which upstreams nothing could be learned. */
export type RouteReport = {
  readonly lines: readonly RouteLine[]
  readonly unread: readonly { readonly service: string; readonly reason: string }[]
}

const seconds = (ms: number): string => `${ms / 1000}s`

const cachedHow = (contract: ServiceContract, row: Row, endpoint: Endpoint): string => {
  if (!endpoint.methods.includes('GET')) return '-'
  if (row.handledBy === 'discovery') return 'by the gateway'
  const { rule, profile } = contract.policyFor('GET', row.template)
  if (rule === undefined) return profile === 'rfc-shared-cache' ? 'as RFC 9111 allows' : '-'
  return rule.scope === 'public' ? seconds(rule.ttlMs) : `${seconds(rule.ttlMs)} per credential`
}

const linesOf = (
  config: ServiceConfig,
  contract: ServiceContract,
  rows: readonly Row[],
  source: RouteLine['source'],
): RouteLine[] => {
  const mount = config.mount === '/' ? '' : config.mount
  return rows.flatMap((row) =>
    row.endpoints.map((endpoint) => ({
      method: row.template === '/**' ? '*' : endpoint.methods.join(','),
      path: `${mount}${row.template}`,
      service: config.name,
      cached: cachedHow(contract, row, endpoint),
      batchable: endpoint.allowBatch === true,
      source,
    })),
  )
}

/** Every route that the configuration serves by contract; what an upstream announces besides is learned at run time. */
export const describeRoutes = (config: Config): RouteReport => ({
  lines: config.services.flatMap((service) => {
    const contract = serviceContract(service, config.limits)
    return linesOf(service, contract, contract.rows, 'contract')
  }),
  unread: [],
})

/** The same with the routes that are learned from the upstreams, which are asked once each. */
export const describeLearnedRoutes = (config: Config): Promise<RouteReport> =>
  withAskedServices(config.services, config, (asked) => ({
    lines: asked.flatMap(({ built: { config: service, contract, discovery } }) => [
      ...linesOf(service, contract, contract.rows, 'contract'),
      ...linesOf(service, contract, discovery?.learned().rows ?? [], 'learned'),
    ]),
    unread: asked.flatMap(({ built, refusal }) =>
      refusal === undefined ? [] : [{ service: built.config.name, reason: refusal }],
    ),
  }))

/** What does not fit between one service and its upstream. */
export type UpstreamFinding = SiteFinding & { readonly service: string }

const mostBytes = 8 * 1024 * 1024
const askMs = 5_000
/** For all that is asked of one service. */
const serviceMs = 15_000

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

const reasonOf = (error: unknown): string => {
  if (!(error instanceof GatewayError)) return 'no answer in time'
  const { cause } = error
  return cause instanceof Error && 'code' in cause ? String(cause.code) : error.message
}

type Ask = (target: string) => Promise<Seen>

/** Hands out GETs to a service's upstream, sent as those of a client would be: no redirect is followed. */
const asking = async <Value>(
  service: ServiceConfig,
  targets: readonly string[],
  config: Config,
  use: (ask: Ask) => Promise<Value>,
): Promise<Value> => {
  const { publicUrl, limits } = config
  const options = upstreamOptions(service, targets, publicUrl, limits)
  const upstream = createUpstream(
    { ...options, health: { ...options.health, path: '' } },
    { clock: systemClock, random: Math.random, report: () => {} },
  )
  const { host, protocol } = new URL(publicUrl)
  const whole = AbortSignal.timeout(serviceMs)
  const forwarded = ['x-forwarded-host', host, 'x-forwarded-proto', protocol.slice(0, -1)]
  const ask: Ask = async (target) => {
    try {
      const response = await upstream.forward({
        method: 'GET',
        target,
        fields: ['accept-encoding', 'identity', 'user-agent', 'trellis', ...forwarded],
        content: undefined,
        signal: AbortSignal.any([whole, AbortSignal.timeout(askMs)]),
      })
      const { status, fields, content } = await completed(response, mostBytes, unlimited)
      if (content !== undefined && !Buffer.isBuffer(content)) content.destroy()
      return {
        kind: 'answer',
        status,
        location: fieldValue(fields, 'location'),
        content: Buffer.isBuffer(content) ? content : Buffer.alloc(0),
      }
    } catch (error) {
      return { kind: 'none', reason: reasonOf(error) }
    }
  }
  try {
    return await use(ask)
  } finally {
    await upstream.close()
  }
}

const reachedBy = ({ publicUrl }: Config, { mount, upstream }: ServiceConfig): Reached => ({
  publicUrl: publicUrl.replace(/\/$/, ''),
  mount,
  host: upstream.host,
})

const ofSite = async (ask: Ask, service: ServiceConfig, config: Config): Promise<SiteFinding[]> => {
  const basePath = withoutRoot(service.upstream.basePath)
  const seen = await ask(`${basePath}/`)
  const found: string[] = []
  // Only an answer without an index leaves the question where the index is.
  if (indexFinding(basePath, seen, [])?.kind === 'no-wordpress') {
    for (const root of otherRoots(basePath)) {
      if (found.length === 0 && isIndex(await ask(`${root}/`))) found.push(root)
    }
  }
  return [indexFinding(basePath, seen, found), homeFinding(reachedBy(config, service), seen)].filter(
    (finding) => finding !== undefined,
  )
}

const ofPages = async (ask: Ask, service: ServiceConfig, config: Config): Promise<SiteFinding[]> => {
  const finding = loopFinding(
    reachedBy(config, service),
    await ask(`${withoutRoot(service.upstream.basePath)}/`),
  )
  return finding === undefined ? [] : [finding]
}

const targetsOf = ({ upstream: { targets } }: ServiceConfig): readonly string[] =>
  targets === 'embedded' ? [] : targets

/**
 * Asks the upstreams of the site services, and the front pages of open services on the same servers, a few GETs each, and
 * says how they do not fit the configuration. Never throws; ends in bounded time.
 */
export const upstreamFindings = async (config: Config): Promise<readonly UpstreamFinding[]> => {
  const sites = config.services.filter(({ contract }) => contract === 'site')
  const servers = new Set(sites.flatMap(targetsOf).map(serverOf))
  const concerned = config.services.filter(
    (service) =>
      targetsOf(service).length > 0 &&
      (service.contract === 'site' ||
        (service.contract === 'open' && targetsOf(service).some((origin) => servers.has(serverOf(origin))))),
  )
  const findings = await Promise.all(
    concerned.map(async (service) => {
      const look = service.contract === 'site' ? ofSite : ofPages
      const found = await asking(service, targetsOf(service), config, (ask) => look(ask, service, config))
      return found.map((finding) => ({ service: service.name, ...finding }))
    }),
  )
  return findings.flat()
}

/** One line a finding. */
export const warnOf = (
  log: { warn(facts: object, message: string): void },
  { service, kind, text }: UpstreamFinding,
): void => log.warn({ service, finding: kind, detail: text }, 'upstream-finding')
