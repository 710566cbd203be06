import type { Clock } from '../clock.ts'
import type { ServiceConfig, SiteConfig } from '../config/config.ts'
import type { Received } from '../exchange/exchange.ts'
import type { IdempotencyStore, KeptAnswer } from '../exchange/ports.ts'
import type { LocalRequest, Service } from '../exchange/service.ts'
import { addressGroup, type ByteBudget, createFairTurns, type Reservation } from '../http/bounds.ts'
import { type GatewayResponse, requestField } from '../http/message.ts'
import type { Contract } from '../service/contract.ts'
import { type BatchRequest, createBatch } from './batch.ts'
import { admitItem, type BatchEnvelope } from './envelope.ts'
import type { BatchEvent } from './events.ts'
import { answeredOnce, createMemoryIdempotencyStore } from './idempotency.ts'
import { createSemaphore } from './send/run-items.ts'
import { fieldsWithCredentials, runChunk, runItem, sendAlone } from './send/send-item.ts'
import { Splitter } from './split.ts'

type BatchParts = {
  /** Where instances share one. */
  readonly stores:
    | { idempotencyKeys(options: { readonly ttlMs: number; readonly maxBytes: number }): IdempotencyStore }
    | undefined
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  readonly budget: ByteBudget
  run(exchange: Received): Promise<GatewayResponse>
  /** Does a request for this public target reach the service, and not one that is mounted below it? */
  reaches(service: Service, target: string): boolean
}

const isJson = (exchange: LocalRequest): exchange is LocalRequest & { readonly content: Buffer } =>
  Buffer.isBuffer(exchange.content) &&
  !(requestField(exchange.request.fields, 'content-type') ?? '').toLowerCase().includes('urlencoded')

/** Of the batch of a site; an upstream with a lower one refuses, and the items go one by one. */
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
export const buildBatch = (
  config: ServiceConfig,
  { errors, items, keyFields }: Contract,
  options: BatchParts,
): Service['batch'] => {
  const configured = 'batch' in config ? config.batch : undefined
  if (configured === undefined) return undefined
  const settings = { split: 'item' as const, ...configured }
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
      ...errors.fields(exchange.service.publicRoot),
      ...['X-Content-Type-Options', 'nosniff', 'Allow', 'POST'],
      ...errors.batchFields(exchange.request.fields),
      ...(Buffer.isBuffer(content) ? ['Content-Length', String(content.length)] : []),
    ],
    content,
  })

  const batch = createBatch({
    ...shared,
    reading: items,
    errors,
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
