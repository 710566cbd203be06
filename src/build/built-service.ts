import type { SplitMemory } from '../batch/splitter.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { hostOf } from '../http/hosts.ts'
import type { DeclaredServices } from '../observability/metrics.ts'
import type { Access } from '../pipeline/access.ts'
import type { Service } from '../pipeline/service.ts'
import { requestMeaning } from '../request/router.ts'
import { createServiceTable, type ServiceChoice } from '../request/service-table.ts'
import type { BuiltAccess } from '../server/access.ts'
import type { Discovery } from '../site/discovery.ts'
import type { ResponseDrift } from '../site/response-drift.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { dependsOnHost, type ServiceContract } from './service-contract.ts'

/** A service's upstream with the state of its targets, and its embedded server if it has one. */
export type UpstreamWay = {
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
  readonly responseDrift: ResponseDrift | undefined
  readonly way: UpstreamWay
  readonly formAt: FormAt | undefined
  readonly access: BuiltAccess | undefined
}

/** What differs between the forms of a service for its hosts. */
export type FormAt = (
  host: string,
) => Pick<Service, 'host' | 'publicHost' | 'hostField' | 'roots' | 'publicRoot' | 'translation'>

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
  const drifts = new Set(goingOn.map(({ responseDrift }) => responseDrift))
  for (const { way, discovery, responseDrift } of ended) {
    if (responseDrift !== undefined && !drifts.has(responseDrift)) await responseDrift.close()
    if (discovery !== undefined && !discoveries.has(discovery)) await discovery.close()
    if (!ways.has(way)) await way.close()
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

/** What the metrics declare for a configuration. */
export const declaredServices = ({
  built,
  config,
}: {
  readonly built: readonly BuiltService[]
  readonly config: Pick<Config, 'rateLimits'>
}): DeclaredServices => ({
  services: built.map(({ service: { name, contract }, way: { targets } }) => ({ name, contract, targets })),
  limits: config.rateLimits.map(({ name }) => name),
})

/** Marks the gateway's own documents of a site outdated after a write in another process. */
export const outdateDocuments = (built: readonly BuiltService[], name: string, collection: string): void => {
  built.find(({ config }) => config.name === name)?.service.local?.written(collection)
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

/** The facts of a service that explanations need. */
export type AskedService = {
  readonly config: ServiceConfig
  readonly contract: ServiceContract
  readonly access: Access | undefined
}

/** Where a public URL leads. */
export type PublicTarget = {
  readonly kind: 'found'
  readonly service: AskedService
  /** The host, where responses of the service depend on it; otherwise ''. */
  readonly host: string
  /** Relative to the mount, as written. */
  readonly path: string
  readonly query: string
}

/** Finds the service that a public URL or path leads to; `host` is what a path is asked of. */
export type PublicTargets = (
  url: string,
  host?: string,
) => PublicTarget | Exclude<ServiceChoice<AskedService>, { kind: 'found' }>

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

/** The parts of a URL or path, as written. A path of one of the prefixes is one that a proxy in front removes. */
const readUrl = (
  url: string,
  prefixes: readonly string[],
): { readonly authority: string | undefined; readonly target: string } => {
  const bare = url.split('#', 1)[0] ?? ''
  const absolute = /^https?:\/\/([^/?]*)(.*)$/is.exec(bare)
  const prefix = prefixes.find((one) => bare.startsWith(one) && /^(?:[/?]|$)/.test(bare.slice(one.length)))
  const rest = prefix === undefined ? (absolute?.[2] ?? bare) : bare.slice(prefix.length)
  return { authority: absolute?.[1], target: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Chooses as the public port does. `publicUrl` is the top-level one. */
export const createPublicTargets = (services: readonly AskedService[], publicUrl: string): PublicTargets => {
  const located = services.map((service) => ({
    service,
    hosts: service.config.hosts,
    mount: withoutRoot(service.config.mount),
  }))
  const table = createServiceTable(located)
  const ownUrls = services.map(({ config }) => config.publicUrl).filter((url) => url !== '')
  const prefixes = [...new Set([publicUrl, ...ownUrls])].sort((a, b) => b.length - a.length)
  return (url, host = '') => {
    const { authority = host, target } = readUrl(url, prefixes)
    const choice = table.find(authority, target)
    if (choice.kind !== 'found') return choice
    const { service, mount } = choice.service
    const relative = target.slice(mount.length)
    const at = relative.indexOf('?')
    const path = at === -1 ? relative : relative.slice(0, at)
    return {
      kind: 'found',
      service,
      host: dependsOnHost(service.config) ? hostOf(authority) : '',
      path: path === '' ? '/' : path,
      query: at === -1 ? '' : relative.slice(at + 1),
    }
  }
}

/** Why a URL leads to no service. */
export const noServiceTexts = {
  'unknown-host': 'no service answers this host; give the whole URL',
  'no-service': 'no service is mounted there',
} as const

/** The one spelling under which answers to a GET are stored, or why there is none. */
type CanonicalTarget =
  | { readonly kind: 'target'; readonly target: string }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (detail: string): CanonicalTarget => ({ kind: 'refused', detail })

const joined = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`)

/** Brings a target to its canonical form by the functions that do it for requests. */
export const canonicalTarget = ({ service, path, query }: PublicTarget): CanonicalTarget => {
  const { config, contract } = service
  if (config.contract === 'site' && requestMeaning('GET', query, {}).kind === 'refused') {
    return refused('GET of this URL is refused, so nothing is stored for it: it overrides its method or path')
  }
  const finding = contract.find('GET', path)
  switch (finding.kind) {
    case 'refused':
      return refused(`this path is refused, so nothing is stored for it: ${finding.reason}`)
    case 'wrong-method':
    case 'options':
      return refused('this path has no GET, so nothing is stored for it')
    case 'unlisted':
      return { kind: 'target', target: joined(finding.path, query) }
    case 'found': {
      const { row, endpoint, pathParameters } = finding
      const request = { method: 'GET', row, endpoint, pathParameters, query }
      const validation = contract.validator.validate({
        ...request,
        contentType: undefined,
        content: undefined,
      })
      return validation.kind === 'valid'
        ? { kind: 'target', target: joined(finding.path, validation.query) }
        : refused(`GET of this URL is refused, so nothing is stored for it: ${validation.code}`)
    }
  }
}
