import { systemClock } from '../clock.ts'
import { type Config, type ServiceConfig, type SiteConfig, targetsOf } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { unlimited } from '../http/bounds/byte-budget.ts'
import { cacheControlOf } from '../http/headers/caching-headers.ts'
import { headerValue } from '../http/headers/header-lines.ts'
import { Redaction } from '../http/redaction.ts'
import type { Log } from '../observability/logger.ts'
import { createMetrics } from '../observability/metrics.ts'
import type {
  Difference,
  DiscoveryEvent,
  IndexRefusal,
  Issue,
  Seen,
  UpstreamCheck,
} from '../service/connection.ts'
import type { Contract } from '../service/contract.ts'
import type { Endpoint, Row } from '../service/row.ts'
import { createUpstream } from '../upstream/upstream.ts'
import { reachIssue } from '../wordpress/index/site-issues.ts'
import { askSite, type SiteFacts } from '../wordpress/site-checks.ts'
import { descriptionLabels } from '../wordpress/tags/description-labels.ts'
import { checksOf, contractOf, upstreamOptions } from './contracts.ts'
import { addressOf } from './service-address.ts'
import {
  type BuiltService,
  buildService,
  closeServices,
  ownGet,
  refusedRoutes,
  serverOf,
  withoutRoot,
} from './snapshot/build-service.ts'

export type ServiceDrift = {
  readonly service: string
  readonly outcome:
    | { readonly kind: 'compared'; readonly differences: readonly Difference[] }
    /** The reason in words, for a person. */
    | { readonly kind: 'unread'; readonly reason: string }
}

const inWords: Readonly<Record<IndexRefusal, string>> = {
  unreachable: 'no connection, or the connection broke',
  timeout: 'no response in time',
  status: 'the status was not 200; check upstream.basePath',
  'too-large': 'the response is too large',
  'too-deep': 'the response is nested too deep',
  'not-json': 'the response is not JSON; check upstream.basePath',
  'not-an-index': 'the response has no routes; check upstream.basePath',
  unusable: 'it could not be used',
}

const hasIndex = (service: ServiceConfig): service is SiteConfig => 'discovery' in service

/** A service built for a check; `refusal`: why the index of its upstream could not be read. */
type CheckedService = { readonly built: BuiltService; readonly refusal: string | undefined }

const ask = async (service: ServiceConfig, config: Config): Promise<CheckedService> => {
  let refusal: IndexRefusal | undefined
  const metrics = createMetrics({ descriptionLabels, version: '', configHash: '', processMetrics: false })
  const discovery = (event: DiscoveryEvent): void => {
    if (event.kind === 'index-failed') refusal = event.reason
  }
  // A configured identity does not describe the routes of the upstream: fetch the index anyway.
  const upstreamSource: ServiceConfig = hasIndex(service)
    ? { ...service, discovery: { source: 'upstream', refreshMs: service.discovery.refreshMs } }
    : service
  const built = await buildService(upstreamSource, {
    config,
    publicUrl: config.publicUrl,
    clock: systemClock,
    metrics: { ...metrics, observe: { ...metrics.observe, discovery } },
    budget: () => unlimited,
    mayRemember: () => true,
    redaction: new Redaction(),
  })
  // Wait for the request that building has started.
  await built.upstreamRoutes?.refresh()
  return { built, refusal: refusal === undefined ? undefined : inWords[refusal] }
}

/** Builds these services one after the other, fetches the index of each site once, and closes them after `use`. Opens no public port. */
export const withAskedServices = async <Value>(
  services: readonly ServiceConfig[],
  config: Config,
  use: (checkedServices: readonly CheckedService[]) => Value | Promise<Value>,
): Promise<Value> => {
  const checkedServices: CheckedService[] = []
  try {
    for (const service of services) checkedServices.push(await ask(service, config))
    return await use(checkedServices)
  } finally {
    await closeServices(
      checkedServices.map(({ built }) => built),
      [],
    )
  }
}

