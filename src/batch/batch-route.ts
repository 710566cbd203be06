import type { LimitsConfig, OpenApiConfig, PlantsConfig, ServiceConfig } from '../config/config.ts'
import { batchPath } from '../contracts/openapi/operation.ts'
import type { ArgumentSchema, Endpoint, Row } from '../contracts/row.ts'
import { extendedBatch } from '../contracts/site/batch-extensions.ts'
import { siteRows } from '../contracts/site/route-table.ts'
import type { Validator } from '../contracts/validation.ts'
import { parsedJson } from '../http/json-text.ts'
import type { IdempotencyStore } from '../pipeline/ports.ts'
import type { Service } from '../pipeline/service.ts'
import type { OpenApiRequests } from '../request/openapi-requests.ts'
import { createSiteValidator } from '../request/site-validator.ts'
import { type BatchAnswersOptions, batchAnswers } from './batch-answers.ts'
import { type ExtensionsMode, isExtended } from './extensions.ts'
import { type Dialect, shapedError } from './item.ts'

/** Parses the content again only when it contains the word. */
const asks = (mode: ExtensionsMode, content: Buffer | undefined): boolean => {
  if (mode !== 'on-request') return mode === 'on'
  if (content === undefined || !content.includes('"extensions"')) return false
  return isExtended(mode, parsedJson(content.toString()))
}

/** Checks a batch with extensions by their rules, and every other batch as WordPress does. */
export const withBatchExtensions = (validator: Validator, mode: ExtensionsMode): Validator => {
  const extended = new WeakMap<Endpoint, Endpoint>()
  const extendedOf = (endpoint: Endpoint): Endpoint => {
    const known = extended.get(endpoint) ?? extendedBatch(endpoint)
    extended.set(endpoint, known)
    return known
  }
  return {
    validate: (input) =>
      input.row.kind === 'batch' && asks(mode, input.content)
        ? validator.validate({ ...input, endpoint: extendedOf(input.endpoint) })
        : validator.validate(input),
  }
}

/** Limits of one batch, beside those of all content. */
type BatchBounds = {
  readonly items: number
  /** Of an item's path with its query, as of the target of a separate request. */
  readonly pathCharacters: number
}

/** Of an item, and of its headers: more than servers take in one request (Apache has 100). */
const mostMembers = 100

const boundedItem = (item: ArgumentSchema, pathCharacters: number): ArgumentSchema => {
  const { properties = {} } = item
  return {
    ...item,
    maxProperties: mostMembers,
    properties: {
      ...properties,
      path: { ...properties['path'], maxLength: pathCharacters },
      headers: { ...properties['headers'], maxProperties: mostMembers },
    },
  }
}

/** The discovery document announces the bounds of the batch route; larger batches are refused before they are parsed. */
export const withBatchBounds = (
  rows: readonly Row[],
  { items: maxItems, pathCharacters }: BatchBounds,
): readonly Row[] => {
  const bounded = (requests: ArgumentSchema): ArgumentSchema => ({
    ...requests,
    maxItems,
    items: boundedItem(requests.items ?? {}, pathCharacters),
  })
  return rows.map((row) =>
    row.kind !== 'batch'
      ? row
      : {
          ...row,
          endpoints: row.endpoints.map((endpoint) => ({
            ...endpoint,
            arguments: {
              ...endpoint.arguments,
              requests: bounded(endpoint.arguments['requests'] ?? {}),
            },
          })),
        },
  )
}

/** A body may be any JSON. */
const withAnyBody = (endpoint: Endpoint): Endpoint => {
  const requests = endpoint.arguments['requests'] ?? {}
  const { items = {} } = requests
  const properties = { ...items.properties, body: {} }
  return {
    ...endpoint,
    arguments: { ...endpoint.arguments, requests: { ...requests, items: { ...items, properties } } },
  }
}

const ownRows = new WeakMap<ServiceConfig, readonly Row[]>()

const dialects: Readonly<Record<'site' | 'plants' | 'openapi', Dialect>> = {
  site: 'wordpress',
  plants: 'plants',
  openapi: 'general',
}

/** The batch route of a service with a document: that of sites, with all extensions. */
export const batchRows = (service: ServiceConfig, { urlBytes }: LimitsConfig): readonly Row[] => {
  if (service.contract === 'site' || service.contract === 'open' || service.batch === undefined) return []
  const known = ownRows.get(service)
  if (known !== undefined) return known
  const rows = siteRows
    .filter(({ kind }) => kind === 'batch')
    .map((row) => ({
      ...row,
      template: batchPath,
      pattern: batchPath,
      endpoints: row.endpoints.map((endpoint) => withAnyBody(extendedBatch(endpoint))),
    }))
  const bounded = withBatchBounds(rows, { items: service.batch.maxItems, pathCharacters: urlBytes })
  ownRows.set(service, bounded)
  return bounded
}

/** Routes and validation of a document, and of the batch route where the service has one. */
export const batchRequests = (
  service: OpenApiConfig | PlantsConfig,
  limits: LimitsConfig,
  requests: OpenApiRequests,
): OpenApiRequests => {
  const [row] = batchRows(service, limits)
  const [endpoint] = row?.endpoints ?? []
  if (row === undefined || endpoint === undefined) return requests
  const envelopes = createSiteValidator({ limits, unknownParameters: 'strip', trackingParameters: [] })
  return {
    find: (method, path) => {
      if (path !== batchPath) return requests.find(method, path)
      return method === 'POST'
        ? { kind: 'found', row, endpoint, pathParameters: {}, path }
        : { kind: 'wrong-method', row, path }
    },
    validator: {
      validate: (input) => {
        if (input.row !== row) return requests.validator.validate(input)
        const checked = envelopes.validate(input)
        if (checked.kind === 'valid') return checked
        const { status, body } = shapedError(dialects[service.contract], { ...checked, fields: [] })
        return { ...checked, status, body }
      },
    },
  }
}

type BatchParts = Omit<
  BatchAnswersOptions,
  'config' | 'dialect' | 'keyFields' | 'idempotencyKeys' | 'bodyBytes'
> & {
  /** Where instances share one. */
  readonly stores:
    | { idempotencyKeys(options: { readonly ttlMs: number; readonly maxBytes: number }): IdempotencyStore }
    | undefined
}

/** Answers the batch route of a service, if it has one. That of a service with a document has all extensions. */
export const buildBatch = (config: ServiceConfig, { stores, ...parts }: BatchParts): Service['batch'] => {
  if (config.contract === 'open' || config.batch === undefined) return undefined
  const isSite = config.contract === 'site'
  const batch = isSite ? config.batch : { ...config.batch, split: 'item' as const, extensions: 'on' as const }
  return batchAnswers({
    ...parts,
    config: { batch, upstream: config.upstream },
    dialect: dialects[config.contract],
    keyFields: config.contract === 'openapi' ? config.document.contract.keyHeaders : [],
    idempotencyKeys: stores?.idempotencyKeys(batch.idempotency),
    bodyBytes: config.limits.bodyBytes,
  })
}
