import type { SplitMemory } from '../batch/splitter.ts'
import type { ServiceConfig } from '../config/config.ts'
import type { Service } from '../pipeline/service.ts'
import type { Discovery } from '../site/discovery.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { ServiceContract } from './service-contract.ts'

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
  readonly way: UpstreamWay
  readonly formAt: FormAt | undefined
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
  for (const { way, discovery } of ended) {
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
