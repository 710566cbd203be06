import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { HandleRequest, LocalRequest } from '../../exchange/request-context.ts'
import {
  arrived,
  type ForwardItem,
  type ItemParts,
  type RequestContext,
} from '../../exchange/request-context.ts'
import type { Service } from '../../exchange/service.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import type { Reservation } from '../../http/bounds/byte-budget.ts'
import { credentialHeadersOf } from '../../http/headers/credential-headers.ts'
import { headerValue, withHeader, withoutHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { targetOf } from '../../http/targets.ts'
import type { ReceiptNonce } from '../../service/contract.ts'
import type { ForwardRequest, SendProgress } from '../../upstream/messages.ts'
import { type BatchItem, type ItemResponse, ResponseTooLarge, WriteFailed } from '../item.ts'
import { type ChunkWatch, createChunk, itemsPerTurn } from './chunk.ts'

/** Headers of the batch request that hold for each of its items: credentials and origin. */
const inherited: readonly string[] = ['authorization', 'cookie', 'origin', 'user-agent', 'via']

/** An item's response is held until the batch is complete, and all of them together are bounded by `batch.answerBytes`. */
const maxItemBytes = 8 * 1024 * 1024

export type OutgoingBatch = {
  readonly handle: HandleRequest
  readonly clock: Clock
  readonly batch: LocalRequest
  /** Headers (lower case) of the service that carry API keys. */
  readonly keyHeaders: readonly string[]
  /** Contents of responses that are held until the batch is complete; counted as they arrive. */
  readonly bufferedContents: { bytes: number; readonly maxBytes: number }
  /** For the same contents, out of the budget of the process for all requests. */
  readonly reservation: Reservation
  /** Awaited between groups of items, so that other requests are served. */
  readonly turn: () => Promise<void>
  /** Milliseconds until the deadline; undefined when there is none. */
  leftMs(): number | undefined
}

/** The headers of an item that are its own: neither inherited, nor about its content, nor kept from the upstream by `access`. */
const ownHeaders = (item: BatchItem, { access }: Service): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(item.headers).filter(
      ([name]) =>
        name !== 'content-type' &&
        !inherited.includes(name) &&
        access?.stripped.has(name) !== true &&
        access?.credentialHeaders.includes(name) !== true,
    ),
  )

/**
 * Milliseconds until the deadline of the batch, for an upstream that can use it: later work is in vain.
 * There is no registered header for it; milliseconds, like Envoy's X-Envoy-Expected-Rq-Timeout-Ms.
 */
const deadlineHeader = 'x-request-deadline-ms'

/** Sends the item as a separate request, in another queue than single requests, which are not to wait behind it; it is not sent after `stop`. */
export const forwardAlone =
  ({ batch, leftMs }: OutgoingBatch, stop: AbortSignal): ForwardItem =>
  (request) => {
    const ms = leftMs()
    const headers =
      ms === undefined ? request.headers : withHeader(request.headers, deadlineHeader, String(ms))
    return batch.service.upstream.request({ ...request, headers, queue: 'batch', withdraw: stop })
  }

/** The item's headers with the credentials of the batch in place of those of the item. */
export const headersWithCredentials = (
  { service, request }: LocalRequest,
  item: BatchItem,
  keyHeaders: readonly string[],
): Record<string, string | string[] | undefined> => {
  const headers: Record<string, string | string[] | undefined> = { ...item.headers }
  const verified = [...(service.access?.credentialHeaders ?? []), ...keyHeaders]
  for (const name of [...inherited, ...verified, ...credentialHeadersOf(request.headers, [])]) {
    const value = request.headers[name]
    if (value === undefined) delete headers[name]
    else headers[name] = value
  }
  if (item.content === undefined) delete headers['content-type']
  else headers['content-type'] = item.checked?.matching.endpoint.jsonType ?? 'application/json'
  return headers
}

