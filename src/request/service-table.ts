import { createHostTable, hostOf } from '../http/hosts.ts'
import { remembered } from '../http/memo.ts'

/** Where a service is reached. */
type Located = {
  /** Host patterns in lower case; none = every host. */
  readonly hosts: readonly string[]
  /** Path prefix; '' for the root. */
  readonly mount: string
}

/** The service for a request, or why there is none. `unknown-host`: no service answers this host at any path. */
export type ServiceChoice<Service> =
  | { readonly kind: 'found'; readonly service: Service }
  | { readonly kind: 'unknown-host' }
  | { readonly kind: 'no-service' }

/** Chooses the service that answers a request. */
export type ServiceTable<Service> = {
  /** The most specific service: the host itself before the longest wildcard before every host, then the longest mount. */
  find(authority: string, target: string): ServiceChoice<Service>
}

const slash = 0x2f
const questionMark = 0x3f

/** Does the path of the target lie under the mount? */
const isUnder = (mount: string, target: string): boolean => {
  if (!target.startsWith(mount)) return false
  const next = target.charCodeAt(mount.length)
  return next === slash || next === questionMark || target.length === mount.length
}

const unknownHost = { kind: 'unknown-host' } as const
const noService = { kind: 'no-service' } as const

/** `atHost` gives the form of a service for one host; it is called once for each host that is remembered. */
export const createServiceTable = <Service extends Located>(
  services: readonly Service[],
  atHost: (service: Service, host: string) => Service = (service) => service,
): ServiceTable<Service> => {
  const byMount = [...services].sort((a, b) => b.mount.length - a.mount.length)
  const hosts = createHostTable(byMount.map((value) => ({ hosts: value.hosts, value })))
  const ofEveryHost = byMount.filter((service) => service.hosts.length === 0)
  const hasHosts = ofEveryHost.length < services.length
  const candidatesFor = remembered((authority): readonly Service[] => {
    const host = hostOf(authority)
    return [...hosts.matching(host).map((service) => atHost(service, host)), ...ofEveryHost]
  })
  return {
    find: (authority, target) => {
      const candidates = hasHosts ? candidatesFor(authority) : ofEveryHost
      for (const service of candidates) {
        if (isUnder(service.mount, target)) return { kind: 'found', service }
      }
      return hasHosts && candidates.length === 0 ? unknownHost : noService
    },
  }
}
