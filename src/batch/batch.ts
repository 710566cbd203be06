import type { Clock } from '../clock.ts'
import type { ServiceConfig, SiteConfig } from '../config/config.ts'
import type { IdempotencyStore, ReplayedResponse } from '../exchange/ports.ts'
import type { HandleBatch, HandleRequest, LocalRequest } from '../exchange/request-context.ts'
import { inTurns, type Pieces } from '../http/bodies/turns.ts'
import type { ByteBudget, Reservation } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { createFairTurns } from '../http/bounds/fair-turns.ts'
import { requestHeader } from '../http/headers/header-lines.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { Contract, ErrorShape } from '../service/contract.ts'
import {
  type BatchEvent,
  type BatchItemOutcome,
  type BatchMethod,
  type BatchResult,
  batchMethods,
} from './events.ts'
import { createKeysInMemory, type KeysInMemory, respondOnce } from './idempotency.ts'
import {
  type BatchEnvelope,
  type BatchItem,
  checkItem,
  envelopeOf,
  type HandleItem,
  type ItemResponse,
  itemError,
  madePart,
  nullPart,
  type ResponsePart,
  responsePart,
  shapedError,
} from './item.ts'
import {
  type BatchInput,
  type PlannedBatch,
  type PlannedItem,
  type PlanOptions,
  planBatch,
} from './order/plan-batch.ts'
import type { Waits } from './order/plan-order.ts'
import type { ScheduleEnd, TaskEnd } from './order/run-schedule.ts'
import { Splitter } from './order/split.ts'
import { honouringRetryAfter } from './send/retry-after.ts'
import { createSemaphore, type ItemHandlers, type Made, type RunOptions, runItems } from './send/run-items.ts'
import { forwardAlone, handleItem, headersWithCredentials } from './send/send-item.ts'
import { handleTogether } from './send/send-together.ts'

const methodLabel = (method: string | undefined): BatchMethod =>
  batchMethods.find((batchMethod) => batchMethod === method) ?? '_OTHER'

const outcomeTable: Readonly<Record<TaskEnd<unknown>['kind'], BatchItemOutcome>> = {
  finished: 'answered',
  'not-begun': 'not-sent',
  unfinished: 'outcome-unknown',
}

/** The event of one item; `end` is undefined for one that was refused. */
const itemEvent = (
  item: { readonly method: string | undefined; readonly status: number },
  end: TaskEnd<unknown> | undefined,
  times: { readonly batchStartedMs: number; readonly nowMs: number },
): BatchEvent => {
  const startedMs = end === undefined || end.kind === 'not-begun' ? undefined : end.startedMs
  const endedMs = end?.kind === 'finished' ? end.endedMs : times.nowMs
  return {
    kind: 'batch-item-finished',
    method: methodLabel(item.method),
    outcome: end === undefined ? 'refused' : outcomeTable[end.kind],
    status: item.status,
    queuedSeconds: startedMs === undefined ? 0 : (startedMs - times.batchStartedMs) / 1000,
    durationSeconds: startedMs === undefined ? 0 : (endedMs - startedMs) / 1000,
  }
}

/** The event of a whole batch; without a schedule nothing ran. */
const batchEvent = (
  batch: { readonly result: BatchResult; readonly items: number; readonly durationMs: number },
  schedule?: {
    readonly end: ScheduleEnd<unknown>
    readonly waits: readonly (readonly number[] | undefined)[]
  },
): BatchEvent => {
  const spent = (schedule?.end.ends ?? []).map((end) =>
    end.kind === 'finished' ? end.endedMs - end.startedMs : 0,
  )
  return {
    kind: 'batch-finished',
    result: batch.result,
    items: batch.items,
    durationSeconds: batch.durationMs / 1000,
    itemSeconds: spent.reduce((sum, ms) => sum + ms, 0) / 1000,
    parallelism: schedule?.end.parallelism ?? 0,
    ordered: (schedule?.waits ?? []).filter((waits) => waits !== undefined && waits.length > 0).length,
  }
}

type StopReason = 'client-gone' | 'deadline'

