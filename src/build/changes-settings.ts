import type { ChangesConfig, ServiceConfig } from '../config/config.ts'

/** The default for sites: see docs/configuration.md. */
const sitePollMs = 5_000

/** The settings of a service that reports its changes; undefined when it reports none. */
export const changesOf = (service: ServiceConfig): ChangesConfig | undefined =>
  'changes' in service && service.changes?.token.isSet === true ? service.changes : undefined

export const pollMsOf = ({ contract }: ServiceConfig, { pollMs }: ChangesConfig): number =>
  pollMs ?? (contract === 'site' ? sitePollMs : 0)

/** The lifetime of responses while the log of a service is read; undefined when it is not read. */
export const heardLifetimeMs = (service: ServiceConfig): number | undefined => {
  const changes = changesOf(service)
  const isHeard = changes !== undefined && pollMsOf(service, changes) > 0 && changes.ttlWhileHeardMs > 0
  return isHeard ? changes.ttlWhileHeardMs : undefined
}
