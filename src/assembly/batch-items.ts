import type { Admission, BatchItem, ItemAnswer } from '../batch/item.ts'
import type { Row } from '../contracts/row.ts'
import { type ErrorCode, type ErrorFacts, errorTable, GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse, Outcome } from '../http/message.ts'
import { arrived, type Received } from '../pipeline/exchange.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import type { LocalRequest, Service } from '../pipeline/service.ts'
import type { ForwardRequest, Upstream } from '../upstream/upstream.ts'

/** Fields of the batch request that hold for each of its items: who asks, and from where. */
const inherited: readonly string[] = ['authorization', 'cookie', 'x-wp-nonce', 'origin', 'user-agent', 'via']

/** An item's answer is held until the batch is complete; twenty-five of these are the most a batch can hold. */
const mostItemBytes = 8 * 1024 * 1024

const refused = (status: number, code: string, message: string): Extract<Admission, { kind: 'refused' }> => ({
  kind: 'refused',
  status,
  body: { code, message, data: { status } },
})

const refusedBy = (code: ErrorCode): Admission => {
  const { status, message, siteCode }: ErrorFacts = errorTable[code]
  return refused(status, siteCode ?? `trellis_${code}`, message)
}

/** WordPress shows what the caller may do with the resource; who that is only it knows, so a credential is taken for a good one. */
const allowField = (row: Row, hasCredential: boolean): readonly string[] => {
  const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
  const allowed = hasCredential ? methods : methods.filter((method) => method === 'GET')
  return allowed.length === 0 ? [] : ['Allow', allowed.join(', ')]
}

/** Whether an item may run: as WordPress decides it, before anything of the batch has run. */
export const admitItem = (service: Service, item: BatchItem, hasCredential: boolean): Admission => {
  const finding = service.find(item.method, item.path)
  if (finding.kind === 'refused') return refusedBy('ambiguous_request')
  if (finding.kind !== 'found') return refusedBy('no_route')
  const fields = allowField(finding.row, hasCredential)
  if (finding.endpoint.allowBatch !== true) {
    const message = 'The requested route does not support batch requests.'
    return { ...refused(400, 'rest_batch_not_allowed', message), fields }
  }
  const validation = service.validator.validate({
    method: item.method,
    row: finding.row,
    endpoint: finding.endpoint,
    pathParameters: finding.pathParameters,
    query: item.query,
    contentType: item.content === undefined ? undefined : 'application/json',
    content: item.content,
  })
  if (validation.kind === 'invalid') {
    return { kind: 'refused', status: validation.status, body: validation.body, fields }
  }
  const { row, pathParameters } = finding
  return {
    kind: 'runnable',
    conflict: {
      collection: row.collection,
      kind: row.kind,
      itemId: pathParameters['parent'] ?? pathParameters['id'],
      method: item.method,
    },
  }
}

/** The fields of an item that are its own: not those that say who asks, nor what describes its content. */
export const ownFields = (item: BatchItem): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(item.fields).filter(([name]) => name !== 'content-type' && !inherited.includes(name)),
  )

/** Takes the item's request to the upstream; by itself, or in company. */
export type SendItem = (request: ForwardRequest) => Promise<GatewayResponse>

/** A client's batches wait in another line than its single requests, which are not to wait behind all of those. */
export const batchFlow = (address: string): string => `batch ${address}`

/** Sends the item as a request of its own. */
export const sendAlone =
  (upstream: Upstream): SendItem =>
  (request) =>
    upstream.forward({ ...request, flow: batchFlow(request.flow ?? '') })

/** The item as a request of its own, with the credentials of the batch and nothing that the item could set in their place. */
const itemExchange = (
  batch: LocalRequest,
  item: BatchItem,
  signal: AbortSignal,
  send: SendItem,
): Received => {
  const fields: Record<string, string | string[] | undefined> = { ...item.fields }
  for (const name of inherited) {
    const value = batch.request.fields[name]
    if (value === undefined) delete fields[name]
    else fields[name] = value
  }
  if (item.content === undefined) delete fields['content-type']
  else fields['content-type'] = 'application/json'
  const { service } = batch
  return arrived({
    id: `${batch.id}.${item.index}`,
    origin: 'batch',
    client: batch.client,
    // Everything of the service's way but its last step.
    service: { ...service, upstream: { ...service.upstream, forward: send } },
    request: {
      method: item.method,
      target: item.query === '' ? item.path : `${item.path}?${item.query}`,
      fields,
      content: item.content,
      signal,
    },
    path: item.path,
    query: item.query,
  })
}

const responseOnly = (outcome: Outcome): GatewayResponse => {
  if (outcome.kind === 'response') return outcome
  throw new TypeError('an item of a batch was handed over')
}

const isWrite = (method: string): boolean => method !== 'GET' && method !== 'HEAD'

/**
 * Lets an item go down the whole way, like a request of a client; `send` is its last step. Rejects where a write got no
 * answer from the upstream: the way makes an error page of that, which does not say whether the write may have happened.
 */
export const runItem = async (
  run: (exchange: Received) => Answer,
  batch: LocalRequest,
  item: BatchItem,
  signal: AbortSignal,
  send: SendItem,
): Promise<ItemAnswer> => {
  let failure: unknown
  const watched: SendItem = async (request) => {
    try {
      // Read here, so that an answer that breaks off counts as none for all who are on the way back.
      return await completed(await send(request), mostItemBytes)
    } catch (thrown) {
      failure =
        thrown instanceof GatewayError ? thrown : new GatewayError('upstream_broken', { cause: thrown })
      throw failure
    }
  }
  const response = responseOnly(await run(itemExchange(batch, item, signal, watched)))
  if (failure !== undefined && isWrite(item.method)) throw failure
  const { content, status, fields } = response
  if (content !== undefined && !Buffer.isBuffer(content)) {
    content.destroy()
    throw new GatewayError('upstream_broken', { detail: 'The answer is too large for a batch.' })
  }
  return { status, fields, content: content ?? Buffer.alloc(0) }
}
