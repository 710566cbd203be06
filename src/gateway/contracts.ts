import type { FeedLifetime } from '../cache/decide-caching.ts'
import type { Clock } from '../clock.ts'
import type { LimitsConfig, ServiceConfig } from '../config/config.ts'
import { createGraphqlContract, endpointHints } from '../graphql/contract.ts'
import { limitCodes } from '../graphql/limits.ts'
import { onlyReads } from '../graphql/only-reads.ts'
import { hasCredentialParameter } from '../http/headers/credential-headers.ts'
import type { HeaderChanges } from '../http/headers/header-lines.ts'
import { memoize } from '../http/memo.ts'
import { targetParts, urlAtHost } from '../http/targets.ts'
import type { Metrics } from '../observability/metrics.ts'
import { createDocumentContract, createPlantsContract, plantStoreRequests } from '../openapi/contract.ts'
import { apiDocumentOf } from '../openapi/document/api-document.ts'
import { batchPath } from '../openapi/document/operation.ts'
import type { BuiltAccess } from '../server/access.ts'
import type { UpstreamChecks } from '../service/connection.ts'
import type { Contract, ContractName, ScheduledTasksReading } from '../service/contract.ts'
import { createOpenContract } from '../service/open.ts'
import type { UpstreamOptions } from '../upstream/options.ts'
import { withBatch } from '../wordpress/batch.ts'
import { createSiteContract } from '../wordpress/contract.ts'
import { siteCookies } from '../wordpress/cookies.ts'
import { graphqlTags, isFromObjectCache, objectCacheIssues } from '../wordpress/graphql.ts'
import { noChangeClaimsOf } from '../wordpress/routes/harmless-writes.ts'
import { pageChecks, siteChecks } from '../wordpress/site-checks.ts'
import { describedChange } from '../wordpress/tags/companion-tags.ts'
import {
  tasksBehindInterface,
  tasksBehindPages,
  tasksBehindWrites,
} from '../wordpress/tags/scheduled-tasks.ts'
import { actsAtPages, uncacheableReasonOf } from '../wordpress/tags/uncacheable.ts'
import { policiesByRule } from './cache-policies.ts'

/** The limits of all services, or the service's own in their place. */
export const limitsOf = (service: ServiceConfig, limits: LimitsConfig): LimitsConfig =>
  'limits' in service ? { ...limits, ...service.limits } : limits

/** Only this file asks which contract a service has. */
const createContract = async (
  service: ServiceConfig,
  limits: LimitsConfig,
  feedLifetime: FeedLifetime | undefined,
): Promise<Contract> => {
  const options = { limits, policyFor: policiesByRule(service, feedLifetime, siteCookies) }
  switch (service.contract) {
    case 'site':
      return createSiteContract(service, options)
    case 'open':
      // The pages of a site may be behind it.
      return createOpenContract(service, { ...options, uncacheableReasonOf, actsAsWrite: actsAtPages })
    case 'graphql':
      // WordPress may be behind it.
      return createGraphqlContract(service, {
        ...options,
        uncacheableReasonOf,
        actsAsWrite: actsAtPages,
        companion: { describe: graphqlTags, describedChange, isFromOwnCache: isFromObjectCache },
      })
    case 'openapi':
      return withBatch(batchPath, service, limits, await createDocumentContract(service, options))
    case 'plants':
      return withBatch(
        batchPath,
        service,
        limits,
        await createPlantsContract(service, { ...options, uncacheableReasonOf }),
      )
  }
}

/** WordPress may be behind them. */
const tasksBehind: { readonly [name in ContractName]?: ScheduledTasksReading } = {
  site: tasksBehindInterface,
  open: tasksBehindPages,
  graphql: tasksBehindPages,
  plants: tasksBehindWrites,
}

/** With what its configuration, or a table, says of its writes. */
export const contractOf = async (
  service: ServiceConfig,
  general: LimitsConfig,
  feedLifetime?: FeedLifetime,
): Promise<Contract> => {
  const contract = await createContract(service, limitsOf(service, general), feedLifetime)
  const { harmlessParameters } = service.cache
  const uncacheableReasonOf: Contract['uncacheableReasonOf'] = (path, query) =>
    contract.uncacheableReasonOf(path, query) ??
    (hasCredentialParameter(query, harmlessParameters) ? 'api-key' : undefined)
  return {
    ...contract,
    scheduledTasks: tasksBehind[service.contract],
    noChangeClaim: noChangeClaimsOf(service, onlyReads),
    uncacheableReasonOf:
      contract.effectByContent === true ? memoizedByTarget(uncacheableReasonOf) : uncacheableReasonOf,
  }
}

