import { PassThrough } from 'node:stream'
import type { Clock } from '../clock.ts'
import type {
  LimitsConfig,
  OpenApiConfig,
  PlantsConfig,
  ServiceConfig,
  SiteConfig,
} from '../config/config.ts'
import { batchPath } from '../contracts/openapi/operation.ts'
import type { ArgumentSchema, Endpoint, Row } from '../contracts/row.ts'
import { extendedBatch } from '../contracts/site/batch-extensions.ts'
import { siteRows } from '../contracts/site/route-table.ts'
import type { ValidationInput } from '../contracts/validation.ts'
import { addressGroup, type ByteBudget, createFairTurns, type Reservation } from '../http/bounds.ts'
import { parsedJson } from '../http/json-text.ts'
import { rememberedFor } from '../http/memo.ts'
import { type Answer, type GatewayResponse, requestField } from '../http/message.ts'
import { callerFields, wordpressFields } from '../pipeline/error-answer.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { IdempotencyStore, KeptAnswer } from '../pipeline/ports.ts'
import type { LocalRequest, Service } from '../pipeline/service.ts'
import type { OpenApiRequests } from '../request/openapi-requests.ts'
import { createSiteValidator } from '../request/site-validator.ts'
import { type BatchRequest, createBatch, type WriteLine } from './batch.ts'
import { admitItem, type BatchEnvelope } from './envelope.ts'
import type { BatchEvent } from './events.ts'
import { type ExtensionsMode, isExtended } from './extensions.ts'
import { answeredOnce, createMemoryIdempotencyStore } from './idempotency.ts'
import { type Dialect, shapedError } from './item.ts'
import { createSemaphore } from './send/run-items.ts'
import { fieldsWithCredentials, runChunk, runItem, sendAlone } from './send/send-item.ts'
import { createSplitter, type SplitMemory } from './splitter.ts'

/** Parses the content again only when it contains the word. */
const asks = (mode: ExtensionsMode, content: Buffer | undefined): boolean => {
  if (mode !== 'on-request') return mode === 'on'
  if (content === undefined || !content.includes('"extensions"')) return false
  return isExtended(mode, parsedJson(content.toString()))
}

const extended = rememberedFor(extendedBatch)

/** A batch with extensions is checked by their rules, every other batch as WordPress does. */
export const batchEndpoint =
  (mode: ExtensionsMode) =>
  ({ endpoint, content }: ValidationInput): Endpoint =>
    asks(mode, content) ? extended(endpoint) : endpoint

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

type BatchParts = {
  /** Where instances share one. */
  readonly stores:
    | { idempotencyKeys(options: { readonly ttlMs: number; readonly maxBytes: number }): IdempotencyStore }
    | undefined
  /** Measurements of the upstream, from batches under this configuration and under those before it. */
  readonly splitMemory: SplitMemory
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  readonly budget: ByteBudget
  run(exchange: Received): Answer
  /** Another service of this gateway, by the configuration in force. */
  serviceNamed(name: string): Service | undefined
  /** Does a request for this public target reach the service, and not one that is mounted below it? */
  reaches(service: Service, target: string): boolean
}

const isJson = (exchange: LocalRequest): exchange is LocalRequest & { readonly content: Buffer } =>
  Buffer.isBuffer(exchange.content) &&
  !(requestField(exchange.request.fields, 'content-type') ?? '').toLowerCase().includes('urlencoded')

/** As WordPress has it; an upstream with a lower one refuses, and the items go one by one. */
const upstreamMaxItems = 25

/** Batches take at most this share of the upstream's concurrency; the rest is left to single requests. */
const batchShare = 0.75

const json = 'application/json; charset=UTF-8'
const jsonLines = 'application/x-ndjson'

/** What all batches of a service share: how they are split, their concurrency, and the known keys. */
const sharedByBatches = (
  batch: SiteConfig['batch'],
  upstream: ServiceConfig['upstream'],
  { clock, splitMemory, stores }: BatchParts,
) => {
  const splitting = {
    mode: batch.split,
    concurrency: batch.concurrency,
    mostItems: upstreamMaxItems,
    // The head of its response is sent when all its items have run.
    mostChunkMs: upstream.timeouts.headersMs / 2,
    clock,
  }
  const splitter = createSplitter(splitting, splitMemory)
  // Reading and answering a batch takes some milliseconds: other requests are served between two of them.
  const turns = createFairTurns(1)
  const concurrency = Math.floor(upstream.maxConcurrent * batchShare)
  const concurrencyOfClient = Math.floor(upstream.maxConcurrent * upstream.clientShare * batchShare)
  return {
    splitter,
    turn: () => new Promise<void>((resolve) => turns.begin('', resolve)),
    store:
      stores?.idempotencyKeys(batch.idempotency) ??
      createMemoryIdempotencyStore({ ...batch.idempotency, clock }),
    semaphores: {
      items: createSemaphore(() => concurrency, concurrencyOfClient),
      chunks: createSemaphore(() => Math.min(concurrency, splitter.mostChunksAtOnce()), concurrencyOfClient),
    },
  }
}

const wantsLines = ({ request }: LocalRequest): boolean =>
  (requestField(request.fields, 'accept') ?? '')
    .split(',')
    .some((one) => one.split(';')[0]?.trim().toLowerCase() === jsonLines)