const itemExchange = (
  { batch, keyHeaders }: OutgoingBatch,
  item: BatchItem,
  signal: AbortSignal,
  { forwardItem, receiptNonce }: LastStep,
): RequestContext => {
  const headers = headersWithCredentials(batch, item, keyHeaders)
  const { service, snapshot } = batch
  const context = {
    id: `${batch.id}.${item.index}`,
    origin: 'batch' as const,
    client: batch.client,
    snapshot,
    service,
    request: {
      method: item.method,
      // The public one, as of a separate request: what a target means is remembered by it.
      target: service.mount + targetOf(item.path, item.query),
      headers,
      content: item.content,
      signal,
    },
    path: item.path,
    query: item.query,
  }
  return arrived(context, { forwardItem, checked: item.checked, receiptNonce })
}

/** How an item is sent, and the nonce of those that are sent together. */
type LastStep = Pick<ItemParts, 'forwardItem' | 'receiptNonce'>

/** A read may be repeated; a write was carried out, and its error states that. */
const notBuffered = (item: BatchItem, isCrowded: boolean): Error =>
  isCrowded && item.effect !== 'write'
    ? new GatewayError('overloaded', { retryAfterSeconds: 1 })
    : new ResponseTooLarge()

/**
 * Sends an item through `handle`, like a request of a client; `send` is its last step. Rejects where a write got no response from the
 * upstream: `handle` makes an error response of that, which does not show whether the write may have happened.
 */
export const handleItem = async (
  outgoing: OutgoingBatch,
  item: BatchItem,
  signal: AbortSignal,
  send: ForwardItem,
  receiptNonce?: ReceiptNonce,
): Promise<ItemResponse> => {
  const { bufferedContents, reservation } = outgoing
  let failure: unknown
  let isCrowded = false
  const itemReservation: Reservation = {
    ...reservation,
    reserve: (bytes) => {
      const hasRoom = reservation.reserve(bytes)
      isCrowded ||= !hasRoom
      return hasRoom
    },
  }
  const readWhole = (response: GatewayResponse): Promise<GatewayResponse> =>
    bufferedResponse(
      response,
      Math.min(maxItemBytes, bufferedContents.maxBytes - bufferedContents.bytes),
      itemReservation,
    )
  const watched: ForwardItem = async ({ record, ...request }) => {
    const began = outgoing.clock.monotonic()
    try {
      // Read here, so that `handle` takes a response that breaks off for an error.
      return await readWhole(await send(request))
    } catch (error) {
      failure = error instanceof GatewayError ? error : new GatewayError('upstream_broken', { cause: error })
      throw failure
    } finally {
      if (record !== undefined) record.upstreamMs += outgoing.clock.monotonic() - began
    }
  }
  const context = itemExchange(outgoing, item, signal, { forwardItem: watched, receiptNonce })
  const response = await outgoing.handle(context)
  // Another client's request may receive the response first.
  const { content, status, headers } = await readWhole(response)
  if (failure !== undefined && item.effect === 'write')
    throw new WriteFailed(failure, context.record.writeProgress?.outcome)
  if (content !== undefined && !Buffer.isBuffer(content)) {
    content.destroy()
    throw notBuffered(item, isCrowded)
  }
  const bytes = content?.length ?? 0
  bufferedContents.bytes += bytes
  if (bufferedContents.bytes > bufferedContents.maxBytes) throw new ResponseTooLarge()
  if (!reservation.reserve(bytes)) throw notBuffered(item, true)
  return { status, headers, content: content ?? Buffer.alloc(0) }
}

/** The responses of one upstream batch are held together until each item has its own. */
const maxChunkBytes = 64 * 1024 * 1024

const readWholeChunk = async (
  response: GatewayResponse,
  reservation: Reservation,
): Promise<GatewayResponse & { readonly content: Buffer }> => {
  const buffered = await bufferedResponse(response, maxChunkBytes, reservation)
  const { content = Buffer.alloc(0) } = buffered
  if (Buffer.isBuffer(content)) return { ...buffered, content }
  content.destroy()
  throw new GatewayError('upstream_broken', { detail: 'The response to several items is too large.' })
}

