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
import { withHeader } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { targetOf } from '../../http/targets.ts'
import type { ReceiptNonce } from '../../service/contract.ts'
import type { BatchItem, ItemResponse } from '../item.ts'
import { ResponseTooLarge, WriteFailed } from '../item-errors.ts'

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
export const ownHeaders = (item: BatchItem, { access }: Service): Readonly<Record<string, string>> =>
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

const itemContext = (
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
      // The public target, as for a separate request: parsed targets are memoized by it.
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
  const context = itemContext(outgoing, item, signal, { forwardItem: watched, receiptNonce })
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