/** Cancels the batch when its client disconnects, or at the deadline (0 = none). */
const cancelBatch = (client: AbortSignal, deadlineMs: number) => {
  const stop = new AbortController()
  let reason: StopReason | undefined
  const stopFor = (why: StopReason) => {
    reason ??= why
    stop.abort()
  }
  const gone = () => stopFor('client-gone')
  const timer = deadlineMs > 0 ? setTimeout(() => stopFor('deadline'), deadlineMs) : undefined
  client.addEventListener('abort', gone, { once: true })
  if (client.aborted) gone()
  return {
    signal: stop.signal,
    reason: () => reason,
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Equal reads after the same writes are sent once. */
const readKey = (item: BatchItem, waits: Waits): string =>
  JSON.stringify([item.method, item.path, item.query, item.headers, waits])

/** Identical reads of a batch are one request: the first that begins is sent, and all get its response. */
const collapseReads = (handleItem: HandleItem, waits: readonly Waits[]): HandleItem => {
  const begun = new Map<string, Promise<ItemResponse>>()
  return (item, signal, stop) => {
    if (item.effect === 'write' || item.content !== undefined) return handleItem(item, signal, stop)
    const key = readKey(item, waits[item.index])
    const pendingResponse = begun.get(key)
    if (pendingResponse !== undefined) return pendingResponse
    const response = handleItem(item, signal, stop)
    begun.set(key, response)
    return response
  }
}

/** Resolved settings of a service's batch route, and what its batches share. */
export type BatchOptions = RunOptions &
  PlanOptions & {
    /** For the whole batch; 0 = none. */
    readonly deadlineMs: number
    readonly errors: ErrorShape
  }

type ResponseOptions = Pick<BatchOptions, 'errors' | 'reading'>

export type BatchResponse = { readonly status: number; readonly content: Buffer }

export type BatchRequest = BatchInput & {
  readonly signal: AbortSignal
  readonly sender: ItemHandlers
}

/** In a batch that failed as a whole no item shows headers (recorded: `"headers":[]`). */
const validationPart = (item: PlannedItem, { errors, reading }: ResponseOptions): ResponsePart =>
  item.kind === 'refused' ? madePart({ ...shapedError(errors, item.error), headers: [] }, reading) : nullPart

/** The response to the whole batch. */
function* envelopeInPieces(responses: readonly Made[], { errors, reading }: ResponseOptions): Pieces<Buffer> {
  const parts: ResponsePart[] = []
  for (const response of responses) {
    const isSent = 'content' in response
    parts.push(
      isSent
        ? yield* responsePart(response, errors, reading)
        : madePart(shapedError(errors, response), reading),
    )
    yield
  }
  return envelopeOf(parts, undefined)
}

const madeBy = (item: PlannedItem, end: TaskEnd<Made> | undefined): Made => {
  if (item.kind === 'refused') return item.error
  if (end?.kind === 'finished') return end.result
  return itemError(end?.kind === 'unfinished' ? 'outcome_unknown' : 'not_sent')
}

/** Answers a batch: reads it, decides the order of its items, runs them. */
export const createBatch = (options: BatchOptions): ((request: BatchRequest) => Promise<BatchResponse>) => {
  const { clock, report } = options

  const run = async (
    { items, waits }: PlannedBatch,
    { signal, sender }: BatchRequest,
    startedMs: number,
  ): Promise<readonly Made[]> => {
    const cancellation = cancelBatch(signal, options.deadlineMs)
    const leftMs = (): number =>
      options.deadlineMs > 0 ? startedMs + options.deadlineMs - clock.monotonic() : Number.POSITIVE_INFINITY
    const handleItem = collapseReads(honouringRetryAfter(sender.handleItem, leftMs, clock), waits)
    const end = await runItems(
      options,
      { ...sender, handleItem },
      {
        items: items.map((item) => (item.kind === 'runnable' ? item.item : undefined)),
        waits,
        stop: cancellation.signal,
      },
    )
    cancellation.release()
    await options.turn()
    const nowMs = clock.monotonic()
    const responses = items.map((item, index) => {
      const taskEnd = end.items[index]
      const response = madeBy(item, taskEnd)
      const method = item.kind === 'runnable' ? item.item.method : item.method
      report(itemEvent({ method, status: response.status }, taskEnd, { batchStartedMs: startedMs, nowMs }))
      return response
    })
    const result: BatchResult = cancellation.reason() ?? 'ran'
    const batch = { result, items: items.length, durationMs: nowMs - startedMs }
    report(batchEvent(batch, { end: end.requests, waits }))
    return responses
  }

  const reportUnrun = (result: BatchResult, items: number, startedMs: number): void =>
    report(batchEvent({ result, items, durationMs: clock.monotonic() - startedMs }))

  return async (request) => {
    const startedMs = clock.monotonic()
    await options.turn()
    const { flow } = request.sender
    const plan = await inTurns(planBatch(options, request), flow)
    const { items } = plan
    if (plan.allMustValidate && items.some(({ kind }) => kind === 'refused')) {
      reportUnrun('validation', items.length, startedMs)
      const parts = items.map((item) => validationPart(item, options))
      return { status: 207, content: envelopeOf(parts, 'validation') }
    }
    const responses = await run(plan, request, startedMs)
    return { status: 207, content: await inTurns(envelopeInPieces(responses, options), flow) }
  }
}

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

/** Answers the batch route of a service, if it has one. */
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
    reading: items,
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