/** Compares what the upstream of each site service announces with the contract. */
export const driftReport = (config: Config): Promise<readonly ServiceDrift[]> =>
  withAskedServices(config.services.filter(hasIndex), config, (checkedServices) =>
    checkedServices.map(({ built, refusal }) => ({
      service: built.config.name,
      outcome:
        refusal === undefined
          ? { kind: 'compared', differences: built.upstreamRoutes?.drift() ?? [] }
          : { kind: 'unread', reason: refusal },
    })),
  )

/** One line of `trellis routes`: an endpoint of a row, under its public path. */
type RouteLine = {
  readonly method: string
  readonly path: string
  /** Host patterns of the service; none = every host. */
  readonly hosts: readonly string[]
  readonly service: string
  /** How responses are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
  /** `learned`: the contract does not list it, the index of the upstream does. */
  readonly source: 'contract' | 'learned'
  /** The kind of the path with the reason, with `invalidation: structural`. */
  readonly resource?: string | undefined
}

/** The output of `trellis routes`, and the upstreams whose routes could not be read. */
export type RouteReport = {
  readonly lines: readonly RouteLine[]
  readonly unread: readonly { readonly service: string; readonly reason: string }[]
  /** Announced routes of which no row could be made, in words. */
  readonly refused: readonly { readonly service: string; readonly text: string }[]
}

const seconds = (ms: number): string => `${ms / 1000}s`

const cachedHow = (contract: Contract, row: Row, endpoint: Endpoint): string => {
  if (!endpoint.methods.includes('GET')) return '-'
  if (row.handledBy === 'discovery') return 'by the gateway'
  if (contract.effectByContent === true) return 'by operation'
  const { rule, profile } = contract.policyFor('GET', row.template)
  if (rule === undefined) return profile === 'rfc-shared-cache' ? 'as RFC 9111 allows' : '-'
  if (rule.scope === 'credential') return `${seconds(rule.ttlMs)} per credential`
  const needsCredential = contract.challenge?.(endpoint, {}, '') !== undefined
  return needsCredential && profile === 'safe' ? '-' : seconds(rule.ttlMs)
}

/** An open service has one row for all paths, which only its rules distinguish. */
const ruleLines = (config: ServiceConfig, { hasRoutes }: Contract): RouteLine[] =>
  hasRoutes
    ? []
    : config.cache.rules.map(({ match, ttlMs, scope }) => ({
        method: match.methods.join(','),
        path: `${withoutRoot(config.mount)}/${match.segments.join('/')}`,
        service: config.name,
        hosts: config.hosts,
        cached: scope === 'credential' ? `${seconds(ttlMs)} per credential` : seconds(ttlMs),
        batchable: false,
        source: 'contract',
      }))

const linesOf = (
  config: ServiceConfig,
  contract: Contract,
  rows: readonly Row[],
  source: RouteLine['source'],
): RouteLine[] =>
  rows.flatMap((row) =>
    row.endpoints.map((endpoint) => ({
      method: row.template === '/**' ? '*' : endpoint.methods.join(','),
      path: withoutRoot(config.mount) + row.template,
      hosts: config.hosts,
      service: config.name,
      cached: cachedHow(contract, row, endpoint),
      batchable: endpoint.allowBatch === true,
      source,
      resource: contract.describe(endpoint).resource,
    })),
  )

/** Every route of the configuration's contracts; further routes of an upstream are learned at run time. */
export const describeRoutes = async (config: Config): Promise<RouteReport> => {
  const lines = config.services.map(async (service) => {
    const contract = await contractOf(service, config.limits)
    return [...ruleLines(service, contract), ...linesOf(service, contract, contract.rows, 'contract')]
  })
  return { lines: (await Promise.all(lines)).flat(), unread: [], refused: [] }
}

/** The same with routes learned from the upstreams; fetches the index of each once. */
export const describeLearnedRoutes = (config: Config): Promise<RouteReport> =>
  withAskedServices(config.services, config, (checkedServices) => ({
    lines: checkedServices.flatMap(({ built: { config: service, contract, upstreamRoutes } }) => [
      ...ruleLines(service, contract),
      ...linesOf(service, contract, upstreamRoutes?.listed() ?? contract.rows, 'contract'),
      ...linesOf(service, contract, upstreamRoutes?.learned() ?? [], 'learned'),
    ]),
    unread: checkedServices.flatMap(({ built, refusal }) =>
      refusal === undefined ? [] : [{ service: built.config.name, reason: refusal }],
    ),
    refused: refusedRoutes(checkedServices.map(({ built }) => built)).map(({ subject: service, text }) => ({
      service,
      text,
    })),
  }))

