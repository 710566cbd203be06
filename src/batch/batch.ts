import type { Clock } from '../clock.ts'
import type { ServiceConfig, SiteConfig } from '../config/config.ts'
import type { IdempotencyStore, ReplayedResponse } from '../exchange/ports.ts'
import type { HandleBatch, HandleRequest, LocalRequest } from '../exchange/request-context.ts'
import type { ByteBudget, Reservation } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { createFairTurns } from '../http/bounds/fair-turns.ts'
import { requestHeader } from '../http/headers/header-lines.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { Contract } from '../service/contract.ts'
import { checkItem } from './check-item.ts'
import type { BatchEnvelope } from './envelope/read-envelope.ts'
import type { BatchEvent } from './events.ts'
import { createKeysInMemory, type KeysInMemory, respondOnce } from './idempotency.ts'
import { Splitter } from './order/split.ts'
import { type BatchRequest, createBatch } from './run-batch.ts'
import { createSemaphore } from './send/semaphore.ts'
import { forwardAlone, handleItem, headersWithCredentials } from './send/send-item.ts'
import { handleTogether } from './send/send-together.ts'

type BatchParts = {
  readonly stores:
    | { idempotencyKeys(options: { readonly ttlMs: number; readonly maxBytes: number }): IdempotencyStore }
    | undefined
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  readonly budget: ByteBudget
  /** Of the service under the configuration before: a batch that is repeated after a reload runs nothing again. */
  readonly keysInMemory: KeysInMemory | undefined
}

export type BuiltBatch = { readonly handle: HandleBatch; readonly keysInMemory: KeysInMemory }

const isJson = (context: LocalRequest): context is LocalRequest & { readonly content: Buffer } =>
  Buffer.isBuffer(context.content) &&
  !(requestHeader(context.request.headers, 'content-type') ?? '').toLowerCase().includes('urlencoded')

/** Of the batch of a site; an upstream with a lower one refuses, and the items go one by one. */
const upstreamMaxItems = 25

/** Batches take at most this share of the upstream's concurrency; the rest is left to single requests. */
const batchShare = 0.75

const json = 'application/json; charset=UTF-8'

/** An upstream batch responds when all its items have run: within the deadline of the batch, and before the timeout of the upstream. */
const maxUpstreamBatchMs = (...timeouts: readonly number[]): number => {
  const bounds = timeouts.filter((ms) => ms > 0)
  return bounds.length === 0 ? 0 : Math.min(...bounds) / 2
}

/** What all batches of a service share: how they are split, their concurrency, and the known keys. */
const sharedByBatches = (
  batch: SiteConfig['batch'],
  upstream: ServiceConfig['upstream'],
  { clock, stores, keysInMemory = createKeysInMemory(clock) }: BatchParts,
) => {
  const splitter = new Splitter({
    mode: batch.split,
    concurrency: batch.concurrency,
    maxItems: upstreamMaxItems,
    maxUpstreamBatchMs: maxUpstreamBatchMs(batch.deadlineMs, upstream.timeouts.headersMs),
    clock,
  })
  // Reading and answering a batch takes some milliseconds: other requests are served between two of them.
  const turns = createFairTurns(1)
  const concurrency = Math.floor(upstream.maxConcurrent * batchShare)
  const concurrencyOfClient = Math.floor(upstream.maxConcurrent * upstream.clientShare * batchShare)
  return {
    splitter,
    turn: () => new Promise<void>((resolve) => turns.begin('', resolve)),
    keysInMemory,
    store: stores?.idempotencyKeys(batch.idempotency) ?? keysInMemory.under(batch.idempotency),
    semaphore: createSemaphore(concurrency, concurrencyOfClient),
  }
}

/** What handles the batch route of a service, if it has one. */
export const buildBatch = (
  config: ServiceConfig,
  { errors, items, keyHeaders }: Contract,
  options: BatchParts,
): BuiltBatch | undefined => {
  const configured = 'batch' in config ? config.batch : undefined
  if (configured === undefined) return undefined
  const settings = { split: 'item' as const, ...configured }
  const { clock } = options
  const shared = sharedByBatches(settings, config.upstream, options)

  const response = (
    context: LocalRequest,
    { status, contentType }: Pick<ReplayedResponse, 'status' | 'contentType'>,
    content: GatewayResponse['content'],
  ): GatewayResponse => ({
    status,
    headers: [
      ...['Content-Type', contentType],
      ...errors.headers(context.service.address.publicRoot),
      ...['X-Content-Type-Options', 'nosniff', 'Allow', 'POST'],
      ...errors.batchHeaders(context.request.headers),
      ...(Buffer.isBuffer(content) ? ['Content-Length', String(content.length)] : []),
    ],
    content,
  })

  const batch = createBatch({
    ...shared,
    itemRules: items,
    errors,
    concurrency: settings.concurrency,
    deadlineMs: settings.deadlineMs,
    clock,
    report: options.report,
  })

  const requestOf = (
    context: LocalRequest,
    handle: HandleRequest,
    signal: AbortSignal,
    reservation: Reservation,
  ): BatchRequest => {
    const deadlineMs = clock.monotonic() + settings.deadlineMs
    const outgoing = {
      handle,
      clock,
      batch: context,
      keyHeaders,
      turn: shared.turn,
      bufferedContents: { bytes: 0, maxBytes: settings.answerBytes },
      reservation,
      leftMs: () =>
        settings.deadlineMs === 0 ? undefined : Math.max(1, Math.ceil(deadlineMs - clock.monotonic())),
    }
    return {
      // The row has checked it.
      envelope: context.arguments as BatchEnvelope,
      // Integers beyond 2^53 survive in the text that the items are cut out of; a form has none.
      text: isJson(context) ? context.content.toString() : undefined,
      signal,
      check: (item) =>
        checkItem(context, item, (batchItem) => headersWithCredentials(context, batchItem, keyHeaders)),
      sender: {
        flow: addressGroup(context.client.address),
        handleItem: (item, itemSignal, stop) =>
          handleItem(outgoing, item, itemSignal, forwardAlone(outgoing, stop)),
        handleTogether: (items, stop, watch) => handleTogether(outgoing, items, stop, watch),
      },
    }
  }

  const inOne = async (
    context: LocalRequest,
    handle: HandleRequest,
    signal: AbortSignal,
  ): Promise<ReplayedResponse> => {
    const reservation = options.budget('batch-item', context.client.address)
    try {
      const { status, content } = await batch(requestOf(context, handle, signal, reservation))
      return { status, content, contentType: json }
    } finally {
      reservation.release()
    }
  }

  return {
    keysInMemory: shared.keysInMemory,
    handle: async (context, handle) => {
      const key = requestHeader(context.request.headers, 'idempotency-key')
      const reply = await respondOnce(shared.store, context, keyHeaders, key, (watched) =>
        inOne(context, handle, watched),
      )
      return response(context, reply, reply.content)
    },
  }
}
