import { Readable } from 'node:stream'
import { cacheKey } from '../cache/cache-read.ts'
import { keepsContent } from '../cache/decide-caching.ts'
import { GatewayError } from '../errors.ts'
import { readBody } from '../http/bodies/read-body.ts'
import { overheadOfChunk, type Reservation } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { type HeaderLines, requestHeader } from '../http/headers/header-lines.ts'
import { discard, whenKnown } from '../http/message.ts'
import { isGet, isGetOrHead } from '../http/methods.ts'
import { contentText } from '../http/response-text.ts'
import type { ContentInspector, ContentPlan } from '../service/contract.ts'
import {
  canonicalInTurns,
  type canonicalOf,
  isAccessWrite,
  isAccessWriteByContent,
  type RecalledTarget,
  type RefusedTarget,
  type Routing,
  routeOf,
  type ValidTarget,
} from '../service/decide.ts'
import { methodOverrideHeader } from '../service/method-override.ts'
import type { Found } from '../service/row.ts'
import { type AccessRefusal, accessError, admit, lackingCredential } from './access.ts'
import { isRefusedByTargetAlone, refusalResponse } from './error-response.ts'
import type { ExchangeEvent } from './events.ts'
import {
  asIdentified,
  asMatched,
  asReady,
  asRecalled,
  type MatchedContext,
  type RequestContext,
  type ValidatedContext,
} from './exchange.ts'
import type { CountRequest, RateLimitVerdict } from './ports.ts'

type Report = (event: ExchangeEvent) => void

const refused = (
  { service, record }: RequestContext,
  reason: AccessRefusal,
  report: Report,
): GatewayError => {
  record.reason = reason
  report({ kind: 'access-refused', service: service.name, reason })
  return accessError(service.name, reason)
}

/**
 * Checks the client's address and the credentials that it sent, before the request is matched with a route, so that a
 * refusal reveals no routes. Throws 401, 403, or 503 without the keys of the issuer.
 */
export const authenticate = (context: RequestContext, report: Report): void | Promise<void> => {
  const { service, client, request } = context
  const { access } = service
  if (access === undefined) return
  return whenKnown(admit(access, client.address, request.headers), (admission) => {
    if (admission.kind === 'refused') throw refused(context, admission.reason, report)
    asIdentified(context, admission.identity)
  })
}

const isWrite = ({ service: { contract }, method, matching, query, recalled }: MatchedContext): boolean =>
  isAccessWrite(
    contract,
    method,
    matching,
    recalled?.kind === 'valid' ? recalled.uncacheable : contract.uncacheableReasonOf(matching.path, query),
  )

/** A write has the credentials that the service requires of writes; and where the contract requires a credential, one is there. Throws 401. */
export const authorize = (context: MatchedContext, report: Report): void => {
  const { service, request, matching, query } = context
  if (service.access !== undefined) {
    const lacking = lackingCredential(service.access, context.identity, isWrite(context))
    if (lacking !== undefined) throw refused(context, lacking, report)
  }
  const endpoint = matching.kind === 'found' ? matching.endpoint : undefined
  const challenge = service.contract.challenge?.(endpoint, request.headers, query)
  if (challenge !== undefined) {
    throw new GatewayError('credential_missing', {
      headers: ['WWW-Authenticate', `${challenge} realm="${service.name}"`],
    })
  }
}

/** What `authorize` could not know: whether the content of the request writes. Throws 401. */
export const authorizeContent = (context: ValidatedContext, report: Report): void => {
  const { service, method, identity } = context
  if (service.access === undefined || !isAccessWriteByContent(service.contract, method, context)) return
  const lacking = lackingCredential(service.access, identity, true)
  if (lacking !== undefined) throw refused(context, lacking, report)
}

const workOf = ({ origin, record }: ValidatedContext): ForwardedWork => {
  // Comparisons end first.
  if (origin !== 'client') return 'batch'
  return record.cache === 'bypass' ? 'pass' : 'miss'
}

/** Throws 503 for a request that needs an upstream while the process is overloaded; hits are never refused. */
export const shed = (context: ValidatedContext, overload: ShedOptions | undefined): void => {
  if (overload?.admits(workOf(context)) === false) throw overloaded(overload)
}

