import type { ServiceConfig } from '../config/config.ts'
import { requestMeaning } from '../routing/request-meaning.ts'
import type { ServiceContract } from './service-contract.ts'

/** A service, as far as questions about its requests need it. */
export type AskedService = { readonly config: ServiceConfig; readonly contract: ServiceContract }

/** Where a public URL leads. */
type PublicTarget = {
  readonly service: AskedService
  /** Relative to the mount, as it was written. */
  readonly path: string
  readonly query: string
}

const under = (mount: string, path: string): string | undefined => {
  if (mount === '/') return path
  if (path === mount) return '/'
  return path.startsWith(`${mount}/`) ? path.slice(mount.length) : undefined
}

/** Path and query of a URL, as they are written. The host says nothing: the gateway does not look at it either. */
const targetOf = (publicUrl: string, url: string): string => {
  const bare = url.split('#', 1)[0] ?? ''
  const rest = bare.startsWith(publicUrl) ? bare.slice(publicUrl.length) : undefined
  const target =
    rest !== undefined && /^(?:[/?]|$)/.test(rest) ? rest : bare.replace(/^https?:\/\/[^/?]*/i, '')
  return target.startsWith('/') ? target : `/${target}`
}

/** The service whose mount a public URL or path lies under: the longest one that fits. */
export const publicTarget = (
  services: readonly AskedService[],
  publicUrl: string,
  url: string,
): PublicTarget | undefined => {
  const target = targetOf(publicUrl, url)
  const at = target.indexOf('?')
  const path = at === -1 ? target : target.slice(0, at)
  const [service] = services
    .filter(({ config }) => under(config.mount, path) !== undefined)
    .sort((a, b) => b.config.mount.length - a.config.mount.length)
  if (service === undefined) return undefined
  return {
    service,
    path: under(service.config.mount, path) ?? path,
    query: at === -1 ? '' : target.slice(at + 1),
  }
}

/** The one spelling under which answers to a GET are stored, or why there is none. */
export type CanonicalTarget =
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
