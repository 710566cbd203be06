import { hash } from 'node:crypto'
import type { Note } from '../cache/invalidation.ts'
import type { Config, LimitsConfig, ServiceConfig } from '../config/config.ts'
import { configuredUrl, sameSettings } from '../config/same-settings.ts'
import type { Access } from '../exchange/access.ts'
import { completed } from '../exchange/invalidate-write.ts'
import type { Service } from '../exchange/service.ts'
import { unlimited } from '../http/bounds.ts'
import { hostOf } from '../http/hosts.ts'
import { rememberedFor } from '../http/memo.ts'
import { discard, targetParts } from '../http/message.ts'
import type { DeclaredServices } from '../observability/metrics.ts'
import type { BuiltAccess } from '../server/access.ts'
import type { Announced } from '../service/announced.ts'
import type { Contract } from '../service/contract.ts'
import { canonicalOf, routeOf } from '../service/decide.ts'
import { withheldFields } from '../service/rule-policies.ts'
import { createServiceTable, type ServiceChoice } from '../service/service-table.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { dependsOnHost } from './contracts.ts'

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
  readonly announced: Announced | undefined
  readonly upstream: BuiltUpstream
  readonly formAt: FormAt | undefined
  readonly access: BuiltAccess | undefined
}

/** What differs between the forms of a service for its hosts. */
export type FormAt = (
  host: string,
) => Pick<Service, 'host' | 'publicHost' | 'hostField' | 'roots' | 'publicRoot' | 'translation' | 'links'>

/** Sends a GET of the gateway itself, and reads the answer; `content` is undefined where it is larger than `mostBytes`. */
export const ownGet = async (
  upstream: Upstream,
  request: Omit<Parameters<Upstream['forward']>[0], 'method' | 'content'>,
  mostBytes: number,
) => {
  const answer = await upstream.forward({ ...request, method: 'GET', content: undefined })
  const { status, fields, content = Buffer.alloc(0) } = await completed(answer, mostBytes, unlimited)
  discard(content)
  return { status, fields, content: Buffer.isBuffer(content) ? content : undefined }
}

/** Ends the health checks of upstreams that are not taken over; their requests in flight finish. */
export const stopChecks = (ended: readonly BuiltService[], goingOn: readonly BuiltService[]): void => {
  const upstreams = new Set(goingOn.map(({ upstream }) => upstream))
  for (const { upstream } of ended) if (!upstreams.has(upstream)) upstream.upstream.stopChecks()
}

/** Closes what the remaining services do not use. */
export const closeServices = async (
  ended: readonly BuiltService[],
  goingOn: readonly BuiltService[],
): Promise<void> => {
  const upstreams = new Set(goingOn.map(({ upstream }) => upstream))
  const announcing = new Set(goingOn.map(({ announced }) => announced))
  for (const { upstream, announced } of ended) {
    if (announced !== undefined && !announcing.has(announced)) await announced.close()
    if (!upstreams.has(upstream)) await upstream.close()
  }
}

/**
 * The other services with one of the servers of an upstream, whose stored responses a write to it may outdate: a site behind its
 * interface and, for its pages and its administration, behind an open service. Of an open service these are the responses of the same URLs at
 * the upstream (RFC 9111 §4.4), of the others all. Computed once for each upstream: every write needs them. By the upstream and not by
 * the name of its service: a write may have begun under an earlier configuration.
 */
export const sharingUpstream = (
  built: readonly BuiltService[],
): ((servers: BuiltUpstream['servers']) => readonly Service[]) =>
  rememberedFor((servers) =>
    built
      .filter(({ upstream }) => upstream.servers !== servers)
      .filter(({ upstream }) => upstream.servers.some((server) => servers.includes(server)))
      .map(({ service }) => service),
  )

/** Services of which no useful response can be expected, or of which nobody knows. */
export const servicesThat = (are: 'down' | 'unknown', built: readonly BuiltService[]): readonly string[] =>
  built.filter(({ service }) => service.upstream.snapshot()[are]).map(({ service }) => service.name)

/** What the indexes of sites announce that no row could be made of, for the status page. */
export const refusedRoutes = (built: readonly BuiltService[]) =>
  built.flatMap(({ service: { name }, announced }) => {
    const text = announced?.refused()
    return text === undefined ? [] : [{ subject: name, text }]
  })

