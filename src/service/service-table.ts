import { memoize } from '../http/memo.ts'
import { createHostTable, folded, hostOf, pathReadings } from '../http/targets.ts'

type LocatedService = {
  /** Host patterns in lower case; none = every host. */
  readonly hosts: readonly string[]
  /** Path prefix; '' for the root. */
  readonly mount: string
}

/**
 * The service for a request, or why there is none. `unknown-host`: no service answers this host at any path. `ambiguous`: an upstream may
 * read the path as one of another service, which may have other access rules.
 */
export type ServiceChoice<Service> =
  | { readonly kind: 'found'; readonly service: Service }
  | { readonly kind: 'unknown-host' }
  | { readonly kind: 'no-service' }
  | { readonly kind: 'ambiguous' }

const slash = 0x2f
const questionMark = 0x3f

const isUnder = (mount: string, target: string): boolean => {
  if (!target.startsWith(mount)) return false
  const next = target.charCodeAt(mount.length)
  return next === slash || next === questionMark || target.length === mount.length
}

const hasNested = ({ mount }: LocatedService, services: readonly LocatedService[]): boolean =>
  services.some((other) => other.mount.startsWith(`${mount}/`))

const pathOf = (target: string): string => {
  const at = target.indexOf('?')
  return at === -1 ? target : target.slice(0, at)
}

/** The services of a host, in the order in which they are tried. */
type Candidates<Service> = { readonly services: readonly Service[]; readonly outer: ReadonlySet<Service> }

const candidates = <Service extends LocatedService>(services: readonly Service[]): Candidates<Service> => ({
  services,
  outer: new Set(services.filter((service) => hasNested(service, services))),
})

const ambiguous = { kind: 'ambiguous' } as const
const unknownHost = { kind: 'unknown-host' } as const
const noService = { kind: 'no-service' } as const

const firstUnder = <Service extends LocatedService>(
  services: readonly Service[],
  target: string,
): Service | undefined => {
  for (const service of services) if (isUnder(service.mount, target)) return service
  return undefined
}

/** May an upstream read the path as one of another service? */
const hasOtherReading = <Service extends LocatedService>(
  services: readonly Service[],
  service: Service,
  target: string,
): boolean => {
  const path = pathOf(target)
  return pathReadings(path).some(
    (reading) =>
      reading !== path && services.find(({ mount }) => isUnder(folded(mount), reading)) !== service,
  )
}

/**
 * Chooses the service that answers a request. `atHost` gives the form of a service for one host; it is called once for each host that
 * is remembered.
 */
export const createServiceTable = <Service extends LocatedService>(
  services: readonly Service[],
  atHost: (service: Service, host: string) => Service = (service) => service,
) => {
  const byMount = [...services].sort((a, b) => b.mount.length - a.mount.length)
  const hosts = createHostTable(byMount.map((value) => ({ hosts: value.hosts, value })))
  const ofEveryHost = byMount.filter((service) => service.hosts.length === 0)
  const hasHosts = ofEveryHost.length < services.length
  const withoutHost = candidates(ofEveryHost)
  const candidatesFor = memoize((authority): Candidates<Service> => {
    const host = hostOf(authority)
    // A wildcard fits names that no URL can have, such as `xn--a.shop.example`: no link could name them.
    const ofHost = URL.canParse(`http://${host}`) ? hosts.matching(host) : []
    return candidates([...ofHost.map((service) => atHost(service, host)), ...ofEveryHost])
  })
  const find = (authority: string, target: string): ServiceChoice<Service> => {
    const { services: choices, outer } = hasHosts ? candidatesFor(authority) : withoutHost
    const service = firstUnder(choices, target)
    if (service === undefined) return hasHosts && choices.length === 0 ? unknownHost : noService
    return outer.has(service) && hasOtherReading(choices, service, target)
      ? ambiguous
      : { kind: 'found', service }
  }
  return {
    /** The most specific service: the host itself before the longest wildcard before every host, then the longest mount. */
    find,
    /** Does a request for the target reach this service, at any host of it? Batch items name a service, and no host. */
    reaches: ({ hosts: hostPatterns, mount }: LocatedService, target: string): boolean =>
      (hostPatterns.length === 0 ? [''] : hostPatterns).some((host) => {
        const choice = find(host, target)
        return choice.kind === 'found' && choice.service.mount === mount
      }),
  }
}

export type ServiceTable<Service extends LocatedService> = ReturnType<typeof createServiceTable<Service>>
