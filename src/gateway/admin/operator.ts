import { setImmediate } from 'node:timers/promises'
import type { Diagnosis } from '../../admin/diagnosis.ts'
import type { EntriesQuery, Operator, PurgeOutcome, WarmResponse } from '../../admin/operator.ts'
import type { PurgeRequest, PurgeSelection, WarmRequest } from '../../admin/purge-request.ts'
import type { CacheEntry } from '../../cache/entries.ts'
import type { Purge } from '../../cache/invalidation.ts'
import { tagsReachedBy, upstreamTagName } from '../../cache/upstream-tags.ts'
import type { Config } from '../../config/config.ts'
import { shownConfig } from '../../config/redacted-config.ts'
import { publicPrefix, type Service } from '../../exchange/service.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import type { Redaction } from '../../http/redaction.ts'
import { foldedTarget, targetParts } from '../../http/targets.ts'
import type { History, PurgeRecord } from '../../observability/history.ts'
import { apiDocumentOf } from '../../openapi/document/api-document.ts'
import {
  type DescribedService,
  openApiDocument,
  servedDocument,
} from '../../openapi/served/openapi-document.ts'
import { cleanSpelling, spelled } from '../../service/route-paths.ts'
import { explainAt } from '../explain.ts'
import { hasClientSecret, type WarmTarget } from '../parts/warmer.ts'
import { type BuiltService, withoutRoot } from '../snapshot/build-service.ts'
import { longestWaitMs, type OperatorCache } from './operator-cache.ts'
import {
  type AskedService,
  canonicalTarget,
  createPublicTargets,
  noServiceTexts,
  type PublicTargets,
} from './public-targets.ts'

type PurgeParts = {
  readonly services: readonly AskedService[]
  readonly targets: PublicTargets
  readonly cache: Pick<OperatorCache, 'purge' | 'topUsed' | 'warm'>
}

type Selector = Purge['selector']
type PurgeSelectors =
  | { readonly kind: 'selectors'; readonly selectors: readonly Selector[] }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (detail: string): PurgeSelectors => ({ kind: 'refused', detail })
const selectorAlone = (selector: Selector): PurgeSelectors => ({ kind: 'selectors', selectors: [selector] })

type FoundTarget = Extract<ReturnType<PublicTargets>, { kind: 'found' }>

/** All that is stored for a URL; GET and QUERY may have different parameters, so it may have two forms. */
const storedFor = (publicTarget: FoundTarget): PurgeSelectors => {
  const { host, service } = publicTarget
  const [get, query] = [canonicalTarget(publicTarget), canonicalTarget(publicTarget, 'QUERY')]
  const targets = [get, query].flatMap((canonical) => (canonical.kind === 'target' ? [canonical.target] : []))
  if (targets.length === 0 && get.kind === 'refused') return get
  const at = { kind: 'target', service: service.config.name, ...(host === '' ? {} : { host }) } as const
  const { invalidatesTargets } = service.contract
  // Every stored spelling has the tag of this form.
  const formOf = (target: string): string => (invalidatesTargets ? foldedTarget(target) : target)
  const selectors = [...new Set(targets.map(formOf))].map((form): Selector => {
    const spellings = targets.filter((target) => formOf(target) === form)
    return { ...at, target: form, spellings }
  })
  return { kind: 'selectors', selectors }
}

const byUrl = ({ targets }: PurgeParts, url: string, only: string | undefined): PurgeSelectors => {
  const choice = targets(url)
  if (choice.kind !== 'found') return refused(noServiceTexts[choice.kind])
  const { name } = choice.service.config
  if (only !== undefined && only !== name) return refused('the URL belongs to another service')
  return storedFor(choice)
}

/** The part of a service under a public path; undefined when there is none. */
const insidePrefix = (mount: string, prefix: string): string | undefined => {
  const bare = withoutRoot(mount)
  if (prefix.startsWith(bare)) return prefix.slice(bare.length)
  return bare.startsWith(prefix) ? '' : undefined
}

