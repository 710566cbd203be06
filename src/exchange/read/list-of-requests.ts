import { GatewayError } from '../../errors.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import type { ByteBudget } from '../../http/bounds/byte-budget.ts'
import { corsLinesOf } from '../../http/headers/cors.ts'
import { discard, type GatewayResponse } from '../../http/message.ts'
import type { HandleRequest } from '../request-context.ts'
import { arrived, type RequestContext, type ValidatedContext } from '../request-context.ts'

/** Of all responses together: they are held until the last one is there. */
const maxBytes = 16 * 1024 * 1024

/** Of the list: they describe its content, conditions and coding, not those of a request in it. */
const ofTheList: ReadonlySet<string> = new Set([
  'accept-encoding',
  'content-length',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'range',
  'transfer-encoding',
])

const itemOf = (list: ValidatedContext, content: Buffer, index: number): RequestContext => {
  const { request, service, snapshot, client, path, query } = list
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !ofTheList.has(name)))
  return arrived({
    id: `${list.id}.${index}`,
    origin: 'batch',
    client,
    snapshot,
    service,
    request: { method: request.method, target: request.target, headers, content, signal: request.signal },
    path,
    query,
  })
}

/** Handles each request of a list as one of its own, and gives the list of their contents in the same order. */
export const responseList = async (
  budget: ByteBudget,
  list: ValidatedContext,
  contents: readonly Buffer[],
  run: HandleRequest,
): Promise<GatewayResponse> => {
  const reservation = budget('batch-item', list.client.address)
  let bytes = 0
  const whole = async (
    content: Buffer,
    index: number,
  ): Promise<GatewayResponse & { readonly content: Buffer }> => {
    const response = await bufferedResponse(await run(itemOf(list, content, index)), maxBytes, reservation)
    const read = response.content ?? Buffer.alloc(0)
    bytes += Buffer.isBuffer(read) ? read.length : maxBytes
    // What was reserved for reading it is given back, but it is held until the last one is there.
    if (!Buffer.isBuffer(read) || bytes > maxBytes || !reservation.reserve(read.length)) {
      discard(response.content)
      throw new GatewayError('overloaded', { retryAfterSeconds: 1 })
    }
    return { ...response, content: read }
  }
  try {
    const responses = await Promise.all(contents.map(whole))
    const texts = responses.map(({ content }) => content.toString())
    const content = Buffer.from(`[${texts.join(',')}]`)
    const { errors } = list.service.contract
    return {
      status: 200,
      headers: [
        ...['Content-Type', errors.contentType, 'Content-Length', String(content.length)],
        // The upstream says the same for each request.
        ...corsLinesOf(responses[0]?.headers ?? []),
        ...errors.batchHeaders(list.request.headers),
      ],
      content,
    }
  } finally {
    reservation.release()
  }
}
