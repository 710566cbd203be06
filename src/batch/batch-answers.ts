import { PassThrough } from 'node:stream'
import type { Clock } from '../clock.ts'
import type { SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { addressGroup, type ByteBudget, type Reservation } from '../http/bounds.ts'
import { type Answer, type GatewayResponse, requestField } from '../http/message.ts'
import { callerFields, wordpressFields } from '../pipeline/error-answer.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { IdempotencyStore, KeptAnswer } from '../pipeline/ports.ts'
import type { LocalRequest, Service } from '../pipeline/service.ts'
import { type BatchRequest, createBatch, type WriteLine } from './batch.ts'
import { admitItem } from './envelope.ts'
import type { BatchEvent } from './events.ts'
import { createMemoryIdempotencyStore, hashOf, readIdempotencyKey } from './idempotency-store.ts'
import type { Dialect } from './item.ts'
import { createEventLoopYield, createSemaphore } from './send/semaphore.ts'
import { fieldsWithCredentials, runChunk, runItem, sendAlone } from './send/send-item.ts'
import { createSplitter, type SplitMemory } from './splitter.ts'

/** The caller is part of the key, so that no other caller gets the answer. Without a credential the address stands for it. */
const callerOf = (
  { request, client, identity }: LocalRequest,
  keyFields: readonly string[],
): readonly string[] => {
  const keys = keyFields.map((name) => requestField(request.fields, name) ?? '')
  const authorization = requestField(request.fields, 'authorization') ?? ''
  const cookie = requestField(request.fields, 'cookie') ?? ''
  const verified = identity?.credential ?? ''
  const address = authorization === '' && cookie === '' && verified === '' ? client.address : ''
  return [authorization, cookie, requestField(request.fields, 'x-wp-nonce') ?? '', verified, address, ...keys]
}

const contentOf = ({ content }: LocalRequest): Buffer =>
  Buffer.isBuffer(content) ? content : Buffer.alloc(0)

/** 400 and similar: no item was carried out, so the key stays free for the corrected request. */
const ranNothing = ({ status }: KeptAnswer): boolean => status !== 207

/**
 * Carries a batch out once for each Idempotency-Key (draft-ietf-httpapi-idempotency-key-header §2.6): repeated, it gets
 * the same answer again. With a key the batch continues when its client disconnects, which is expected to repeat it.
 */
const answeredOnce = async (
  store: IdempotencyStore,
  exchange: LocalRequest,
  keyFields: readonly string[],
  field: string | undefined,
  run: (signal: AbortSignal) => Promise<KeptAnswer>,
): Promise<KeptAnswer> => {
  const read = readIdempotencyKey(field)
  if (read.kind === 'none') return run(exchange.request.signal)
  if (read.kind === 'malformed') throw new GatewayError('idempotency_key_malformed')
  const { service } = exchange
  const key = hashOf([
    service.name,
    ...(service.host === '' ? [] : [service.host]),
    ...callerOf(exchange, keyFields),
    read.key,
  ])
  const type = requestField(exchange.request.fields, 'content-type') ?? ''
  const fingerprint = hashOf([type, exchange.query, contentOf(exchange)])
  const state = await store.begin(key, fingerprint)
  switch (state.kind) {
    case 'finished':
      return state.answer
    case 'in-flight':
      throw new GatewayError('idempotency_key_in_flight', { retryAfterSeconds: 1 })
    case 'mismatch':
      throw new GatewayError('idempotency_key_reused')
    case 'not-kept':
      throw new GatewayError('idempotency_answer_not_kept')
    case 'begun':
      break
  }
  // When this throws the outcome is unknown, and the key stays in use until it expires.
  const answer = await run(new AbortController().signal)
  if (ranNothing(answer)) await store.abandon(key)
  else await store.finish(key, fingerprint, answer)
  return answer
}

export type BatchAnswersOptions = {
  /** The store of keys that instances share; undefined: this process stores them. */
  readonly idempotencyKeys: IdempotencyStore | undefined
  /** Measurements of the upstream, from batches under this configuration and under those before it. */
  readonly splitMemory: SplitMemory
  readonly config: {
    readonly batch: SiteConfig['batch']
    readonly upstream: Pick<SiteConfig['upstream'], 'timeouts' | 'maxConcurrent' | 'clientShare'>
  }
  readonly dialect: Dialect
  /** Header fields (lower case) that carry API keys: items have those of the batch. */
  readonly keyFields: readonly string[]
  readonly clock: Clock
  /** Largest content of one request. */
  readonly bodyBytes: number
  readonly report: (event: BatchEvent) => void
  readonly budget: ByteBudget
  /** The pipeline, for the items of a batch. */
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
  { batch, upstream }: BatchAnswersOptions['config'],
  clock: Clock,
  { idempotencyKeys: keys, splitMemory }: Pick<BatchAnswersOptions, 'idempotencyKeys' | 'splitMemory'>,
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
  const concurrency = Math.floor(upstream.maxConcurrent * batchShare)
  const concurrencyOfClient = Math.floor(upstream.maxConcurrent * upstream.clientShare * batchShare)
  const store = keys ?? createMemoryIdempotencyStore({ ...batch.idempotency, clock })
  return {
    splitter,
    turn: createEventLoopYield(),
    store,
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

/** Answers the batch route of a site. */
export const batchAnswers = (
  options: BatchAnswersOptions,
): ((exchange: LocalRequest) => Promise<GatewayResponse>) => {
  const { config, clock, dialect, keyFields } = options
  const shared = sharedByBatches(config, clock, options)
  const { batch: settings } = config

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
    maxItems: settings.maxItems,
    extensions: settings.extensions,
    services: settings.services,
    bodyCharacters: options.bodyBytes,
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
      envelope: exchange.arguments,
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
    const answer = await answeredOnce(shared.store, exchange, keyFields, key, (watched) =>
      inOne(exchange, watched),
    )
    return response(exchange, answer, answer.content)
  }
}