export type RateLimitOptions = {
  readonly count: CountRequest
  readonly report: (event: { readonly kind: 'rate-limited'; readonly limit: string }) => void
}

/** draft-ietf-httpapi-ratelimit-headers-10 §3 and §4: names, quotas and windows; what is left of each, and when all of it is there again. */
const limitHeaders = (verdicts: readonly RateLimitVerdict[]): string[] => {
  let policies = ''
  let limits = ''
  for (const { name, policy, remaining, resetSeconds } of verdicts) {
    const separator = policies === '' ? '' : ', '
    policies += separator + policy
    limits += `${separator}"${name}";r=${remaining};t=${resetSeconds}`
  }
  return ['RateLimit-Policy', policies, 'RateLimit', limits]
}

const none: HeaderLines = []

const headersFor = (
  { origin }: MatchedContext,
  verdicts: readonly RateLimitVerdict[],
  report: RateLimitOptions['report'],
): HeaderLines => {
  let retryAfterSeconds = 0
  for (const verdict of verdicts) {
    if (verdict.retryAfterSeconds === 0) continue
    retryAfterSeconds = Math.max(retryAfterSeconds, verdict.retryAfterSeconds)
    report({ kind: 'rate-limited', limit: verdict.name })
  }
  if (retryAfterSeconds > 0) {
    throw new GatewayError('rate_limited', {
      retryAfterSeconds,
      headers: limitHeaders(verdicts),
    })
  }
  // The headers of an item are part of the response to its batch, which has its own format.
  return verdicts.length === 0 || origin !== 'client' ? none : limitHeaders(verdicts)
}

/** Counts a request by its route, hits and items of a batch too. Gives the headers of its response; throws 429. */
export const countRequest = (
  context: MatchedContext,
  { count, report }: RateLimitOptions,
): HeaderLines | Promise<HeaderLines> => {
  const { service, client, request, matching, method, identity } = context
  const counted = count({
    service: service.name,
    method,
    path: matching.path,
    address: client.address,
    credential: requestHeader(request.headers, 'authorization'),
    identity,
  })
  return whenKnown(counted, (verdicts) => headersFor(context, verdicts, report))
}

/** Work that needs an upstream: items of a batch, reads that would be stored, and everything else. */
export type ForwardedWork = 'batch' | 'miss' | 'pass'

export type ShedOptions = {
  readonly admits: (work: ForwardedWork) => boolean
  readonly retryAfterSeconds: number
}

/** The 503 for a request that is refused because of overload. */
export const overloaded = (
  { retryAfterSeconds }: Pick<ShedOptions, 'retryAfterSeconds'>,
  headers: readonly string[] = [],
): GatewayError => new GatewayError('overloaded', { retryAfterSeconds, headers })

const outsideTarget = /[^\x21-\x7e]|#/

/** A GET that was seen before, unless a header or the content gives this one another meaning. */
const recall = ({ service, request }: RequestContext): RecalledTarget | undefined => {
  const { method, headers } = request
  if (!isGetOrHead(method) || headers[methodOverrideHeader] !== undefined) return undefined
  const recalled = service.memo.recall(request.target)
  return recalled?.kind !== 'refused' || isRefusedByTargetAlone(request) ? recalled : undefined
}

const routed = ({ service, request, path, query, admitted }: RequestContext): Routing => {
  const { contract } = service
  const { method, headers } = request
  const routeRequest = { method, path, query, headers }
  if (admitted?.service !== service) return routeOf(contract, routeRequest)
  // Admission has found the row already.
  return routeOf(contract, routeRequest, (meantMethod, at) =>
    meantMethod === method ? admitted.matching : contract.find(meantMethod, at),
  )
}