export const declaredServices = ({
  built,
  config,
}: {
  readonly built: readonly BuiltService[]
  readonly config: Pick<Config, 'rateLimits'>
}): DeclaredServices => ({
  services: built.map(({ service: { name, contract }, upstream: { targets } }) => ({
    name,
    announces: contract.announces,
    targets,
  })),
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
  readonly contract: Contract
  readonly access: Access | undefined
}

export type PublicTarget = {
  readonly kind: 'found'
  readonly service: AskedService
  readonly services: readonly ServiceConfig[]
  /** The host, where responses of the service depend on it; otherwise ''. */
  readonly host: string
  /** Relative to the mount, as written. */
  readonly path: string
  readonly query: string
}

/** Finds the service for a public URL or path; `host` is the requested host of a path. */
export type PublicTargets = (
  url: string,
  host?: string,
) => PublicTarget | Exclude<ServiceChoice<AskedService>, { kind: 'found' }>

/** The path of a mount in front of other paths. */
export const withoutRoot = (path: string): string => (path === '/' ? '' : path)

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
  const configs = services.map(({ config }) => config)
  const ownUrls = services.map(({ config }) => config.publicUrl).filter((url) => url !== '')
  const prefixes = [...new Set([publicUrl, ...ownUrls])].sort((a, b) => b.length - a.length)
  return (url, host = '') => {
    const { authority = host, target } = readUrl(url, prefixes)
    const choice = table.find(authority, target)
    if (choice.kind !== 'found') return choice
    const { service, mount } = choice.service
    const { path, query } = targetParts(target.slice(mount.length))
    return {
      kind: 'found',
      service,
      services: configs,
      host: dependsOnHost(service.config) ? hostOf(authority) : '',
      path: path === '' ? '/' : path,
      query,
    }
  }
}

export const noServiceTexts = {
  'unknown-host': 'no service answers this host; give the whole URL',
  'no-service': 'no service is mounted there',
  ambiguous: 'an upstream may read this path as one of another service',
} as const

/** The one spelling under which answers to a GET are stored, or why there is none. */
type CanonicalTarget =
  | { readonly kind: 'target'; readonly target: string }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (reason: string): CanonicalTarget => ({
  kind: 'refused',
  detail: `GET of this URL is refused, so nothing is stored for it: ${reason}`,
})

/** The form under which responses to an anonymous GET of a target are stored. */
export const canonicalTarget = ({ service: { contract }, path, query }: PublicTarget): CanonicalTarget => {
  const route = routeOf(contract, { method: 'GET', path, query, fields: {} })
  if (route.kind === 'refused') return refused(route.reason)
  const canonical = canonicalOf(contract, 'GET', route.matching, {
    query,
    fields: undefined,
    contentType: undefined,
    content: undefined,
  })
  return canonical.kind === 'valid' ? { kind: 'target', target: canonical.target } : refused(canonical.code)
}

/**
 * What a service of a new configuration takes over from the previous one of the same name: `service` everything, because no setting
 * differs; `upstream` its upstream with breakers, ejections and connections; `nothing`.
 */
type Adoption = 'service' | 'upstream' | 'nothing'

type Configured = { readonly service: ServiceConfig; readonly limits: LimitsConfig }

/** The limits that a service is built with. */
const ofService = ({ bodyBytes, uploadBytes, queryParameters, jsonDepth }: LimitsConfig): unknown => ({
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

/**
 * Of the settings that decide the content of a response beside its key. A store that outlives the configuration, or is shared with
 * instances that have another one, keeps the responses of each apart.
 */
export const contentIdOf = (
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

type Configuration = { readonly built: readonly BuiltService[]; readonly config: Pick<Config, 'limits'> }

/**
 * The settings that stored responses depend on: not `responseHeaders`, which each response gets when it is sent, and of `access` only
 * the fields that the upstream does not get.
 */
const ofStored = ({ service, limits }: Configured): unknown => {
  const { responseHeaders: _, access: _access, ...rest } = service
  return { ...rest, withheld: withheldFields(service), limits: ofService(limits) }
}

/** Names of the services whose stored responses are right for `next` too. */
const keptServices = (last: Configuration, next: Configuration): ReadonlySet<string> => {
  const kept = last.built.filter((from) => {
    const to = next.built.find(({ config }) => config.name === from.config.name)
    if (to === undefined) return false
    const before = { service: from.config, limits: last.config.limits }
    return sameSettings(ofStored(before), ofStored({ service: to.config, limits: next.config.limits }))
  })
  return new Set(kept.map(({ config }) => config.name))
}

/** Invalidates everything of a service. */
export const everythingNotes = ({ name, contract: { tagger }, local }: Service): readonly Note[] => [
  tagger.everything === undefined
    ? { kind: 'prefix', service: name, prefix: '', mode: 'hard' }
    : { kind: 'tag', tag: tagger.everything, mode: 'hard' },
  ...(local === undefined ? [] : [{ kind: 'documents', service: name, collection: '' } as const]),
]

/** Invalidates all services that are new in `next`, or built anew. */
export const replacedNotes = (last: Configuration, next: Configuration): readonly Note[] => {
  const kept = keptServices(last, next)
  return next.built.flatMap(({ service }) => (kept.has(service.name) ? [] : everythingNotes(service)))
}

/** Selects the stored responses to drop when `next` replaces `last`: those of all services with another configuration. */
export const outdatedAnswers = (last: Configuration, next: Configuration): ((service: string) => boolean) => {
  const kept = keptServices(last, next)
  return (service) => !kept.has(service)
}
