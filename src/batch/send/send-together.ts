import { GatewayError } from '../../errors.ts'
import type { ForwardItem, LocalRequest } from '../../exchange/request-context.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import type { Reservation } from '../../http/bounds/byte-budget.ts'
import { headerValue, withoutHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { ForwardRequest, SendProgress } from '../../upstream/messages.ts'
import type { BatchItem, ItemResponse } from '../item.ts'
import { forwardAlone, handleItem, type OutgoingBatch, ownHeaders } from './send-item.ts'
import { createUpstreamBatch, itemsPerTurn, type UpstreamBatchWatch } from './upstream-batch.ts'

/** The responses of one upstream batch are held together until each item has its own. */
const maxUpstreamBatchBytes = 64 * 1024 * 1024

const readWholeBatch = async (
  response: GatewayResponse,
  reservation: Reservation,
): Promise<GatewayResponse & { readonly content: Buffer }> => {
  const buffered = await bufferedResponse(response, maxUpstreamBatchBytes, reservation)
  const { content = Buffer.alloc(0) } = buffered
  if (Buffer.isBuffer(content)) return { ...buffered, content }
  content.destroy()
  throw new GatewayError('upstream_broken', { detail: 'The response to several items is too large.' })
}

/** The headers of the upstream batch are those of its first item, without the headers that differ by item. */
const upstreamBatchHeaders = (
  batch: LocalRequest,
  { headers }: ForwardRequest,
  item: BatchItem,
): string[] => {
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
export const handleTogether = (
  outgoing: OutgoingBatch,
  items: readonly BatchItem[],
  stop: AbortSignal,
  watch: UpstreamBatchWatch,
): readonly Promise<ItemResponse>[] => {
  const { batch } = outgoing
  const { basePath } = batch.service.address
  const { upstreamBatch } = batch.service.contract.items
  if (upstreamBatch === undefined) throw new TypeError('the upstream has no batch route')
  // It has not started while it waits for its turn, and can still be cancelled.
  const alone = forwardAlone(outgoing, stop)
  const receiptNonce = batch.snapshot.newReceiptNonce(batch.service)
  // An upstream batch that has begun is never aborted: it may have written.
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
  const together = createUpstreamBatch({
    size: items.length,
    stop,
    leftMs: () => outgoing.leftMs() ?? Number.POSITIVE_INFINITY,
    clock: outgoing.clock,
    turn: outgoing.turn,
    watch,
    isSent: () => isSent,
    refusesWhole: upstreamBatch.refusesWhole,
    forward: async (content) => {
      if (lead === undefined) throw new TypeError('an upstream batch without items was sent')
      return readWholeBatch(await alone(lead(content)), outgoing.reservation)
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
        headers: upstreamBatchHeaders(batch, request, item),
        content,
        signal,
        progress,
      })
      if (request.progress !== undefined) progresses.push(request.progress)
      const response = await together.join(place, {
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
      together.leave(place)
    }
  })
}
