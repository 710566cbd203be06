import type { ServiceConfig } from '../config/config.ts'
import type { LimitsConfig } from '../config/edge-config.ts'
import { sameSettings } from '../config/same-settings.ts'

/**
 * What a service of a new configuration takes over from the one of the same name before it:
 * `service` all of it; `rules` all but its cache rules; `upstream` the way to its upstream, with breakers, ejections and
 * connections; `nothing`.
 */
export type Adoption = 'service' | 'rules' | 'upstream' | 'nothing'

type Configured = { readonly service: ServiceConfig; readonly limits: LimitsConfig }

/** The limits that a service is built with. */
const ofService = ({ bodyBytes, uploadBytes, queryParameters, jsonDepth }: LimitsConfig): unknown => ({
  bodyBytes,
  uploadBytes,
  queryParameters,
  jsonDepth,
})

const withoutCache = ({ cache: _cache, ...rest }: ServiceConfig): unknown => rest

/** An embedded server is part of the way to the upstream, and is made of more than the upstream's settings. */
const ofWay = (service: ServiceConfig): unknown => {
  const { contract, upstream } = service
  if (upstream.targets !== 'embedded') return { contract, upstream }
  if (contract === 'site') return { contract, upstream, names: service.names }
  return { contract, upstream, limitParameter: contract === 'plants' ? service.limitParameter : '' }
}

/** Decides what survives of a service; a mount that moved is another service to its clients. */
export const decideAdoption = (from: Configured, to: Configured): Adoption => {
  const sameLimits = sameSettings(ofService(from.limits), ofService(to.limits))
  if (sameLimits && sameSettings(withoutCache(from.service), withoutCache(to.service))) {
    return sameSettings(from.service.cache, to.service.cache) ? 'service' : 'rules'
  }
  return sameSettings(ofWay(from.service), ofWay(to.service)) ? 'upstream' : 'nothing'
}

const ofUpstream = ({ contract, upstream: { targets, basePath } }: ServiceConfig): unknown => ({
  contract,
  targets,
  basePath,
})

/** Is it the same program that is asked, whatever else has changed? */
export const sameUpstream = (from: ServiceConfig, to: ServiceConfig): boolean =>
  sameSettings(ofUpstream(from), ofUpstream(to))