export type UpstreamIssue = Issue & { readonly service: string }

const maxBytes = 8 * 1024 * 1024
const askMs = 5_000
/** Timeout for all requests to one service. */
const serviceMs = 15_000
const noResponse = 'no response in time'

const reasonOf = (error: unknown): string => {
  if (!(error instanceof GatewayError)) return noResponse
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  if (cause.name === 'TimeoutError') return noResponse
  return 'code' in cause ? String(cause.code) : error.message
}

/** Sends GETs to a service's upstream as a client's GETs are sent, without following redirects. */
const asking = async <Service extends ServiceConfig, Value>(
  service: Service,
  targets: readonly string[],
  config: Config,
  use: (check: UpstreamCheck<Service>) => Promise<Value>,
): Promise<Value> => {
  const { publicUrl, limits } = config
  const options = upstreamOptions(service, targets, publicUrl, limits)
  const upstream = createUpstream(
    { ...options, health: { ...options.health, path: '' } },
    { clock: systemClock, random: Math.random, report: () => {} },
  )
  const address = addressOf(service, publicUrl)
  const { protocol } = new URL(address.publicUrl)
  const ended = systemClock.monotonic() + serviceMs
  const servers = new Set(targetsOf(service).map(serverOf))
  const forwarded = ['x-forwarded-host', address.publicHost, 'x-forwarded-proto', protocol.slice(0, -1)]
  const ask: UpstreamCheck['ask'] = async (target, more = []) => {
    try {
      const request = {
        target,
        headers: ['accept-encoding', 'identity', 'user-agent', 'trellis', ...forwarded, ...more],
        signal: AbortSignal.timeout(Math.max(0, Math.min(askMs, ended - systemClock.monotonic()))),
      }
      const { content = Buffer.alloc(0), ...head } = await ownGet(upstream, request, maxBytes)
      return { kind: 'answer', ...head, content }
    } catch (error) {
      return { kind: 'none', reason: reasonOf(error) }
    }
  }
  try {
    return await use({
      ask,
      service,
      publicUrl: address.publicUrl.replace(/\/$/, ''),
      sharing: config.services.filter(
        (other) => other !== service && targetsOf(other).some((origin) => servers.has(serverOf(origin))),
      ),
      contract: () => contractOf(service, limits),
    })
  } finally {
    await upstream.close()
  }
}

export type { SiteFacts }

/** Asks the first site of a configuration. Never throws; ends in bounded time. */
export const siteFacts = async (config: Config): Promise<SiteFacts> => {
  const site = config.services.find(hasIndex)
  return site === undefined
    ? { root: undefined, fault: undefined, hasCompanion: false }
    : asking(site, targetsOf(site), config, askSite)
}

/** `none`: a rule decides. `forbidden`: no rule stores such a response. `unknown`: there was none with status 200. */
export type UpstreamFreshness = 'stated' | 'none' | 'forbidden' | 'unknown'

const freshnessOf = (response: Seen): UpstreamFreshness => {
  if (response.kind === 'none' || response.status !== 200) return 'unknown'
  const { headers } = response
  const control = cacheControlOf(headers)
  if (headerValue(headers, 'set-cookie') !== undefined) return 'forbidden'
  if (['no-store', 'private', 'no-cache'].some((name) => control.has(name))) return 'forbidden'
  const isStated = control.has('max-age') || control.has('s-maxage')
  return isStated || headerValue(headers, 'expires') !== undefined ? 'stated' : 'none'
}

/** Asks the first service of a configuration for its front page. Never throws; ends in bounded time. */
export const upstreamFreshness = async (config: Config): Promise<UpstreamFreshness> => {
  const [service] = config.services
  if (service === undefined || targetsOf(service).length === 0) return 'unknown'
  const path = `${withoutRoot(service.upstream.basePath)}/`
  return asking(service, targetsOf(service), config, async ({ ask }) => freshnessOf(await ask(path)))
}

