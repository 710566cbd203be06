import type { Clock } from '../clock.ts'
import type {
  LimitsConfig,
  OpenApiConfig,
  PlantsConfig,
  ServiceConfig,
  SiteConfig,
} from '../config/config.ts'
import type { Received } from '../exchange/exchange.ts'
import type { IdempotencyStore, KeptAnswer } from '../exchange/ports.ts'
import type { LocalRequest, Service } from '../exchange/service.ts'
import { addressGroup, type ByteBudget, createFairTurns, type Reservation } from '../http/bounds.ts'
import { type Answer, type GatewayResponse, requestField } from '../http/message.ts'
import { batchPath } from '../openapi/document/operation.ts'
import { withOwnBatch } from '../service/batch-row.ts'
import type { Contract } from '../service/contract.ts'
import type { Endpoint, Row } from '../service/row.ts'
import { callerFields, interfaceFields } from '../wordpress/answers.ts'
import { createSiteValidator } from '../wordpress/arguments/site-validator.ts'
import { siteRows } from '../wordpress/routes/route-table.ts'
import { type BatchRequest, createBatch } from './batch.ts'
import { admitItem, type BatchEnvelope } from './envelope.ts'
import type { BatchEvent } from './events.ts'
import { answeredOnce, createMemoryIdempotencyStore } from './idempotency.ts'
import { type Dialect, shapedError } from './item.ts'
import { createSemaphore } from './send/run-items.ts'
import { fieldsWithCredentials, runChunk, runItem, sendAlone } from './send/send-item.ts'
import { Splitter } from './split.ts'

const withAnyBody = (endpoint: Endpoint): Endpoint => {
  const requests = endpoint.arguments['requests'] ?? {}
  const { items = {} } = requests
  const properties = { ...items.properties, body: {} }
  return {
    ...endpoint,
    arguments: { ...endpoint.arguments, requests: { ...requests, items: { ...items, properties } } },
  }
}

const dialects: Readonly<Record<'site' | 'plants' | 'openapi', Dialect>> = {
  site: 'wordpress',
  plants: 'plants',
  openapi: 'general',
}

/** The batch route of a service with a document: that of sites, with any JSON as body. */
const documentBatchRow = (items: number, { urlBytes }: LimitsConfig): Row | undefined => {
  const rows = siteRows
    .filter(({ kind }) => kind === 'batch')
    .map((row) => ({
      ...row,
      template: batchPath,
      pattern: batchPath,
      endpoints: row.endpoints.map(withAnyBody),
    }))
  return withOwnBatch(rows, { items, pathCharacters: urlBytes })[0]
}

/** The contract of a document with the batch route, where the service has one. */
export const withBatch = (
  { batch }: OpenApiConfig | PlantsConfig,
  limits: LimitsConfig,
  contract: Contract,
): Contract => {
  const row = batch && documentBatchRow(batch.maxItems, limits)
  const [endpoint] = row?.endpoints ?? []
  if (row === undefined || endpoint === undefined) return contract
  const envelopes = createSiteValidator({ limits, unknownParameters: 'strip', trackingParameters: [] })
  return {
    ...contract,
    rows: [...contract.rows, row],
    find: (method, path) => {
      if (path !== batchPath) return contract.find(method, path)
      return method === 'POST'
        ? { kind: 'found', row, endpoint, pathParameters: {}, path }
        : { kind: 'wrong-method', row, path }
    },
    validator: {
      validate: (input) => {
        if (input.row !== row) return contract.validator.validate(input)
        const checked = envelopes.validate(input)
        if (checked.kind === 'valid') return checked
        const { status, body } = shapedError(dialects[contract.name as keyof typeof dialects], {
          ...checked,
          fields: [],
        })
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
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  readonly budget: ByteBudget
  run(exchange: Received): Answer
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

/** What all batches of a service share: how they are split, their concurrency, and the known keys. */
const sharedByBatches = (
  batch: SiteConfig['batch'],
  upstream: ServiceConfig['upstream'],
  { clock, stores }: BatchParts,
) => {
  const splitter = new Splitter({
    mode: batch.split,
    concurrency: batch.concurrency,
    mostItems: upstreamMaxItems,
    // The head of its response is sent when all its items have run.
    mostChunkMs: upstream.timeouts.headersMs / 2,
    clock,
  })
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
    semaphore: createSemaphore(concurrency, concurrencyOfClient),
  }
}

/** Answers the batch route of a service, if it has one. */
export const buildBatch = (config: ServiceConfig, options: BatchParts): Service['batch'] => {
  if (config.contract === 'open' || config.batch === undefined) return undefined
  const settings = config.contract === 'site' ? config.batch : { ...config.batch, split: 'item' as const }
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
      ...(dialect === 'wordpress' ? interfaceFields(exchange.service.publicRoot) : []),
      ...['X-Content-Type-Options', 'nosniff', 'Allow', 'POST'],
      ...(dialect === 'wordpress' ? callerFields(exchange.request.fields) : ['Cache-Control', 'no-store']),
      ...(Buffer.isBuffer(content) ? ['Content-Length', String(content.length)] : []),
    ],
    content,
  })

  const batch = createBatch({
    ...shared,
    dialect,
    concurrency: settings.concurrency,
    deadlineMs: settings.deadlineMs,
    clock,
    report: options.report,
  })

  const requestOf = (exchange: LocalRequest, signal: AbortSignal, reservation: Reservation): BatchRequest => {
    const deadlineMs = clock.monotonic() + settings.deadlineMs
    const outgoing = {
      run: options.run,
      clock,
      batch: exchange,
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
      admit: (item) =>
        admitItem(exchange, item, {
          reaches: options.reaches,
          fieldsOf: (one) => fieldsWithCredentials(exchange, one, keyFields),
        }),
      sender: {
        flow: addressGroup(exchange.client.address),
        dispatch: (item, itemSignal, stop) => runItem(outgoing, item, itemSignal, sendAlone(outgoing, stop)),
        dispatchChunk: (items, stop, watch) => runChunk(outgoing, items, stop, watch),
      },
    }
  }

  const inOne = async (exchange: LocalRequest, signal: AbortSignal): Promise<KeptAnswer> => {
    const reservation = options.budget('batch-item', exchange.client.address)
    try {
      const { status, content } = await batch(requestOf(exchange, signal, reservation))
      return { status, content, contentType: json }
    } finally {
      reservation.release()
    }
  }

  return async (exchange) => {
    const key = requestField(exchange.request.fields, 'idempotency-key')
    const answer = await answeredOnce(shared.store, exchange, caller, key, (watched) =>
      inOne(exchange, watched),
    )
    return response(exchange, answer, answer.content)
  }
}