/** Other contracts' targets are recalled with all that follows from them; documents in the URL are long to decode. */
const memoizedByTarget = (read: Contract['uncacheableReasonOf']): Contract['uncacheableReasonOf'] => {
  const reasonOf = memoize(
    (target) => {
      const { path, query } = targetParts(target)
      return read(path, query)
    },
    256,
    4096,
  )
  return (path, query) => reasonOf(`${path}?${query}`)
}

/** What the contract of a service looks for at its upstream; undefined for nothing. */
export const checksOf = (service: ServiceConfig): UpstreamChecks | undefined => {
  switch (service.contract) {
    case 'site':
      return siteChecks
    case 'open':
      return pageChecks
    case 'graphql':
      return {
        issues: objectCacheIssues,
        // Where it has the token of a companion, that is asked too.
        serverIssues: siteChecks.serverIssues,
        hints: endpointHints(service),
        limitCodes,
      }
    default:
      return undefined
  }
}

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

/** The changes that `responseHeaders` asks for; undefined where it asks for none. */
export const responseChangesOf = ({
  responseHeaders: { set, remove },
}: ServiceConfig): HeaderChanges | undefined => {
  const names = [...Object.keys(set), ...remove]
  return names.length === 0
    ? undefined
    : { set: Object.entries(set).flat(), removed: new Set(names.map((name) => name.toLowerCase())) }
}

/** A demo server that runs in this process, on loopback. */
export type EmbeddedUpstream = {
  readonly origin: string
  close(): Promise<void>
}

/** Starts the demo server for a service with `targets: [embedded]`; undefined where the service has other targets. */
export const startEmbedded = async (
  service: ServiceConfig,
  limits: LimitsConfig,
  publicUrl: string,
): Promise<EmbeddedUpstream | undefined> => {
  if (service.upstream.targets !== 'embedded') return undefined
  const { basePath } = service.upstream
  // The demo is loaded only where it is used.
  switch (service.contract) {
    case 'plants': {
      const { startEmbeddedPlants } = await import('../../demo/plants.ts')
      return startEmbeddedPlants({ basePath, requests: await plantStoreRequests(service, limits) })
    }
    case 'openapi': {
      const { startDocumentMock } = await import('../../demo/document-mock.ts')
      return startDocumentMock({ basePath, document: apiDocumentOf(service) })
    }
    case 'site': {
      const { startEmbeddedSite } = await import('../../demo/site.ts')
      const isNeutral = service.names === 'same' && basePath.endsWith('/site-json')
      return startEmbeddedSite({
        basePath,
        home: new URL(addressOf(service, publicUrl).publicUrl).origin,
        dialect: isNeutral ? 'neutral' : 'wordpress',
        limits,
      })
    }
    default:
      return undefined
  }
}

export const upstreamOptions = (
  service: ServiceConfig,
  targets: readonly string[],
  publicUrl: string,
  { minBytesPerSecond }: LimitsConfig,
): UpstreamOptions => {
  const { name, upstream } = service
  const { connections, limits, tls, host: _host, ...rest } = upstream
  return {
    ...rest,
    service: name,
    targets,
    minBytesPerSecond,
    connectionMaxAgeMs: connections.maxAgeMs,
    headerBytes: limits.headerBytes,
    hostHeader: addressOf(service, publicUrl).hostHeader,
    tls: { ...tls, ca: tls.ca.reveal(), cert: tls.cert.reveal(), key: tls.key.reveal() },
  }
}

/** Builds the access of a service with the keys and verified tokens of `last`; undefined where every client may use the service. */
export const buildAccess = async (
  { name, access }: ServiceConfig,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Pick<Metrics, 'observe'> },
  last: BuiltAccess | undefined,
): Promise<BuiltAccess | undefined> => {
  if (access === undefined) return undefined
  const { createAccess } = await import('../server/access.ts')
  return createAccess(access, { service: name, clock, report: metrics.observe.access }, last)
}
