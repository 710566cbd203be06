import type { ServiceConfig } from '../config/config.ts'
import { urlAtHost } from '../http/targets.ts'

/** How clients and the upstream name a service. */
type PublicAddress = {
  /** Absolute URL in front of the mount. */
  readonly publicUrl: string
  readonly publicHost: string
  /** `Host` sent upstream; '' = that of the target. */
  readonly hostHeader: string
}

const isExact = (host: string): boolean => !host.startsWith('*')

/** The address of a service for requests to one of its hosts; without `host` for the gateway's own requests. `general` is the top-level publicUrl. */
export const addressOf = (
  {
    hosts,
    publicUrl,
    upstream,
  }: Pick<ServiceConfig, 'hosts' | 'publicUrl'> & {
    readonly upstream: Pick<ServiceConfig['upstream'], 'host'>
  },
  general: string,
  host = hosts.find(isExact),
): PublicAddress => {
  const base = publicUrl === '' ? general : publicUrl
  const urlForHost = host === undefined ? base : urlAtHost(base, host)
  const isPreserved = upstream.host === 'preserve'
  const shown = publicUrl === '' ? urlForHost : publicUrl
  return {
    publicUrl: shown,
    publicHost: new URL(isPreserved ? urlForHost : shown).host,
    hostHeader: isPreserved ? new URL(urlForHost).host : '',
  }
}

/** Do links, or what the upstream receives, depend on the host that the client asked for? */
export const dependsOnHost = ({ hosts, publicUrl, upstream }: ServiceConfig): boolean =>
  (hosts.length > 1 || !hosts.every(isExact)) && (publicUrl === '' || upstream.host === 'preserve')
