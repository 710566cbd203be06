import { Readable } from 'node:stream'
import { cacheKey } from '../cache/cache-read.ts'
import { GatewayError } from '../errors.ts'
import { overheadOfChunk, type Reservation } from '../http/bounds.ts'
import { contentText, requestField } from '../http/message.ts'
import type { ContentPlan } from '../service/contract.ts'
import { canonicalOf, type Routing, routeOf } from '../service/decide.ts'
import type { Found } from '../service/row.ts'
import type { PipelineEvent } from './events.ts'
import { asMatched, asReady, asRecalled, type Matched, type Ready, type Received } from './exchange.ts'
import { isRefusedByTargetAlone, refusalAnswer } from './own-answer.ts'
import type { RecalledTarget, RefusedTarget, ValidTarget } from './service.ts'

const outsideTarget = /[^\x21-\x7e]|#/

/** A GET that was seen before, unless a field or the content gives this one another meaning. */
const recall = ({ service, request }: Received): RecalledTarget | undefined => {
  const { method, fields } = request
  if ((method !== 'GET' && method !== 'HEAD') || fields['x-http-method-override'] !== undefined)
    return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

const routed = ({ service, request, path, query, admitted }: Received): Routing => {
  const { contract } = service
  const { method, fields } = request
  const asked = { method, path, query, fields }
  if (admitted?.service !== service) return routeOf(contract, asked)
  // Admission has found the row already.
  return routeOf(contract, asked, (meant, at) =>
    meant === method ? admitted.matching : contract.find(meant, at),
  )
}

/** Finds the row that the request concerns, and the method that it means; throws 404, 405 or 400. */
export const match = (exchange: Received): Matched => {
  const { record, request } = exchange
  const recalled = recall(exchange)
  if (recalled !== undefined) {
    const { matching } = recalled
    record.route = matching.row.template
    return asMatched(exchange, request.method, matching, recalled)
  }
  // RFC 3986 §2, RFC 9112 §3.2: nothing but visible ASCII, and no fragment. node:http accepts both, and servers read them in different ways.
  if (outsideTarget.test(request.target))
    throw new GatewayError('malformed_request', { detail: 'The URL has bytes that must be percent-encoded.' })
  const route = routed(exchange)
  if (route.kind === 'refused') {
    if (route.row !== undefined) record.route = route.row.template
    throw route.error
  }
  const { method, matching } = route
  record.route = matching.kind === 'unlisted' ? 'unlisted' : matching.row.template
  return asMatched(exchange, method, matching, recalled)
}

/** A declared length over the limit is refused before a byte is read; other content is counted while it is read. */
const refuseTooMuch = ({ request, service }: Matched, plan: ContentPlan): void => {
  const declared = Number(requestField(request.fields, 'content-length') ?? 0)
  const most = plan === 'read' ? service.bodyBytes : service.uploadBytes
  if (declared > most) throw new GatewayError('content_too_large', { detail: `At most ${most} bytes.` })
}

/** The content: read whole where the row checks it, otherwise the stream. Throws 413 and 415. */
const contentOf = async (exchange: Matched, reservation: Reservation): Promise<Ready['content']> => {
  const { matching, request, method, service } = exchange
  const { content, fields, signal } = request
  if (content === undefined) return undefined
  const plan =
    matching.kind === 'found' ? service.contract.contentPlan(method, matching.endpoint, fields) : 'stream'
  refuseTooMuch(exchange, plan)
  return plan === 'stream' ? content : readContent(content, service.bodyBytes, signal, reservation)
}

/** The response to a request that its contract refuses; `code` is for metrics and the log. */
export type ContractRefusal = Pick<RefusedTarget, 'kind' | 'code' | 'response'>

/** Longer ones repeat long lists of allowed values, and a flood of refused targets could fill the memory. */
const longestRefusal = 1024

const rememberRefusal = ({ service, request }: Matched, refused: RefusedTarget): void => {
  const { content } = refused.response
  if (Buffer.isBuffer(content) && content.length <= longestRefusal) {
    const text = contentText(content)
    service.memo.remember(request.target, { ...refused, response: { ...refused.response, text } })
  }
}

const remember = (ready: Ready, matching: Found): void => {
  const { service, target, query, sensitive, policy, request } = ready
  const publicKey = cacheKey({ service: service.name, target, dialect: '', partition: 'public' })
  const recalled: ValidTarget = {
    kind: 'valid',
    matching,
    target,
    query,
    arguments: ready.arguments,
    sendsUndeclared: ready.sendsUndeclared,
    sensitive,
    variant: undefined,
    policy,
    publicKey,
  }
  service.memo.remember(request.target, recalled)
  // One text for the key, here and where it is stored: another one would be hashed again.
  asRecalled(ready, recalled)
}

const checked = (
  exchange: Matched,
  content: Buffer | Readable | undefined,
  report: (event: PipelineEvent) => void,
): Ready | ContractRefusal => {
  const { service, matching, method, query, request, admitted } = exchange
  const { fields } = request
  const canonical =
    admitted?.matching === matching
      ? admitted.canonical
      : canonicalOf(service.contract, method, matching, {
          query,
          fields,
          contentType: requestField(fields, 'content-type'),
          content: Buffer.isBuffer(content) ? content : undefined,
        })
  if (canonical.kind === 'invalid') {
    const { code, found } = canonical
    const response = refusalAnswer({ service, row: found.row, query, fields }, canonical)
    // With several hosts a refusal may contain links to the host that was asked.
    if (service.host === '' && found.endpoint.readsFields !== true && isRefusedByTargetAlone(request))
      rememberRefusal(exchange, { kind: 'refused', matching: found, code, response })
    return { kind: 'refused', code, response }
  }
  if (canonical.undeclared !== undefined) {
    const { handling, names } = canonical.undeclared
    report({ kind: 'undeclared-parameters', service: service.name, handling, count: names.length })
  }
  const ready = asReady(exchange, canonical, content)
  // Only what follows from the target alone.
  const isRemembered = request.method === 'GET' && content === undefined && matching.kind === 'found'
  if (isRemembered && matching.endpoint.readsFields !== true) {
    remember(ready, matching)
    if (request.target !== service.mount + ready.target)
      report({ kind: 'target-canonicalised', service: service.name })
  }
  return ready
}

/** Checks arguments and content against the row, and makes the one form of the request that is keyed and sent. */
export const validate = (
  exchange: Matched,
  reservation: Reservation,
  report: (event: PipelineEvent) => void,
): Ready | ContractRefusal | Promise<Ready | ContractRefusal> => {
  const { recalled, request } = exchange
  if (request.content !== undefined)
    return contentOf(exchange, reservation).then((content) => checked(exchange, content, report))
  if (recalled === undefined) return checked(exchange, undefined, report)
  return recalled.kind === 'valid' ? asReady(exchange, recalled, undefined) : recalled
}

async function* boundedPieces(content: Readable, mostBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > mostBytes) throw new GatewayError('content_too_large')
    yield chunk
  }
}

/** The content, broken off with content_too_large as soon as it exceeds the bound: for content without a length. Nothing is read ahead. */
export const boundedContent = (content: Readable, mostBytes: number): Readable =>
  Readable.from(boundedPieces(content, mostBytes), { objectMode: false, highWaterMark: 1 })

/** Reads a request's content whole, or throws content_too_large as soon as it is known to exceed the bound, `overloaded` when too much is held already. */
export const readContent = async (
  content: Buffer | Readable,
  mostBytes: number,
  signal: AbortSignal,
  reservation: Reservation,
): Promise<Buffer> => {
  if (Buffer.isBuffer(content)) {
    if (content.length > mostBytes) throw new GatewayError('content_too_large')
    return content
  }
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > mostBytes) throw new GatewayError('content_too_large')
      if (!reservation.reserve(chunk.length + overheadOfChunk)) {
        throw new GatewayError('overloaded', {
          detail: 'Too many request bodies are in flight.',
          retryAfterSeconds: 1,
          unsent: true,
        })
      }
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(signal.aborted ? 'client_gone' : 'invalid_request', { cause: error })
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}
