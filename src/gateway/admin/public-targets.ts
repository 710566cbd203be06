import type { ServiceConfig } from '../../config/config.ts'
import type { Access } from '../../exchange/access.ts'
import { hostOf, targetParts } from '../../http/targets.ts'
import { canonicalOf } from '../../service/canonical.ts'
import type { Contract } from '../../service/contract.ts'
import { routeOf } from '../../service/route-request.ts'
import { createServiceTable, type ServiceChoice } from '../../service/service-table.ts'
import { dependsOnHost } from '../service-address.ts'
import { withoutRoot } from '../snapshot/build-service.ts'

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

/** The parts of a URL or path, as written. A path of one of the prefixes is one that a proxy in front removes. */
const readUrl = (
  url: string,
  prefixes: readonly string[],
): { readonly authority: string | undefined; readonly target: string } => {
  const bare = url.split('#', 1)[0] ?? ''
  const absolute = /^https?:\/\/([^/?]*)(.*)$/is.exec(bare)
  const prefix = prefixes.find((root) => bare.startsWith(root) && /^(?:[/?]|$)/.test(bare.slice(root.length)))
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
  'no-service': 'no service is mounted there; trellis routes lists the paths',
  ambiguous: 'an upstream may read this path as one of another service',
} as const

/** The one spelling under which responses to a GET are stored, or why there is none. */
type CanonicalTarget =
  | { readonly kind: 'target'; readonly target: string }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (reason: string): CanonicalTarget => ({
  kind: 'refused',
  detail: `GET of this URL is refused, so nothing is stored for it: ${reason}`,
})

/** The form under which responses to an anonymous GET, or to a QUERY with any content, of a target are stored. */
export const canonicalTarget = (
  { service: { contract }, path, query }: PublicTarget,
  method: 'GET' | 'QUERY' = 'GET',
): CanonicalTarget => {
  const route = routeOf(contract, { method, path, query, headers: {} })
  if (route.kind === 'refused') return refused(route.reason)
  const canonical = canonicalOf(contract, method, route.matching, {
    query,
    headers: undefined,
    contentType: undefined,
    content: undefined,
  })
  return canonical.kind === 'valid' ? { kind: 'target', target: canonical.target } : refused(canonical.code)
}
