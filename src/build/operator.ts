import type { EntriesQuery, Operator, PurgeOutcome, ReloadAnswer, ReloadOutcome } from '../admin/operator.ts'
import type { PurgeRequest } from '../admin/purge-request.ts'
import type { Cache } from '../cache/cache.ts'
import { targetKey } from '../cache/cache-key.ts'
import type { CacheEntry, EntryOrder } from '../cache/entries.ts'
import type { Purge } from '../cache/invalidation.ts'
import type { Note } from '../cache/invalidation-note.ts'
import type { Coherence } from '../cluster/coherence.ts'
import type { WorkerLink } from '../cluster/worker-link.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { shownConfig } from '../config/redacted-config.ts'
import type { Row } from '../contracts/row.ts'
import { extendedBatch } from '../contracts/site/batch-extensions.ts'
import { urlAtHost } from '../http/hosts.ts'
import { requestField } from '../http/message.ts'
import type { History, PurgeRecord } from '../observability/history.ts'
import type { Service } from '../pipeline/service.ts'
import { openApiDocument } from '../site/openapi-document.ts'
import type { DescribedService } from '../site/openapi-operations.ts'
import {
  type AskedService,
  type BuiltService,
  canonicalTarget,
  createPublicTargets,
  noServiceTexts,
  type PublicTargets,
} from './built-service.ts'
import { explainAt } from './explain.ts'

type Maybe<Value> = Value | Promise<Value>

/** The cache as the admin side sees it: of all processes together. */
export type OperatorCache = {
  /** `unheard`: dropped here; other instances could not be notified. */
  purge(purge: Purge): Maybe<number | 'unheard'>
  entries(order: EntryOrder, limit: number): Maybe<readonly CacheEntry[]>
}

type OperatorCacheParts = {
  readonly cache: Pick<Cache, 'purgeInTurns' | 'entries'>
  readonly coherence: Coherence | undefined
  readonly worker: WorkerLink | undefined
  /** Refuses purges that other instances cannot learn of. */
  readonly refusesUnheard: boolean
}

const noteOf = ({ selector, mode }: Purge): Note => {
  switch (selector.kind) {
    case 'target':
      return { kind: 'tag', tag: targetKey(selector.service, selector.target), mode }
    case 'tag':
      return { kind: 'tag', tag: selector.tag, mode }
    case 'prefix':
      return { kind: 'prefix', service: selector.service, prefix: selector.prefix, mode }
    case 'all':
      return { kind: 'all', mode }
    case 'matching':
      throw new TypeError('a purge by predicate cannot be sent to other processes')
  }
}

const ranks: Readonly<Record<EntryOrder, (entry: CacheEntry) => number>> = {
  bytes: ({ bytes }) => bytes,
  hits: ({ hits }) => hits,
  age: ({ ageSeconds }) => ageSeconds,
}

/** A worker's question to all workers about their caches. */
export type CacheQuestion =
  | { readonly topic: 'count'; readonly content: Purge['selector'] }
  | { readonly topic: 'entries'; readonly content: { readonly order: EntryOrder; readonly limit: number } }

/** Answers the question of another worker. */
export const answerCacheQuestion = (
  cache: Pick<Cache, 'purge' | 'entries'>,
  { topic, content }: CacheQuestion,
): unknown =>
  topic === 'count'
    ? cache.purge({ selector: content, mode: 'hard', dryRun: true })
    : cache.entries(content.order, content.limit)

/** The cache of this process, or of all that share the port or the store. */
export const operatorCache = ({
  cache,
  coherence,
  worker,
  refusesUnheard,
}: OperatorCacheParts): OperatorCache => {
  if (coherence === undefined) {
    return { purge: cache.purgeInTurns, entries: (order, limit) => cache.entries(order, limit) }
  }
  const count = async (purge: Purge): Promise<number> => {
    if (worker === undefined) return cache.purgeInTurns(purge)
    const counts = await worker.ask({ topic: 'count', content: purge.selector })
    return counts.reduce<number>((sum, one) => sum + Number(one), 0)
  }
  return {
    purge: async (purge) => {
      if (purge.dryRun) return count(purge)
      const here = await cache.purgeInTurns(purge)
      const elsewhere = await coherence.spread([noteOf(purge)])
      return elsewhere.unheard && refusesUnheard ? 'unheard' : here + elsewhere.entries
    },
    entries: async (order, limit) => {
      if (worker === undefined) return cache.entries(order, limit)
      const lists = (await worker.ask({ topic: 'entries', content: { order, limit } })) as (
        | CacheEntry[]
        | null
      )[]
      const rank = ranks[order]
      return lists
        .flatMap((list) => list ?? [])
        .sort((a, b) => rank(b) - rank(a))
        .slice(0, limit)
    },
  }
}