/** A prefix as stored responses are keyed: the path in its one spelling, and no byte outside ASCII. */
const spelledPrefix = (text: string): string | undefined => {
  const ascii = text.replace(/\p{Surrogate}/gu, '\ufffd').replace(/[^!-~]/gu, encodeURIComponent)
  const path = /^[^?]*/.exec(ascii)?.[0] ?? ''
  const cleaned = cleanSpelling(path, 'unreserved')
  return cleaned.kind === 'cleaned' ? spelled(cleaned.text) + ascii.slice(path.length) : undefined
}

const byPrefix = ({ services }: PurgeParts, text: string, only: string | undefined): PurgeSelectors => {
  const prefix = spelledPrefix(text)
  if (prefix === undefined)
    return refused('the prefix is not the beginning of a path that a request can have')
  const selectors: Selector[] = []
  for (const { config } of services) {
    const inside = insidePrefix(config.mount, prefix)
    if (inside === undefined || (only !== undefined && only !== config.name)) continue
    selectors.push({ kind: 'prefix', service: config.name, prefixes: [inside] })
  }
  return selectors.length === 0 ? refused(noServiceTexts['no-service']) : { kind: 'selectors', selectors }
}

/** A tag of the gateway begins with the name of its service; a tag that an upstream sent has the name that the upstream gave it. */
const byTag = ({ services }: PurgeParts, tag: string, only: string | undefined): PurgeSelectors => {
  const owner = services.find(({ config }) => tag.startsWith(`${config.name}/`))?.config.name
  if (owner !== undefined && only !== undefined && owner !== only)
    return refused('the tag belongs to another service')
  const named = services.filter(({ config }) => only === undefined || config.name === only)
  const upstreamNames = named.map(({ config }) => upstreamTagName(config.name, tag))
  const reached = new Set([tag, ...upstreamNames].flatMap(tagsReachedBy))
  return { kind: 'selectors', selectors: [...reached].map((name) => ({ kind: 'tag', tag: name })) }
}

const select = (
  parts: PurgeParts,
  selection: PurgeSelection,
  service: PurgeRequest['service'],
): PurgeSelectors => {
  switch (selection.by) {
    case 'url':
      return byUrl(parts, selection.text, service)
    case 'tag':
      return byTag(parts, selection.text, service)
    case 'prefix':
      return byPrefix(parts, selection.text, service)
    case 'all':
      return selectorAlone(
        service === undefined ? { kind: 'all' } : { kind: 'prefix', service, prefixes: [''] },
      )
  }
}

/** All prefixes of a service as one selector: for each one, everything that is stored is gone through. */
const together = (selectors: readonly Selector[]): readonly Selector[] => {
  const prefixes = new Map<string, string[]>()
  const others: Selector[] = []
  for (const selector of selectors) {
    if (selector.kind !== 'prefix') others.push(selector)
    else prefixes.set(selector.service, [...(prefixes.get(selector.service) ?? []), ...selector.prefixes])
  }
  const joined = [...prefixes].map(([service, all]): Selector => ({ kind: 'prefix', service, prefixes: all }))
  return [...others, ...joined]
}

const maxNamed = 20

/** A URL may be long, and each is read as a GET and as a QUERY. */
const selectedPerTurn = 20

/** Those of the most used targets that can be fetched again without what was a client's. */
const usedWithoutSecret = async (
  { cache, services }: PurgeParts,
  selectors: readonly Selector[],
  max: number,
): Promise<readonly WarmTarget[]> => {
  const contracts = new Map(services.map(({ config, contract }) => [config.name, contract]))
  const targets: WarmTarget[] = []
  for (const [at, used] of (await cache.topUsed(selectors, max)).entries()) {
    if (at % selectedPerTurn === selectedPerTurn - 1) await setImmediate()
    const contract = contracts.get(used.service)
    if (contract !== undefined && !hasClientSecret(contract, used.target)) targets.push(used)
  }
  return targets
}

