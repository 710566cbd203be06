import { type BuiltBatch, buildBatch } from '../../src/batch/batch.ts'
import type { CacheRule } from '../../src/cache/decide-caching.ts'
import type { Clock } from '../../src/clock.ts'
import type { GraphqlConfig, LimitsConfig, PlantsConfig, ServiceConfig } from '../../src/config/config.ts'
import type { Service } from '../../src/exchange/service.ts'
import type { Downstreams } from '../../src/gateway/parts/downstreams.ts'
import { createGraphqlContract } from '../../src/graphql/contract.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { createPlantsContract } from '../../src/openapi/contract.ts'
import { batchPath } from '../../src/openapi/document/operation.ts'
import type { Contract } from '../../src/service/contract.ts'
import { createOpenContract } from '../../src/service/open.ts'
import { createTargetMemo } from '../../src/service/target-memo.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { createUpstream } from '../../src/upstream/upstream.ts'
import { withBatch } from '../../src/wordpress/batch.ts'
import { graphqlTags, isFromObjectCache } from '../../src/wordpress/graphql.ts'
import { describedChange } from '../../src/wordpress/tags/companion-tags.ts'
import { actsAtPages, uncacheableReasonOf } from '../../src/wordpress/tags/uncacheable.ts'
import { siteContract, siteService } from '../exchange/exchange-of.ts'
import { configOf, type MemberSettings } from './member-settings.ts'
import { graphqlPath } from './services/graphql.ts'

const ignore = (): void => undefined

const anyService = siteService()

const limits = { queryParameters: 64, jsonDepth: 16, urlBytes: 8_192 } as LimitsConfig

const noRules: Contract['policyFor'] = () => ({ profile: 'safe', rule: undefined })

const plantsConfig = {
  ...{ name: 'site', limitParameter: 'limit', batch: { maxItems: 25 } },
  parameters: { unknown: 'strip', tracking: [] },
} as unknown as PlantsConfig

/** Loaded once: it compiles schemas. What a run adds to it is remembered, and decides nothing. */
const plantsContract = withBatch(
  batchPath,
  plantsConfig,
  limits,
  await createPlantsContract(plantsConfig, { limits, policyFor: noRules, uncacheableReasonOf }),
)

const graphqlConfig = {
  name: 'graphql',
  upstream: { basePath: graphqlPath },
  cache: { rules: [] },
  graphql: {
    ...{ tags: 'partial', introspection: true, batch: 10 },
    ...{ maxDepth: 15, maxAliases: 30, maxTokens: 2_000, maxBytes: 65_536 },
  },
} as unknown as GraphqlConfig

const upstreamOptions = (service: string, totalMs: number): UpstreamOptions => ({
  service,
  targets: ['http://one.test', 'http://two.test'],
  basePath: '',
  maxConcurrent: 64,
  queue: { max: 64, timeoutMs: 100 },
  clientShare: 1,
  minBytesPerSecond: 0,
  timeouts: { connectMs: 0, headersMs: 0, idleMs: totalMs, totalMs },
  retry: { attempts: 2, budget: 0.2 },
  breaker: { failureRatio: 0.5, minRequests: 20, windowMs: 10_000, forMs: 200, probes: 2 },
  eject: { after: 3, forMs: 100, maxShare: 0.5 },
  health: { path: '', intervalMs: 0, timeoutMs: 0, expect: [], failAfter: 1, recoverAfter: 1 },
  tls: { ca: '', cert: '', key: '', serverName: '', minVersion: 'TLSv1.2', acceptAnyCertificate: false },
  headerBytes: 16_384,
  hostHeader: '',
  connectionMaxAgeMs: 0,
})

const contractOf = (name: string, settings: MemberSettings): Contract => {
  const { contract, negativeTtlMs, staleIfErrorMs, staleWhileRevalidateMs, ttlMs } = settings
  const rule: CacheRule = {
    ...{ ttlMs, staleWhileRevalidateMs, staleIfErrorMs, negativeTtlMs },
    override: false,
    scope: contract === 'plants' ? 'credential' : 'public',
  }
  const policyFor: Contract['policyFor'] = (method) => ({
    profile: 'safe',
    rule: method === 'GET' || method === 'query' ? rule : undefined,
  })
  if (name === 'graphql')
    return createGraphqlContract(graphqlConfig, {
      ...{ limits, policyFor, uncacheableReasonOf, actsAsWrite: actsAtPages },
      companion: { describe: graphqlTags, describedChange, isFromOwnCache: isFromObjectCache },
    })
  switch (contract) {
    case 'site':
      return siteContract({ policyFor })
    case 'plants':
      return { ...plantsContract, policyFor }
    case 'open':
      return createOpenContract({ name: 'site', cache: { rules: [] } } as never, {
        ...{ limits, policyFor },
        uncacheableReasonOf: () => undefined,
        actsAsWrite: () => false,
      })
  }
}

export type MemberService = { readonly service: Service; readonly batch: BuiltBatch | undefined }

type ServiceParts = {
  readonly settings: MemberSettings
  readonly clock: Clock
  readonly downstreams: Downstreams
}

const servers = ['one.test:', 'two.test:'] as const

const serviceOf = (
  config: ServiceConfig,
  { settings, clock, downstreams }: ServiceParts,
  before: MemberService | undefined,
): MemberService => {
  const { totalMs } = settings
  const { name } = config
  const contract = contractOf(name, settings)
  const basePath = name === 'graphql' ? graphqlPath : ''
  const service: Service = {
    ...anyService,
    ...{ name, contract, mount: basePath },
    // Each has a list of its own, as in src/gateway/snapshot/build-service.ts.
    address: { ...anyService.address, basePath, servers: [...servers] },
    memo: createTargetMemo(100),
    limits: { ...anyService.limits, bodyBytes: 16_384, uploadBytes: 100_000, upstreamMs: totalMs },
    responses: {
      ...anyService.responses,
      contentId: () => '',
      downstream: downstreams.of(config, contract),
    },
    upstream: createUpstream(upstreamOptions(name, totalMs), { clock, random: Math.random, report: ignore }),
  }
  const batch = buildBatch(config, contract, {
    ...{ clock, report: ignore, budget: () => unlimited, stores: undefined },
    keysInMemory: before?.batch?.keysInMemory,
  })
  return { service, batch }
}

/** The services of a configuration; `before`: those of the one before. */
export const servicesOf = (
  parts: ServiceParts,
  before: readonly MemberService[] = [],
): readonly MemberService[] =>
  configOf(parts.settings).services.map((config, at) => serviceOf(config, parts, before[at]))