/** The facts that a purge by public URLs needs. */
type PurgeParts = {
  readonly services: readonly AskedService[]
  readonly targets: PublicTargets
  readonly cache: Pick<OperatorCache, 'purge'>
}

type Selector = Purge['selector']
type Selection =
  | { readonly kind: 'selectors'; readonly selectors: readonly Selector[] }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (detail: string): Selection => ({ kind: 'refused', detail })
const one = (selector: Selector): Selection => ({ kind: 'selectors', selectors: [selector] })

const selectorOf = (found: Extract<ReturnType<PublicTargets>, { kind: 'found' }>, target: string) => {
  const { host, service } = found
  return { kind: 'target', service: service.config.name, target, ...(host === '' ? {} : { host }) } as const
}

const byUrl = ({ targets }: PurgeParts, url: string, only: string | undefined): Selection => {
  const found = targets(url)
  if (found.kind !== 'found') return refused(noServiceTexts[found.kind])
  const { name } = found.service.config
  if (only !== undefined && only !== name) return refused('the URL belongs to another service')
  const canonical = canonicalTarget(found)
  if (canonical.kind === 'refused') return canonical
  return one(selectorOf(found, canonical.target))
}

/** The part of a service under a public path; undefined when there is none. */
const insidePrefix = (mount: string, prefix: string): string | undefined => {
  const bare = mount === '/' ? '' : mount
  if (prefix.startsWith(bare)) return prefix.slice(bare.length)
  return bare.startsWith(prefix) ? '' : undefined
}

const byPrefix = ({ services }: PurgeParts, prefix: string, only: string | undefined): Selection => {
  const selectors: Selector[] = []
  for (const { config } of services) {
    const inside = insidePrefix(config.mount, prefix)
    if (inside === undefined || (only !== undefined && only !== config.name)) continue
    selectors.push({ kind: 'prefix', service: config.name, prefix: inside })
  }
  return selectors.length === 0
    ? refused('no service is mounted at this path')
    : { kind: 'selectors', selectors }
}

const select = (parts: PurgeParts, { selection, service }: PurgeRequest): Selection => {
  if (service !== undefined && !parts.services.some(({ config }) => config.name === service)) {
    return refused('service: no service has this name')
  }
  switch (selection.by) {
    case 'url':
      return byUrl(parts, selection.url, service)
    case 'tag':
      // Tags begin with the name of their service.
      return service === undefined || selection.tag.startsWith(`${service}/`)
        ? one({ kind: 'tag', tag: selection.tag })
        : refused('the tag belongs to another service')
    case 'prefix':
      return byPrefix(parts, selection.prefix, service)
    case 'all':
      return one(service === undefined ? { kind: 'all' } : { kind: 'prefix', service, prefix: '' })
  }
}

/** Drops, marks stale or counts what an operator names; all variants, in all partitions. */
const purgeCache = async (parts: PurgeParts, request: PurgeRequest): Promise<PurgeOutcome> => {
  const selection = select(parts, request)
  if (selection.kind === 'refused') return selection
  const { mode, dryRun } = request
  let entries = 0
  for (const selector of selection.selectors) {
    const purged = await parts.cache.purge({ selector, mode, dryRun })
    if (purged === 'unheard') return { kind: 'unheard' }
    entries += purged
  }
  return { kind: 'purged', entries }
}

/** The parts that depend on the configuration in use. */
export type GenerationOperator = Omit<Operator, 'reload' | 'drain' | keyof Diagnosis>

/** What outlives a configuration: views of what happened, and the log. */
export type Diagnosis = Pick<Operator, 'history' | 'recent' | 'logLevel' | 'setLogLevel'>

const reloadAnswer = (outcome: ReloadOutcome): ReloadAnswer => {
  switch (outcome.kind) {
    case 'applied':
    case 'unchanged':
      return { kind: 'done', outcome: outcome.kind, hash: outcome.hash }
    case 'invalid':
      return { kind: 'refused', outcome: outcome.kind, details: outcome.faults }
    case 'restart-needed':
      return { kind: 'refused', outcome: outcome.kind, details: outcome.keys }
    case 'failed':
      return { kind: 'refused', outcome: outcome.kind, details: [] }
  }
}

const purgeRecord = ({ selection, mode, service }: PurgeRequest, entries: number): PurgeRecord => {
  const reach =
    selection.by === 'all' ? 'everything' : Object.entries(selection).find(([name]) => name !== 'by')?.[1]
  const what = selection.by === 'all' && service !== undefined ? service : reach
  return {
    cause: `${mode === 'soft' ? 'soft purge' : 'purge'} by ${selection.by}`,
    reach: String(what),
    entries,
  }
}

