import { GatewayError } from '../../errors.ts'
import type { Reservation } from '../../http/bounds.ts'
import { fieldValue, type GatewayResponse, withoutFields } from '../../http/message.ts'
import type { Send } from '../../pipeline/exchange.ts'
import { completed } from '../../pipeline/invalidate-write.ts'
import type { LocalRequest } from '../../pipeline/service.ts'
import type { ForwardRequest } from '../../upstream/forward-request.ts'
import type { BatchItem, ItemAnswer } from '../item.ts'
import { type ChunkWatch, createChunk } from './chunk.ts'
import { itemsPerTurn } from './semaphore.ts'
import { type OutgoingBatch, ownFields, runItem, sendAlone } from './send-item.ts'

/** The answers of one upstream batch are held together until each item has its own. */
const mostChunkBytes = 64 * 1024 * 1024

/** The batch route under the upstream's REST root; it has the same name on both sides. */
const batchRoute = '/batch/v1'

const read = async (response: GatewayResponse, reservation: Reservation): Promise<Buffer> => {
  const { content } = await completed(response, mostChunkBytes, reservation)
  if (content === undefined) return Buffer.alloc(0)
  if (Buffer.isBuffer(content)) return content
  content.destroy()
  throw new GatewayError('upstream_broken', { detail: 'The response to several items is too large.' })
}

/** The fields of the chunk are those of its first item, without what is the item's own. */
const chunkFields = (batch: LocalRequest, { fields }: ForwardRequest, item: BatchItem): string[] => {
  const replaced = new Set([...Object.keys(ownFields(item, batch.service)), 'content-type', 'x-request-id'])
  return [
    ...withoutFields(fields, replaced),
    ...['content-type', 'application/json'],
    ...['x-request-id', batch.id],
  ]
}

/** The fields that the gateway has made of claims: within an upstream batch each item has fields of its own. */
const claimFields = ({ service }: LocalRequest, { fields }: ForwardRequest): Record<string, string> => {
  const values = (service.access?.claimFields ?? []).map((name) => [name, fieldValue(fields, name)] as const)
  return Object.fromEntries(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/**
 * Sends several items through the pipeline, each like a request of its own, and the last step together: one request to
 * the upstream's batch route. Validation, names, invalidation and counting are therefore those of single items.
 */
export const runChunk = (
  outgoing: OutgoingBatch,
  items: readonly BatchItem[],
  stop: AbortSignal,
  watch: ChunkWatch,
): readonly Promise<ItemAnswer>[] => {
  const { batch } = outgoing
  const { basePath } = batch.service
  // As long as it waits for its turn nothing of it has begun, and it need not.
  const alone = sendAlone(outgoing, stop)
  // A chunk that has begun is never aborted: it may have written.
  const { signal } = new AbortController()
  let lead: ((content: Buffer) => ForwardRequest) | undefined
  const chunk = createChunk({
    size: items.length,
    stop,
    leftMs: () => outgoing.leftMs() ?? Number.POSITIVE_INFINITY,
    turn: outgoing.turn,
    watch,
    ask: async (content) => {
      if (lead === undefined) throw new TypeError('a chunk without items was sent')
      const response = await alone(lead(content))
      return { response, content: await read(response, outgoing.reservation) }
    },
  })
  // All of them in one turn would keep every other request waiting for some milliseconds.
  let before: Promise<void> | undefined
  return items.map(async (item, place) => {
    if (place > 0 && place % itemsPerTurn === 0) before = (before ?? Promise.resolve()).then(outgoing.turn)
    await before
    let isJson = false
    const send: Send = async (request) => {
      lead ??= (content) => ({
        ...request,
        method: 'POST',
        target: `${basePath}${batchRoute}`,
        fields: chunkFields(batch, request, item),
        content,
        signal,
      })
      const answer = await chunk.join(place, {
        method: request.method,
        path: request.target.slice(basePath.length),
        fields: { ...ownFields(item, batch.service), ...claimFields(batch, request) },
        content: Buffer.isBuffer(request.content) ? request.content : undefined,
        alone: () => alone(request),
      })
      isJson = answer.isPart === true
      return answer
    }
    try {
      const answer = await runItem(outgoing, item, signal, send)
      // Whatever the phases make of it, from translated names to an error, is JSON again.
      return isJson ? { ...answer, isJson } : answer
    } finally {
      chunk.leave(place)
    }
  })
}
