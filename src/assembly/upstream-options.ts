import type { ServiceConfig } from '../config/config.ts'
import type { LimitsConfig } from '../config/edge-config.ts'
import type { UpstreamOptions } from '../upstream/options.ts'

/** What the upstream room is told of a service. */
export const upstreamOptions = (
  { name, upstream }: ServiceConfig,
  targets: readonly string[],
  publicUrl: string,
  { minBytesPerSecond }: LimitsConfig,
): UpstreamOptions => {
  const { tls, host, ...rest } = upstream
  return {
    ...rest,
    service: name,
    targets,
    minBytesPerSecond,
    hostField: host === 'preserve' ? new URL(publicUrl).host : '',
    tls: { ...tls, ca: tls.ca.reveal(), cert: tls.cert.reveal(), key: tls.key.reveal() },
  }
}
