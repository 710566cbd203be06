import type { FeedLifetime } from '../cache/decide-caching.ts'
import type { Clock } from '../clock.ts'
import type { LimitsConfig, ServiceConfig } from '../config/config.ts'
import { createGraphqlContract, endpointHints } from '../graphql/contract.ts'
import { limitCodes } from '../graphql/limits.ts'
import { onlyReads } from '../graphql/only-reads.ts'
import { hasCredentialParameter } from '../http/headers/credential-headers.ts'
import type { HeaderChanges } from '../http/headers/header-lines.ts'
import { memoize } from '../http/memo.ts'
import { targetParts } from '../http/targets.ts'
import type { Metrics } from '../observability/metrics.ts'
import { createDocumentContract, createPlantsContract } from '../openapi/contract.ts'
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
import { addressOf } from './service-address.ts'

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

/** The changes that `responseHeaders` asks for; undefined where it asks for none. */
export const responseChangesOf = ({
  responseHeaders: { set, remove },
}: ServiceConfig): HeaderChanges | undefined => {
  const names = [...Object.keys(set), ...remove]
  return names.length === 0
    ? undefined
    : { set: Object.entries(set).flat(), removed: new Set(names.map((name) => name.toLowerCase())) }
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