/** Implements the admin side for the configuration in use. */
export const currentOperator = (
  current: () => GenerationOperator,
  reload: () => Promise<ReloadOutcome>,
  drain: () => void,
  diagnosis: Diagnosis & Pick<History, 'purged'>,
): Operator => ({
  history: diagnosis.history,
  recent: diagnosis.recent,
  logLevel: diagnosis.logLevel,
  setLogLevel: diagnosis.setLogLevel,
  purge: async (request) => {
    const outcome = await current().purge(request)
    if (outcome.kind === 'purged' && !request.dryRun) diagnosis.purged(purgeRecord(request, outcome.entries))
    return outcome
  },
  entries: (query) => current().entries(query),
  explain: (request) => current().explain(request),
  drift: () => current().drift(),
  config: () => current().config(),
  openApi: () => current().openApi(),
  reload: async () => reloadAnswer(await reload()),
  drain,
})

type OperatorParts = {
  readonly config: Config
  /** As clients see it, with the port that was really taken. */
  readonly publicUrl: string
  readonly version: string
  readonly cache: OperatorCache
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
}

const askedServices = ({ config, built }: OperatorParts): readonly AskedService[] =>
  built.flatMap(({ contract, access }, position) => {
    const service = config.services[position]
    return service === undefined ? [] : [{ config: service, contract, access }]
  })

/** The table's rows and those that the upstream announced. */
const describedServices = ({ built }: OperatorParts): readonly DescribedService[] =>
  built.map(({ config, service, contract: { rows }, discovery }) => ({
    name: service.name,
    contract: service.contract,
    mount: service.mount,
    publicUrl: service.publicRoot.slice(0, service.publicRoot.length - service.mount.length),
    rows: [...withExtensions(config, rows), ...(discovery?.learned().rows ?? [])],
  }))

/** The discovery document describes WordPress's batch; this document describes the gateway's. */
const withExtensions = (config: ServiceConfig, rows: readonly Row[]): readonly Row[] =>
  config.contract === 'site' && config.batch.extensions !== 'off'
    ? rows.map((row) =>
        row.kind === 'batch' ? { ...row, endpoints: row.endpoints.map(extendedBatch) } : row,
      )
    : rows

const orders = { size: 'bytes', hits: 'hits', age: 'age' } as const

/** What stands in front of the targets of a service: its mount, with hosts behind the URL of the host. */
const frontOf = (service: Service | undefined, host: string): string => {
  if (service === undefined || service.hosts.length === 0) return service?.mount ?? ''
  return host === '' ? service.publicRoot : urlAtHost(service.publicRoot, host)
}

/** An entry under its public path, or its URL where a service has hosts. Entries of a credential show neither target nor content. */
const shownEntry = (entry: CacheEntry, services: ReadonlyMap<string, Service>): unknown => {
  const { target, tags, host, ...facts } = entry
  const path = frontOf(services.get(entry.service), host) + target
  return entry.partition === 'public'
    ? { ...facts, url: path, tags }
    : { ...facts, url: path.split('?', 1)[0] ?? '', tags: [] }
}

/** Builds the document again only when the announced routes have changed. */
const openApiContent = (parts: OperatorParts): (() => Buffer) => {
  let known: readonly unknown[] = []
  let content: Buffer | undefined
  return () => {
    const learned = parts.built.map(({ discovery }) => discovery?.learned().rows)
    if (content === undefined || learned.some((rows, position) => rows !== known[position])) {
      const { publicUrl, version } = parts
      content = Buffer.from(
        JSON.stringify(openApiDocument({ publicUrl, version, services: describedServices(parts) })),
      )
      known = learned
    }
    return content
  }
}

/** Implements the admin side with the parts that serve requests: learned rows included. */
export const createOperator = (parts: OperatorParts): GenerationOperator => {
  const { cache, config, publicUrl, built } = parts
  const services = askedServices(parts)
  const targets = createPublicTargets(services, publicUrl)
  const serviceNamed = new Map(built.map(({ service }) => [service.name, service]))
  const stored = async (url: string, host: string | undefined): Promise<number> => {
    const found = targets(url, host)
    if (found.kind !== 'found') return 0
    const canonical = canonicalTarget(found)
    if (canonical.kind !== 'target') return 0
    const selector = selectorOf(found, canonical.target)
    const count = await cache.purge({ selector, mode: 'hard', dryRun: true })
    return count === 'unheard' ? 0 : count
  }
  return {
    purge: (request) => purgeCache({ services, targets, cache }, request),
    entries: async ({ sort, limit }: EntriesQuery) =>
      (await cache.entries(orders[sort], limit)).map((entry) => shownEntry(entry, serviceNamed)),
    explain: async ({ method, url, fields }) => ({
      ...(await explainAt(targets, { method, target: url, fields })),
      'stored responses': await stored(url, requestField(fields, 'host')),
    }),
    drift: () => ({
      services: built.flatMap(({ service: { name }, discovery }) =>
        discovery === undefined ? [] : [{ service: name, differences: discovery.drift() }],
      ),
    }),
    config: () => shownConfig(config),
    openApi: openApiContent(parts),
  }
}
