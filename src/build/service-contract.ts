import { hash } from 'node:crypto'
import { batchRequests, batchRows, withOwnBatch } from '../batch/batch-route.ts'
import type { CachePolicy, CacheRule, WhileHeard } from '../cache/decide-caching.ts'
import { createOpenTagger, createServiceTagger } from '../cache/plain-taggers.ts'
import { strictestPolicy } from '../cache/strictest-rule.ts'
import type { Tagger } from '../cache/tagger.ts'
import type { Clock } from '../clock.ts'
import type { LimitsConfig, OpenConfig, ServiceConfig, SiteConfig } from '../config/config.ts'
import { firstRules, mayMatchRule } from '../config/rule-match.ts'
import { urlAtHost } from '../http/hosts.ts'
import type { FieldChanges } from '../http/message.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Resources } from '../openapi/document/resources.ts'
import { createStructuralTagger } from '../openapi/tags/structural-tagger.ts'
import { createTargetMemo, type Service, type TargetMemo } from '../pipeline/service.ts'
import type { BuiltAccess } from '../server/access.ts'
import { anyRow, openRows } from '../service/open-routes.ts'
import { createOpenValidator } from '../service/open-validator.ts'
import { createRouter } from '../service/router.ts'
import type { RouteFinding, Row } from '../service/row.ts'
import type { Validator } from '../service/validation.ts'
import type { UpstreamOptions } from '../upstream/options.ts'
import { createSiteValidator } from '../wordpress/arguments/site-validator.ts'
import { keyNames, type NameTable, namespaceNames, segmentNames } from '../wordpress/names/name-table.ts'
import { rowsInOtherNames } from '../wordpress/names/names.ts'
import { coreRows } from '../wordpress/routes/core-rows.ts'
import { siteRows } from '../wordpress/routes/route-table.ts'
import { createSiteTagger } from '../wordpress/tags/site-tagger.ts'
import { siteTags } from '../wordpress/tags/tags.ts'
import {
  challengeOf,
  declaredFieldsOf,
  documentRequests,
  documentResources,
  documentRows,
  operationPolicies,
} from './document-contract.ts'

/** Everything about requests to a service that needs no upstream. */
export type ServiceContract = {
  readonly rows: readonly Row[]
  /** The rows as the upstream should announce them: without the gateway's own batch. */
  readonly announced: readonly Row[]
  /** The challenge for a request without the credentials that its endpoint requires; undefined when it has them. */
  challenge: Service['challenge']
  /** See pipeline/service.ts. */
  readonly declaredFields: readonly string[]
  find(method: string, path: string): RouteFinding
  readonly validator: Validator
  readonly tagger: Tagger
  /** With `invalidation: structural`. */
  readonly resources: Resources | undefined
  policyFor(method: string, path: string): CachePolicy
  readonly memo: TargetMemo
  /** Takes the contract's rows as the upstream takes them, and those that it announces besides. */
  learn(listed: readonly Row[], learned: readonly Row[]): void
  /** Is it a row of the table in use? A row that changed has another object in its place. */
  hasRow(row: Row): boolean
  /** Differs between tables under which the same request has other tags. */
  tableId(): string
}

export const siteNameTable: NameTable = {
  namespaces: namespaceNames,
  keys: keyNames,
  segments: segmentNames,
}

const withCore: readonly Row[] = [...siteRows, ...coreRows]

/**
 * With `names: same` clients use the upstream's own spelling: the neutral one where its root ends in the neutral
 * segment, WordPress's everywhere else.
 */
const publicSiteRows = ({ names, upstream }: SiteConfig): readonly Row[] => {
  const rows = upstream.targets === 'embedded' ? siteRows : withCore
  return names === 'wordpress' || upstream.basePath.endsWith('/site-json')
    ? rows
    : rowsInOtherNames(rows, siteNameTable)
}