/** Drops, marks stale or counts what an operator names; all variants, in all partitions. */
const purgeCache = async (parts: PurgeParts, request: PurgeRequest): Promise<PurgeOutcome> => {
  const { selections, service, mode, dryRun, warm } = request
  const names = parts.services.map(({ config }) => config.name)
  if (service !== undefined && !names.includes(service))
    return {
      kind: 'refused',
      detail: `service: no service has this name; the services are ${names.slice(0, maxNamed).join(', ')}`,
    }
  const selected: Selector[] = []
  // All of them first: a purge that is refused removes nothing.
  for (const [at, named] of selections.entries()) {
    if (at % selectedPerTurn === selectedPerTurn - 1) await setImmediate()
    const selection = select(parts, named, service)
    if (selection.kind === 'refused') {
      const shown = named.by === 'url' && selections.length > 1 ? `${named.text}: ` : ''
      return { kind: 'refused', detail: shown + selection.detail }
    }
    selected.push(...selection.selectors)
  }
  const selectors = together(selected)
  const used = warm === 0 ? [] : await usedWithoutSecret(parts, selectors, warm)
  const entries = await parts.cache.purge({ selectors, mode, dryRun })
  if (entries === 'unacknowledged') return { kind: 'unacknowledged' }
  return { kind: 'purged', entries, warming: used.length === 0 ? 0 : (await parts.cache.warm(used, 0)).added }
}

/** Fetches the URLs; a URL without a GET is refused with the reason. */
const warmCache = async (parts: PurgeParts, { urls, wait }: WarmRequest): Promise<WarmResponse> => {
  const targets: (WarmTarget & { readonly url: string })[] = []
  const refusals: { url: string; detail: string }[] = []
  for (const url of urls) {
    const found = parts.targets(url)
    const canonical = found.kind === 'found' ? canonicalTarget(found) : refused(noServiceTexts[found.kind])
    if (found.kind === 'found' && canonical.kind === 'target') {
      const { host, service } = found
      targets.push({ service: service.config.name, target: canonical.target, host, scheme: '', url })
    } else if (canonical.kind === 'refused') refusals.push({ url, detail: canonical.detail })
  }
  const { added, results } = await parts.cache.warm(targets, wait ? longestWaitMs : 0)
  const response = { warming: added, refused: refusals }
  if (!wait) return response
  const notStored = targets.flatMap(({ url }, at) => {
    const { outcome, reason } = results[at] ?? {
      outcome: 'unfinished' as const,
      reason: 'still being fetched',
    }
    return outcome === 'fetched' || outcome === 'hit' ? [] : [{ url, outcome, detail: reason }]
  })
  return { ...response, stored: targets.length - notStored.length, notStored }
}

/** The parts that depend on the configuration in use. */
export type SnapshotOperator = Omit<Operator, 'reload' | 'drain' | 'changes' | 'builds' | keyof Diagnosis>

const purgeRecord = ({ selections, mode, service }: PurgeRequest, entries: number): PurgeRecord => {
  const [first, ...more] = selections
  const kinds = [...new Set(selections.map(({ by }) => by))].join(', ')
  const reach = first === undefined ? '' : first.by === 'all' ? (service ?? 'everything') : first.text
  return {
    cause: `${mode === 'soft' ? 'soft purge' : 'purge'} by ${kinds}`,
    reach: more.length === 0 ? reach : `${reach} and ${more.length} more`,
    entries,
  }
}

/** Implements the admin side for the configuration in use. */
export const currentOperator = (
  current: () => SnapshotOperator,
  lasting: Pick<Operator, 'reload' | 'drain' | 'changes' | 'builds'>,
  { purged, ...diagnosis }: Diagnosis & Pick<History, 'purged'>,
): Operator => ({
  ...lasting,
  ...diagnosis,
  purge: async (request) => {
    const outcome = await current().purge(request)
    if (outcome.kind === 'purged' && !request.dryRun) purged(purgeRecord(request, outcome.entries))
    return outcome
  },
  warm: (request) => current().warm(request),
  entries: (query) => current().entries(query),
  explain: (request) => current().explain(request),
  drift: () => current().drift(),
  config: () => current().config(),
  openApi: (service) => current().openApi(service),
})

type OperatorParts = {
  readonly config: Config
  /** As clients see it, with the port that was really taken. */
  readonly publicUrl: string
  readonly version: string
  readonly redaction: Redaction
  readonly cache: OperatorCache
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
}

/** The table's rows and those that the upstream announced. */
const describedServices = ({ built }: OperatorParts): readonly DescribedService[] =>
  built.flatMap(({ config, service, contract: { rows }, upstreamRoutes }) =>
    'document' in config
      ? []
      : [
          {
            name: service.name,
            contract: config.contract,
            mount: service.mount,
            publicUrl: urlBefore(service),
            rows: [...(upstreamRoutes?.listed() ?? rows), ...(upstreamRoutes?.learned() ?? [])],
          },
        ],
  )