/** Finds the row that the request concerns, and the method that it means; throws 404, 405 or 400. */
export const match = (context: RequestContext): MatchedContext => {
  const { record, request } = context
  const recalled = recall(context)
  if (recalled !== undefined) {
    const { matching } = recalled
    record.route = matching.row.template
    return asMatched(context, request.method, matching, recalled)
  }
  // RFC 3986 §2, RFC 9112 §3.2: nothing but visible ASCII, and no fragment. node:http accepts both, and servers read them in different ways.
  if (outsideTarget.test(request.target))
    throw new GatewayError('malformed_request', { detail: 'The URL has bytes that must be percent-encoded.' })
  const route = routed(context)
  if (route.kind === 'refused') {
    if (route.row !== undefined) record.route = route.row.template
    throw route.error
  }
  const { method, matching } = route
  record.route = matching.kind === 'unlisted' ? 'unlisted' : matching.row.template
  return asMatched(context, method, matching, recalled)
}

/** A declared length over the limit is refused before a byte is read; other content is counted while it is read. */
const refuseTooMuch = ({ request, service }: MatchedContext, plan: ContentPlan): void => {
  const declared = Number(requestHeader(request.headers, 'content-length') ?? 0)
  const max = plan === 'read' ? service.limits.bodyBytes : service.limits.uploadBytes
  if (declared > max) throw new GatewayError('content_too_large', { detail: `At most ${max} bytes.` })
}

const tooManyBodies = (): GatewayError =>
  new GatewayError('overloaded', { detail: 'Too many request bodies are in flight.', retryAfterSeconds: 1 })

const streamOf = (content: Buffer): Readable =>
  new Readable({
    read() {
      this.push(content)
      this.push(null)
    },
  })

/** The content: read whole where the row checks it, otherwise a stream. Throws 413 and 415. */
const contentOf = (
  context: MatchedContext,
  reservation: Reservation,
): ValidatedContext['content'] | Promise<Buffer> => {
  const { matching, request, method, service } = context
  const { content, headers, signal } = request
  if (content === undefined) return undefined
  const { contract } = service
  const byContract =
    matching.kind === 'found' ? contract.contentPlan(method, matching.endpoint, headers) : 'stream'
  const plan = keepsContent(method, contract.policyFor(method, matching.path)) ? 'read' : byContract
  refuseTooMuch(context, plan)
  // The content of an item is counted with its batch.
  if (Buffer.isBuffer(content) && context.origin === 'client') {
    if (!reservation.reserve(content.length + overheadOfChunk)) throw tooManyBodies()
    return plan === 'stream' ? streamOf(content) : content
  }
  return plan === 'stream' ? content : readContent(content, service.limits.bodyBytes, signal, reservation)
}

/** The response to a request that its contract refuses; `code` is for metrics and the log. */
export type ContractRefusal = Pick<RefusedTarget, 'kind' | 'code' | 'response'>

/** Longer ones repeat long lists of allowed values, and a flood of refused targets could fill the memory. */
const longestRefusal = 1024

const rememberRefusal = ({ service, request }: MatchedContext, refused: RefusedTarget): void => {
  const { content } = refused.response
  if (Buffer.isBuffer(content) && content.length <= longestRefusal) {
    const text = contentText(content)
    service.memo.remember(request.target, { ...refused, response: { ...refused.response, text } })
  }
}

const remember = (ready: ValidatedContext, matching: Found): void => {
  const { service, target, query, uncacheable, policy, request } = ready
  const publicKey = cacheKey({ service: service.name, target, partition: 'public' })
  const recalled: ValidTarget = {
    kind: 'valid',
    matching,
    target,
    query,
    arguments: ready.arguments,
    sendsUndeclared: ready.sendsUndeclared,
    uncacheable,
    variant: undefined,
    policy,
    publicKey,
  }
  service.memo.remember(request.target, recalled)
  // One text for the key, here and where it is stored: another one would be hashed again.
  asRecalled(ready, recalled)
}