/** Fields of clients that `access` keeps from the upstream: no response depends on them. */
export const withheldFields = ({ access }: Pick<ServiceConfig, 'access'>): readonly string[] => [
  ...(access?.apiKeys === undefined ? [] : [access.apiKeys.header]),
  ...Object.values(access?.jwt?.forward ?? {}),
]

const policies = (
  service: Pick<ServiceConfig, 'cache' | 'access'>,
  whileHeard: WhileHeard | undefined,
): ServiceContract['policyFor'] => {
  const { rules, ...cache } = service.cache
  const harmlessFields = [...cache.harmlessFields, ...withheldFields(service)]
  const settings = { ...cache, harmlessFields, harmlessResponseFields: cache.harmlessFields, whileHeard }
  const none: CachePolicy = { ...settings, rule: undefined }
  const byRule = new Map<CacheRule, CachePolicy>(rules.map((rule) => [rule, { ...settings, rule }]))
  return (method, path) => {
    const first = firstRules(rules, method, path)
    if (first.size > 1) return strictestPolicy(first, settings)
    const [rule] = first
    return (rule && byRule.get(rule)) ?? none
  }
}

/** Requests to an open service are counted by the path pattern of the first rule that is for their path, whatever their method. */
const byRules = (
  find: ServiceContract['find'],
  { rules }: ServiceConfig['cache'],
): ServiceContract['find'] => {
  const routes = rules.map(({ match }) => ({
    match,
    row: { ...anyRow, template: `/${match.segments.join('/')}` },
  }))
  return (method, path) => {
    const finding = find(method, path)
    if (finding.kind !== 'found') return finding
    const route = routes.find(({ match }) => mayMatchRule(match, match.methods[0] ?? 'GET', finding.path))
    return route === undefined ? finding : { ...finding, row: route.row }
  }
}

const validatorOf = (service: SiteConfig | OpenConfig, limits: LimitsConfig): Validator => {
  switch (service.contract) {
    case 'site':
      return createSiteValidator({
        limits,
        unknownParameters: service.parameters.unknown,
        trackingParameters: service.parameters.tracking,
      })
    case 'open':
      return createOpenValidator({ limits })
  }
}

const announcedRows = (service: ServiceConfig): readonly Row[] => {
  switch (service.contract) {
    case 'plants':
    case 'openapi':
      return documentRows(service)
    case 'site':
      return publicSiteRows(service)
    case 'open':
      return openRows
  }
}

const taggerOf = (service: ServiceConfig, resources: Resources | undefined): Tagger => {
  const { name } = service
  switch (service.contract) {
    case 'plants':
      return createServiceTagger({ service: name })
    case 'openapi':
      return resources === undefined
        ? createServiceTagger({ service: name })
        : createStructuralTagger({ service: name, resources })
    case 'site':
      return createSiteTagger({ service: name, table: siteTags, properties: service.cache.properties })
    case 'open':
      return createOpenTagger({ service: name })
  }
}

/** At some 2 kB each, arguments included, at most 16 MB a service. */
const rememberedTargets = 8192

/** The limits of all services, or the service's own in their place. */
export const limitsOf = (service: ServiceConfig, limits: LimitsConfig): LimitsConfig =>
  service.contract === 'open' ? limits : { ...limits, ...service.limits }

/** Of what tags depend on beside the request. */
const tableIdOf = (rows: readonly Row[]): string =>
  hash(
    'sha256',
    JSON.stringify(
      rows.map(({ template, collection, kind, endpoints }) => [
        template,
        collection,
        kind,
        endpoints.map(({ methods, asSent }) => [methods, asSent]),
      ]),
    ),
    'base64url',
  )