/** Without the mount. */
const urlBefore = ({ address: { publicRoot }, mount }: Service): string =>
  publicRoot.slice(0, publicRoot.length - mount.length)

const orders = { size: 'bytes', hits: 'hits', age: 'age' } as const

/** An entry under its public path, or its URL where a service has hosts. Entries of a credential show neither target nor content. */
const shownEntry = (entry: CacheEntry, services: ReadonlyMap<string, Service>): unknown => {
  const { target, tags, host, ...facts } = entry
  const path = publicPrefix(services.get(entry.service), host) + target
  return entry.partition === 'public'
    ? { ...facts, url: path, tags }
    : { ...facts, url: targetParts(path).path, tags: [] }
}

/** The documents of services with one of their own, each made on first use. */
const ownDocuments = ({ built }: OperatorParts): ((name: string) => Buffer | undefined) => {
  const contents = new Map<string, Buffer>()
  return (name) => {
    const service = built.find(({ config }) => config.name === name)
    if (service === undefined || !('document' in service.config)) return undefined
    const document = apiDocumentOf(service.config)
    const batch = service.contract.rows.find(({ kind }) => kind === 'batch')
    const content =
      contents.get(name) ??
      Buffer.from(JSON.stringify(servedDocument(document.bundle, service.service.address.publicRoot, batch)))
    contents.set(name, content)
    return content
  }
}

/** The document of all services, with the routes announced by now. */
const openApiContent = (parts: OperatorParts): Buffer => {
  const { publicUrl, version, config } = parts
  const document = openApiDocument({
    publicUrl,
    version,
    services: describedServices(parts),
    withOwnDocument: config.services.filter((service) => 'document' in service).map(({ name }) => name),
  })
  return Buffer.from(JSON.stringify(document))
}

/** Implements the admin side with the parts that serve requests: learned rows included. */
export const createOperator = (parts: OperatorParts): SnapshotOperator => {
  const { cache, config, publicUrl, built, redaction } = parts
  const ownDocument = ownDocuments(parts)
  const targets = createPublicTargets(built, publicUrl)
  const serviceNamed = new Map(built.map(({ service }) => [service.name, service]))
  const stored = async (url: string, host: string | undefined): Promise<number> => {
    const choice = targets(url, host)
    if (choice.kind !== 'found') return 0
    const selection = storedFor(choice)
    if (selection.kind === 'refused') return 0
    const count = await cache.purge({ selectors: selection.selectors, mode: 'hard', dryRun: true })
    return count === 'unacknowledged' ? 0 : count
  }
  /** Why reads of it are not stored now. */
  const openWrites = async (
    url: string,
    host: string | undefined,
  ): Promise<{ readonly openWrites?: string }> => {
    const choice = targets(url, host)
    const ages = choice.kind === 'found' ? await cache.openWrites(choice.service.config.name) : []
    if (ages.length === 0) return {}
    const seconds = Math.floor(Math.max(...ages) / 1000)
    return {
      openWrites: `${ages.length}, the first for ${seconds} s: nothing that they may change is stored`,
    }
  }
  return {
    purge: (request) => purgeCache({ services: built, targets, cache }, request),
    warm: (request) => warmCache({ services: built, targets, cache }, request),
    entries: async ({ sort, limit }: EntriesQuery) =>
      (await cache.entries(orders[sort], limit)).map((entry) => shownEntry(entry, serviceNamed)),
    explain: async ({ method, url, fields: headers }) => {
      const explanation = await explainAt(targets, { method, target: url, headers }, redaction)
      return {
        ...explanation,
        ...(await openWrites(url, requestHeader(headers, 'host'))),
        storedResponses: await stored(url, requestHeader(headers, 'host')),
      }
    },
    drift: () => ({
      services: built.flatMap(({ service: { name }, upstreamRoutes }) =>
        upstreamRoutes === undefined ? [] : [{ service: name, differences: upstreamRoutes.drift() }],
      ),
    }),
    config: () => shownConfig(config),
    openApi: (service) => (service === undefined ? openApiContent(parts) : ownDocument(service)),
  }
}