const checked = (
  context: MatchedContext,
  content: Buffer | Readable | undefined,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal | Promise<ValidatedContext | ContractRefusal> => {
  const { service, matching, method, query, request, admitted, client } = context
  const { headers } = request
  const canonical =
    admitted?.matching === matching
      ? admitted.canonical
      : canonicalInTurns(
          service.contract,
          method,
          matching,
          {
            query,
            headers,
            contentType: requestHeader(headers, 'content-type'),
            content: Buffer.isBuffer(content) ? content : undefined,
            isUnread: content instanceof Readable,
          },
          addressGroup(client.address),
        )
  return whenKnown(canonical, (known) => readyFrom(context, known, content, report))
}

const readyFrom = (
  context: MatchedContext,
  canonical: ReturnType<typeof canonicalOf>,
  content: Buffer | Readable | undefined,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal => {
  const { service, matching, query, request } = context
  const { headers } = request
  if (canonical.kind === 'invalid') {
    const { code, match } = canonical
    const response = refusalResponse({ service, row: match.row, query, headers }, canonical)
    // With several hosts a refusal may contain links to the host that was asked.
    if (
      service.address.host === '' &&
      match.endpoint.readsHeaders !== true &&
      isRefusedByTargetAlone(request)
    )
      rememberRefusal(context, { kind: 'refused', matching: match, code, response })
    return { kind: 'refused', code, response }
  }
  if (canonical.undeclared !== undefined) {
    const { handling, names } = canonical.undeclared
    report({ kind: 'undeclared-parameters', service: service.name, handling, count: names.length })
  }
  const ready = asReady(context, canonical, content)
  if (canonical.meaning !== undefined) ready.record.route = canonical.meaning.operation
  // Only what follows from the target alone.
  const mayBeRecalled = isGet(request.method) && content === undefined && matching.kind === 'found'
  if (mayBeRecalled && matching.endpoint.readsHeaders !== true) {
    remember(ready, matching)
    if (request.target !== service.mount + ready.target)
      report({ kind: 'target-canonicalised', service: service.name })
  }
  return ready
}

/** Checks arguments and content against the row, and makes the one form of the request that is keyed and sent. */
export const validate = (
  context: MatchedContext,
  reservation: Reservation,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal | Promise<ValidatedContext | ContractRefusal> => {
  const { recalled, request } = context
  if (request.content !== undefined)
    return whenKnown(contentOf(context, reservation), (content) => checked(context, content, report))
  if (recalled === undefined) return checked(context, undefined, report)
  return recalled.kind === 'valid' ? asReady(context, recalled, undefined) : recalled
}

async function* checkedPieces(
  content: Readable,
  maxBytes: number,
  inspector: ContentInspector | undefined,
): AsyncGenerator<Buffer> {
  let bytes = 0
  let pending: Buffer | undefined
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new GatewayError('content_too_large')
    const refusal = inspector?.read(chunk)
    if (refusal !== undefined) throw new GatewayError('ambiguous_request', { detail: refusal })
    if (pending !== undefined) yield pending
    pending = inspector?.ifEnded() === undefined ? undefined : chunk
    if (pending === undefined) yield chunk
  }
  const refusal = inspector?.ifEnded()
  if (refusal !== undefined) throw new GatewayError('ambiguous_request', { detail: refusal })
}

/**
 * The content, broken off with content_too_large as soon as it exceeds the bound, and with ambiguous_request before a piece that the
 * inspector refuses. Nothing is read ahead, but for a piece that must not be the last one.
 */
export const checkedContent = (
  content: Readable,
  maxBytes: number,
  inspector: ContentInspector | undefined,
): Readable =>
  Readable.from(checkedPieces(content, maxBytes, inspector), { objectMode: false, highWaterMark: 1 })

/** Reads a request's content whole, or throws content_too_large as soon as it is known to exceed the bound, `overloaded` when too much is held already. */
export const readContent = async (
  content: Buffer | Readable,
  maxBytes: number,
  signal: AbortSignal,
  reservation: Reservation,
): Promise<Buffer> => {
  if (Buffer.isBuffer(content)) {
    if (content.length > maxBytes) throw new GatewayError('content_too_large')
    return content
  }
  const reading = await readBody(content, maxBytes, reservation).catch((error: unknown) => {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(signal.aborted ? 'client_gone' : 'invalid_request', { cause: error })
  })
  if (reading.kind === 'whole') return reading.content
  discard(content)
  throw reading.kind === 'too-large' ? new GatewayError('content_too_large') : tooManyBodies()
}