/** The headers of the chunk are those of its first item, without the headers that differ by item. */
const chunkHeaders = (batch: LocalRequest, { headers }: ForwardRequest, item: BatchItem): string[] => {
  const replaced = new Set([...Object.keys(ownHeaders(item, batch.service)), 'content-type', 'x-request-id'])
  return [
    ...withoutHeaders(headers, replaced),
    ...['content-type', 'application/json'],
    ...['x-request-id', batch.id],
  ]
}

/** The headers that the gateway has made of claims: within an upstream batch each item has its own headers. */
const claimHeaders = ({ service }: LocalRequest, { headers }: ForwardRequest): Record<string, string> => {
  const values = (service.access?.claimHeaders ?? []).map(
    (name) => [name, headerValue(headers, name)] as const,
  )
  return Object.fromEntries(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/**
 * Sends several items through `handle`, each like a separate request, and the last step together: one request to
 * the upstream's batch route. Validation, names, invalidation and counting are therefore those of single items.
 */
export const handleChunk = (
  outgoing: OutgoingBatch,
  items: readonly BatchItem[],
  stop: AbortSignal,
  watch: ChunkWatch,
): readonly Promise<ItemResponse>[] => {
  const { batch } = outgoing
  const { basePath } = batch.service.address
  const { upstreamBatch } = batch.service.contract.items
  if (upstreamBatch === undefined) throw new TypeError('the upstream has no batch route')
  // It has not started while it waits for its turn, and can still be cancelled.
  const alone = forwardAlone(outgoing, stop)
  const receiptNonce = batch.snapshot.newReceiptNonce(batch.service)
  // A chunk that has begun is never aborted: it may have written.
  const { signal } = new AbortController()
  let lead: ((content: Buffer) => ForwardRequest) | undefined
  let isSent = false
  /** Of the writes that go up together. */
  const progresses: SendProgress[] = []
  const progress: SendProgress = {
    partlySent: () => {
      isSent = true
      for (const one of progresses) one.partlySent()
    },
    sent: () => {
      isSent = true
      for (const one of progresses) one.sent()
    },
  }
  const chunk = createChunk({
    size: items.length,
    stop,
    leftMs: () => outgoing.leftMs() ?? Number.POSITIVE_INFINITY,
    clock: outgoing.clock,
    turn: outgoing.turn,
    watch,
    isSent: () => isSent,
    refusesWhole: upstreamBatch.refusesWhole,
    forward: async (content) => {
      if (lead === undefined) throw new TypeError('a chunk without items was sent')
      return readWholeChunk(await alone(lead(content)), outgoing.reservation)
    },
  })
  // All of them in one turn would keep every other request waiting for some milliseconds.
  let before: Promise<void> | undefined
  return items.map(async (item, place) => {
    if (place > 0 && place % itemsPerTurn === 0) before = (before ?? Promise.resolve()).then(outgoing.turn)
    await before
    let isJson = false
    const send: ForwardItem = async (request) => {
      lead ??= (content) => ({
        ...request,
        method: 'POST',
        target: `${basePath}${upstreamBatch.route}`,
        headers: chunkHeaders(batch, request, item),
        content,
        signal,
        progress,
      })
      if (request.progress !== undefined) progresses.push(request.progress)
      const response = await chunk.join(place, {
        method: request.method,
        path: request.target.slice(basePath.length),
        headers: { ...ownHeaders(item, batch.service), ...claimHeaders(batch, request) },
        content: Buffer.isBuffer(request.content) ? request.content : undefined,
        alone: () => alone(request),
      })
      isJson = response.isJson === true
      return response
    }
    try {
      const response = await handleItem(outgoing, item, signal, send, receiptNonce)
      // Whatever `handle` makes of it, from translated names to an error, is JSON again.
      return isJson ? { ...response, isJson } : response
    } finally {
      chunk.leave(place)
    }
  })
}