/** While the client does not read, all lines wait for the same moment: one listener, however many are written. */
const writesTo = (content: PassThrough): WriteLine => {
  let drained: Promise<void> | undefined
  return (line) => {
    if (content.write(line)) return undefined
    drained ??= new Promise((resolve) => {
      content.once('drain', () => {
        drained = undefined
        resolve()
      })
    })
    return drained
  }
}

/** Answers the batch route of a service, if it has one. That of a service with a document has all extensions. */
export const buildBatch = (config: ServiceConfig, options: BatchParts): Service['batch'] => {
  if (config.contract === 'open' || config.batch === undefined) return undefined
  const settings =
    config.contract === 'site'
      ? config.batch
      : { ...config.batch, split: 'item' as const, extensions: 'on' as const }
  const dialect = dialects[config.contract]
  /** Header fields (lower case) that carry API keys: items have those of the batch. */
  const keyFields = config.contract === 'openapi' ? config.document.contract.keyHeaders : []
  const caller = { keyFields, harmlessCookies: config.cache.harmlessCookies ?? [] }
  const { clock } = options
  const shared = sharedByBatches(settings, config.upstream, options)

  const response = (
    exchange: LocalRequest,
    { status, contentType }: Pick<KeptAnswer, 'status' | 'contentType'>,
    content: GatewayResponse['content'],
  ): GatewayResponse => ({
    status,
    fields: [
      ...['Content-Type', contentType],
      ...(dialect === 'wordpress' ? wordpressFields(exchange.service.publicRoot) : []),
      ...['X-Content-Type-Options', 'nosniff', 'Allow', 'POST'],
      ...(dialect === 'wordpress' ? callerFields(exchange.request.fields) : ['Cache-Control', 'no-store']),
      ...(Buffer.isBuffer(content) ? ['Content-Length', String(content.length)] : []),
    ],
    content,
  })

  const batch = createBatch({
    ...shared,
    dialect,
    extensions: settings.extensions,
    services: settings.services,
    bodyCharacters: config.limits.bodyBytes,
    concurrency: settings.concurrency,
    deadlineMs: settings.deadlineMs,
    clock,
    report: options.report,
  })

  const requestOf = (exchange: LocalRequest, signal: AbortSignal, reservation: Reservation): BatchRequest => {
    const deadlineMs = clock.monotonic() + settings.deadlineMs
    const serviceOf = (name: string | undefined): Service | undefined =>
      name === undefined ? exchange.service : options.serviceNamed(name)
    const outgoing = {
      run: options.run,
      clock,
      batch: exchange,
      serviceOf,
      keyFields,
      turn: shared.turn,
      held: { bytes: 0, mostBytes: settings.answerBytes },
      reservation,
      leftMs: () =>
        settings.deadlineMs === 0 ? undefined : Math.max(1, Math.ceil(deadlineMs - clock.monotonic())),
    }
    return {
      // The row has checked it.
      envelope: exchange.arguments as BatchEnvelope,
      // Integers beyond 2^53 survive in the text that the items are cut out of; a form has none.
      text: isJson(exchange) ? exchange.content.toString() : undefined,
      signal,
      admit: (item, mayRead) =>
        admitItem(exchange, item, {
          mayRead,
          service: serviceOf(item.service),
          reaches: options.reaches,
          fieldsOf: (one) => fieldsWithCredentials(exchange, one, keyFields),
        }),
      sender: {
        flow: addressGroup(exchange.client.address),
        dispatch: (item, itemSignal, stop) =>
          runItem(outgoing, item, itemSignal, sendAlone(outgoing, stop, item.service)),
        dispatchChunk: (items, stop, watch) => runChunk(outgoing, items, stop, watch),
      },
    }
  }

  const reservationFor = (exchange: LocalRequest): Reservation =>
    options.budget('batch-item', exchange.client.address)

  const inOne = async (exchange: LocalRequest, signal: AbortSignal): Promise<KeptAnswer> => {
    const reservation = reservationFor(exchange)
    try {
      const begun = await batch.begin(requestOf(exchange, signal, reservation))
      const { status, content } = begun.kind === 'answered' ? begun : await begun.whole()
      return { status, content, contentType: json }
    } finally {
      reservation.release()
    }
  }

  const inLines = async (exchange: LocalRequest): Promise<GatewayResponse> => {
    const reservation = reservationFor(exchange)
    const begun = await batch.begin(requestOf(exchange, exchange.request.signal, reservation))
    if (begun.kind === 'answered')
      return response(exchange, { status: begun.status, contentType: json }, begun.content)
    const content = new PassThrough()
    void begun
      .lines(writesTo(content))
      .finally(reservation.release)
      .then(
        () => content.end(),
        (thrown: Error) => content.destroy(thrown),
      )
    return response(exchange, { status: 207, contentType: jsonLines }, content)
  }

  return async (exchange) => {
    const mayExtend = settings.extensions !== 'off'
    const key = mayExtend ? requestField(exchange.request.fields, 'idempotency-key') : undefined
    if (mayExtend && key === undefined && wantsLines(exchange)) return inLines(exchange)
    const answer = await answeredOnce(shared.store, exchange, caller, key, (watched) =>
      inOne(exchange, watched),
    )
    return response(exchange, answer, answer.content)
  }
}
