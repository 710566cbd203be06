import type { CachePolicy } from '../cache/policy.ts'
import type { ServiceCacheConfig, ServiceConfig, SiteConfig } from '../config/config.ts'
import type { LimitsConfig } from '../config/edge-config.ts'
import { matchesRule } from '../config/rule-match.ts'
import type { RouteFinding } from '../contracts/finding.ts'
import { openRows } from '../contracts/open/route-table.ts'
import { plantRows } from '../contracts/plants/route-table.ts'
import type { Row } from '../contracts/row.ts'
import { keyNames, namespaceNames, segmentNames } from '../contracts/site/names.ts'
import { siteRows } from '../contracts/site/route-table.ts'
import { siteTags } from '../contracts/site/tags.ts'
import type { Validator } from '../contracts/validation.ts'
import type { NameTable } from '../names/name-swap.ts'
import { createNameSwap } from '../names/name-swap.ts'
import { mapRows } from '../names/row-names.ts'
import { createTargetMemo, type TargetMemo } from '../pipeline/target-memo.ts'
import { createRouter } from '../routing/router.ts'
import { createOpenTagger, createPlantsTagger } from '../tags/plain-taggers.ts'
import { createSiteTagger } from '../tags/site-tagger.ts'
import type { Tagger } from '../tags/tagger.ts'
import { createOpenValidator } from '../validation/open-validator.ts'
import { createPlantsValidator } from '../validation/plants-validator.ts'
import { createSiteValidator } from '../validation/site-validator.ts'
import { withBatchBounds } from './batch-bounds.ts'
import { withBatchExtensions } from './batch-validator.ts'

/** What can be said of requests to a service without asking its upstream. */
export type ServiceContract = {
  readonly rows: readonly Row[]
  /** The rows as the upstream should announce them: without the gateway's own bounds. */
  readonly announced: readonly Row[]
  /** Is a request without a bearer token refused? */
  readonly requiresBearer: boolean
  find(method: string, path: string): RouteFinding
  readonly validator: Validator
  readonly tagger: Tagger
  policyFor(method: string, path: string): CachePolicy
  readonly memo: TargetMemo
  /** Rows that the upstream announced join those of the table. */
  learn(rows: readonly Row[]): void
  /** The same with other cache rules: what has been learned, and what will be, holds for both. */
  withRules(cache: ServiceCacheConfig): ServiceContract
}

export const siteNameTable: NameTable = {
  namespaces: namespaceNames,
  keys: keyNames,
  segments: segmentNames,
}

/** The contract's rows as WordPress spells them. */
export const wordpressRows = (): readonly Row[] => mapRows(siteRows, createNameSwap(siteNameTable))

/**
 * With `names: same` clients use the upstream's own spelling: the neutral one where its root ends in the neutral
 * segment, WordPress's everywhere else.
 */
const publicSiteRows = ({ names, upstream }: SiteConfig): readonly Row[] =>
  names === 'wordpress' || upstream.basePath.endsWith('/site-json') ? siteRows : wordpressRows()

const policies = ({ rules, ...settings }: ServiceCacheConfig): ServiceContract['policyFor'] => {
  const none: CachePolicy = { ...settings, rule: undefined }
  const byRule = rules.map((rule) => ({ match: rule.match, policy: { ...settings, rule } }))
  return (method, path) => byRule.find(({ match }) => matchesRule(match, method, path))?.policy ?? none
}

const validatorOf = (service: ServiceConfig, limits: LimitsConfig): Validator => {
  switch (service.contract) {
    case 'plants':
      return createPlantsValidator({
        limits,
        limitParameter: service.limitParameter,
        unknownParameters: service.parameters.unknown,
        trackingParameters: service.parameters.tracking,
      })
    case 'site':
      return withBatchExtensions(
        createSiteValidator({
          limits,
          unknownParameters: service.parameters.unknown,
          trackingParameters: service.parameters.tracking,
        }),
        service.batch.extensions,
      )
    case 'open':
      return createOpenValidator({ limits })
  }
}

const announcedRows = (service: ServiceConfig): readonly Row[] => {
  switch (service.contract) {
    case 'plants':
      return plantRows({ limitParameter: service.limitParameter })
    case 'site':
      return publicSiteRows(service)
    case 'open':
      return openRows
  }
}

const taggerOf = ({ contract, name }: ServiceConfig): Tagger => {
  switch (contract) {
    case 'plants':
      return createPlantsTagger({ service: name })
    case 'site':
      return createSiteTagger({ service: name, table: siteTags })
    case 'open':
      return createOpenTagger({ service: name })
  }
}

/** At some 2 kB each, arguments included, at most 16 MB a service. */
const rememberedTargets = 8192

/** The limits of all services, or the service's own in their place. */
export const limitsOf = (service: ServiceConfig, limits: LimitsConfig): LimitsConfig =>
  service.contract === 'open' ? limits : { ...limits, ...service.limits }

/** Rows, validation, tags and cache rules of one service, from its configuration. */
export const serviceContract = (service: ServiceConfig, general: LimitsConfig): ServiceContract => {
  const limits = limitsOf(service, general)
  const announced = announcedRows(service)
  const rows =
    service.contract === 'site'
      ? withBatchBounds(announced, { items: service.batch.maxItems, pathCharacters: limits.urlBytes })
      : announced
  let router = createRouter(rows)
  /** Of the rules in force and of those before them, by which some requests may still be under way. */
  let memos: readonly TargetMemo[] = []

  const ruledBy = (cache: ServiceCacheConfig): ServiceContract => {
    const memo = createTargetMemo(rememberedTargets)
    memos = [...memos.slice(-1), memo]
    return { ...shared, policyFor: policies(cache), memo }
  }
  const shared = {
    rows,
    announced,
    requiresBearer: service.contract === 'plants',
    find: (method: string, path: string) => router.find(method, path),
    validator: validatorOf(service, limits),
    tagger: taggerOf(service),
    learn: (learned: readonly Row[]) => {
      router = createRouter([...rows, ...learned])
      for (const memo of memos) memo.clear()
    },
    withRules: ruledBy,
  }
  return ruledBy(service.cache)
}