/**
 * Sends a few GETs to the upstream of each site service, and to the front pages of open services on the same servers, and
 * returns the mismatches with the configuration. Never throws; ends in bounded time.
 */
export const upstreamIssues = async (config: Config): Promise<readonly UpstreamIssue[]> => {
  const issues = await Promise.all(
    config.services.map(async (service) => {
      const checks = checksOf(service)
      if (checks === undefined || targetsOf(service).length === 0) return []
      const serviceIssues = await asking(service, targetsOf(service), config, checks.issues)
      return serviceIssues.map((issue) => ({ service: service.name, ...issue }))
    }),
  )
  return issues.flat()
}

/** What the gateway stores is as old as the upstream's clock says; the companion's signatures have a time too. */
const maxClockMs = 30_000

/** What the response of a server to the path of its health check shows. */
const reachIssues = (
  target: string,
  path: string,
  service: ServiceConfig,
  response: Seen,
): readonly Issue[] => {
  if (response.kind === 'none') return []
  const { health } = service.upstream
  const passes = health.expect.some(([first, last]) => first <= response.status && response.status <= last)
  const date = Date.parse(headerValue(response.headers, 'date') ?? '')
  const aheadMs = headerValue(response.headers, 'age') === undefined ? date - systemClock.now() : 0
  return [
    ...(health.path === '' || passes
      ? []
      : [
          {
            kind: 'unhealthy',
            text: `${target} answers the health check GET ${path} with ${response.status}, so that it would get no requests: write a path that answers with 200 into upstream.health.path, or the status into upstream.health.expect.`,
          } as const,
        ]),
    ...(Math.abs(aheadMs) > maxClockMs
      ? [
          {
            kind: 'clock',
            text: `The clock of ${target} is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the one of this machine: set both by NTP.`,
          } as const,
        ]
      : []),
  ]
}

/** Does each server of a service answer, and what else its contract asks of each? */
const reached = async (service: ServiceConfig, config: Config): Promise<readonly UpstreamIssue[]> => {
  const { name, upstream } = service
  const path = `${withoutRoot(upstream.basePath)}${upstream.health.path}` || '/'
  const serverIssues = checksOf(service)?.serverIssues
  const isAsked = serverIssues !== undefined && targetsOf(service).length === 1
  const issues = await Promise.all(
    targetsOf(service).map((target) =>
      asking(service, [target], config, async (check) => {
        // The index of a site with one server is asked for already.
        const response = isAsked && upstream.health.path === '' ? undefined : await check.ask(path)
        return [
          response && !isAsked ? reachIssue(target, response) : undefined,
          ...(response ? reachIssues(target, path, service, response) : []),
          ...((await serverIssues?.(check)) ?? []),
        ]
      }),
    ),
  )
  return issues.flat().flatMap((issue) => (issue === undefined ? [] : [{ service: name, ...issue }]))
}

/** What the upstream of a service says of itself. Never throws; ends in bounded time. */
export const upstreamFacts = async (service: ServiceConfig, config: Config): Promise<readonly string[]> => {
  const facts = checksOf(service)?.facts
  const targets = targetsOf(service)
  return facts === undefined || targets.length === 0 ? [] : asking(service, targets, config, facts)
}

/** The same with every server of every service, and with the companions. */
export const allUpstreamIssues = async (config: Config): Promise<readonly UpstreamIssue[]> => {
  const [indexIssues, ...more] = await Promise.all([
    upstreamIssues(config),
    ...config.services.map((service) => reached(service, config)),
  ])
  return [...indexIssues, ...more.flat()]
}

export const warnOf = (log: Pick<Log, 'warn'>, { service, kind, text }: UpstreamIssue): void =>
  log.warn({ service, finding: kind, detail: text }, 'upstream-finding')

/** What is worth knowing about the sites, and no fault. Fetches the index of each once. */
export const upstreamHints = (config: Config) =>
  withAskedServices(config.services.filter(hasIndex), config, (checkedServices) =>
    checkedServices.flatMap(
      ({
        built: {
          config: { name: service },
          upstreamRoutes,
        },
      }) => (upstreamRoutes?.hints() ?? []).map((text) => ({ service, text })),
    ),
  )
