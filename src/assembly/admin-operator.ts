import type { EntriesQuery } from '../admin/operator.ts'
import type { CacheEntry } from '../cache/entries.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import { redactedConfig } from '../config/redacted-config.ts'
import type { Row } from '../contracts/row.ts'
import { extendedBatch } from '../contracts/site/batch-extensions.ts'
import { openApiDocument } from '../openapi/document.ts'
import type { DescribedService } from '../openapi/operations.ts'
import { purgeCache } from './admin-purge.ts'
import { type AskedService, canonicalTarget, publicTarget } from './admin-target.ts'
import type { BuiltService } from './build-service.ts'
import type { GenerationOperator } from './current-operator.ts'
import { explainAt } from './explain.ts'
import type { OperatorCache } from './operator-cache.ts'

export type OperatorParts = {
  readonly config: Config
  /** As clients see it, with the port that was really taken. */
  readonly publicUrl: string
  readonly version: string
  readonly cache: OperatorCache
  /** In the order of the configuration. */
  readonly built: readonly BuiltService[]
}

const askedServices = ({ config, built }: OperatorParts): readonly AskedService[] =>
  built.flatMap(({ contract }, position) => {
    const service = config.services[position]
    return service === undefined ? [] : [{ config: service, contract }]
  })

/** The table's rows and those that the upstream announced. */
const describedServices = ({ built }: OperatorParts): readonly DescribedService[] =>
  built.map(({ config, service: { name, contract, mount }, contract: { rows }, discovery }) => ({
    name,
    contract,
    mount,
    rows: [...withExtensions(config, rows), ...(discovery?.learned().rows ?? [])],
  }))

/** The discovery document describes the batch as WordPress has it; this one is about the gateway. */
const withExtensions = (config: ServiceConfig, rows: readonly Row[]): readonly Row[] =>
  config.contract === 'site' && config.batch.extensions !== 'off'
    ? rows.map((row) =>
        row.kind === 'batch' ? { ...row, endpoints: row.endpoints.map(extendedBatch) } : row,
      )
    : rows

const orders = { size: 'bytes', hits: 'hits', age: 'age' } as const

/** Under its public path. What belongs to a credential shows neither what was asked for nor what it holds. */
const shownEntry = (entry: CacheEntry, mountOf: ReadonlyMap<string, string>): unknown => {
  const { target, tags, ...facts } = entry
  const path = `${mountOf.get(entry.service) ?? ''}${target}`
  return entry.partition === 'public'
    ? { ...facts, url: path, tags }
    : { ...facts, url: path.split('?', 1)[0] ?? '', tags: [] }
}

/** Makes the document again only when an upstream has announced other routes than before. */
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

/** What the admin side shows and does, by the rooms that serve requests: learned rows included. */
export const createOperator = (parts: OperatorParts): GenerationOperator => {
  const { cache, config, publicUrl, built } = parts
  const services = askedServices(parts)
  const mountOf = new Map(built.map(({ service }) => [service.name, service.mount]))
  const stored = async (url: string): Promise<number> => {
    const found = publicTarget(services, publicUrl, url)
    const canonical = found === undefined ? undefined : canonicalTarget(found)
    if (found === undefined || canonical?.kind !== 'target') return 0
    const selector = { kind: 'target', service: found.service.config.name, target: canonical.target } as const
    const count = await cache.purge({ selector, mode: 'hard', dryRun: true })
    return count === 'unheard' ? 0 : count
  }
  return {
    purge: (request) => purgeCache({ services, publicUrl, cache }, request),
    entries: async ({ sort, limit }: EntriesQuery) =>
      (await cache.entries(orders[sort], limit)).map((entry) => shownEntry(entry, mountOf)),
    explain: async ({ method, url, fields }) => ({
      ...explainAt(services, publicUrl, { method, target: url, fields }),
      'stored responses': await stored(url),
    }),
    drift: () => ({
      services: built.flatMap(({ service: { name }, discovery }) =>
        discovery === undefined ? [] : [{ service: name, differences: discovery.drift() }],
      ),
    }),
    config: () => redactedConfig(config),
    openApi: openApiContent(parts),
  }
}