/** Rows, validation, tags and cache rules of one service, from its configuration. */
export const serviceContract = async (
  service: ServiceConfig,
  general: LimitsConfig,
  whileHeard?: WhileHeard,
): Promise<ServiceContract> => {
  const limits = limitsOf(service, general)
  const announced = announcedRows(service)
  const rows =
    service.contract === 'site'
      ? withOwnBatch(announced, { items: service.batch.maxItems, pathCharacters: limits.urlBytes })
      : [...announced, ...batchRows(service, limits)]
  const requests =
    service.contract === 'openapi' || service.contract === 'plants'
      ? batchRequests(service, limits, await documentRequests(service, limits))
      : { find: createRouter(rows).find, validator: validatorOf(service, limits) }
  const resources = documentResources(service)
  let router = requests.find
  /** Undefined: the rows of the contract, which never change. */
  let current: ReadonlySet<Row> | undefined
  /** Of the table before the first index: every write reaches what is stored by them. */
  let first: ReadonlySet<Row> | undefined
  let tableId = ''
  const findRow: ServiceContract['find'] = (method, path) => router(method, path)
  const memo = createTargetMemo(rememberedTargets)
  const byPath = policies(service, whileHeard)
  return {
    rows,
    announced,
    challenge: challengeOf(service),
    declaredFields: declaredFieldsOf(service),
    find: service.contract === 'open' ? byRules(findRow, service.cache) : findRow,
    validator: requests.validator,
    tagger: taggerOf(service, resources),
    resources,
    policyFor:
      service.contract === 'openapi'
        ? operationPolicies(service, service.document.contract, byPath, findRow)
        : byPath,
    memo,
    learn: (listed: readonly Row[], learned: readonly Row[]) => {
      const all = [...listed, ...learned]
      router = createRouter(all).find
      current = new Set(all)
      first ??= current
      tableId = tableIdOf(all)
      memo.clear()
    },
    hasRow: (row: Row) => current === undefined || current.has(row) || first?.has(row) === true,
    tableId: () => tableId,
  }
}

/** How clients and the upstream name a service. */
export type ServiceAddress = {
  /** Absolute URL in front of the mount. */
  readonly publicUrl: string
  /** For `X-Forwarded-Host`. */
  readonly publicHost: string
  /** `Host` sent upstream; '' = that of the target. */
  readonly hostField: string
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
): ServiceAddress => {
  const base = publicUrl === '' ? general : publicUrl
  const asked = host === undefined ? base : urlAtHost(base, host)
  const isPreserved = upstream.host === 'preserve'
  const shown = publicUrl === '' ? asked : publicUrl
  return {
    publicUrl: shown,
    publicHost: new URL(isPreserved ? asked : shown).host,
    hostField: isPreserved ? new URL(asked).host : '',
  }
}

/** Do links, or what the upstream receives, depend on the host that the client asked for? */
export const dependsOnHost = ({ hosts, publicUrl, upstream }: ServiceConfig): boolean =>
  (hosts.length > 1 || !hosts.every(isExact)) && (publicUrl === '' || upstream.host === 'preserve')

/** The changes that `responseHeaders` asks for; undefined where it asks for none. */
export const responseChangesOf = ({
  responseHeaders: { set, remove },
}: ServiceConfig): FieldChanges | undefined => {
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
  if (service.contract === 'open' || service.upstream.targets !== 'embedded') return undefined
  const { basePath } = service.upstream
  // The demo is loaded only where it is used.
  if (service.contract === 'plants') {
    const { startEmbeddedPlants } = await import('../../demo/plants.ts')
    return startEmbeddedPlants({ basePath, requests: await documentRequests(service, limits) })
  }
  if (service.contract === 'openapi') {
    const { startDocumentMock } = await import('../../demo/document-mock.ts')
    return startDocumentMock({ basePath, document: service.document })
  }
  const { startEmbeddedSite } = await import('../../demo/site.ts')
  const isNeutral = service.names === 'same' && basePath.endsWith('/site-json')
  return startEmbeddedSite({
    basePath,
    home: new URL(addressOf(service, publicUrl).publicUrl).origin,
    dialect: isNeutral ? 'neutral' : 'wordpress',
    limits,
  })
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
    hostField: addressOf(service, publicUrl).hostField,
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
