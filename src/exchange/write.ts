import { Readable } from 'node:stream'
import { decideCaching } from '../cache/decide-caching.ts'
import type { PostResponse } from '../cache/post-response.ts'
import { bufferedResponse } from '../http/bodies/read-body.ts'
import { headerValue } from '../http/headers/header-lines.ts'
import { isEventStream } from '../http/headers/media-type.ts'
import { discard, type GatewayResponse, type ResponseOrPromise } from '../http/message.ts'
import { isGetOrHead, isPost } from '../http/methods.ts'
import type { HarmlessClaim, KeyedWriteReceipt, ReceiptNonce } from '../service/contract.ts'
import type { WriteKind } from './events.ts'
import type { Outgoing, ValidatedContext } from './exchange.ts'
import { codingsToPass, uncoded } from './forward/accepted-codings.ts'
import { ownConditions, tagConditions } from './forward/tag-conditions.ts'
import { passedOn } from './forward.ts'
import type { CacheDeps } from './ports.ts'
import { ExchangeRead, publicPart } from './read.ts'
import { isShownBy, judgeWrite, nonceFor } from './write/harmless-claim.ts'
import { mayHaveStarted, tasksStarted } from './write/scheduled-tasks.ts'
import { WriteInProgress } from './write/write-in-progress.ts'
import { isCoveredByFeed } from './write/write-invalidations.ts'
import { showsOwnTarget } from './write/written-targets.ts'
import type { Write } from './write-state.ts'

type SendOutgoing = (outgoing: Outgoing) => ResponseOrPromise

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
const storableResponse = (
  { cache, forwarding }: CacheDeps,
  context: ValidatedContext,
): PostResponse | undefined => {
  const { method, policy, service } = context
  if (!isPost(method) || policy.profile !== 'rfc-shared-cache' || service.contract.hasRoutes) return undefined
  const { uncacheable, identity } = context
  const asGet = { method: 'GET', headers: context.request.headers, hasContent: false, uncacheable, identity }
  if (decideCaching(asGet, policy).kind !== 'read') return undefined
  return cache.postResponse(new ExchangeRead(context, publicPart, tagConditions, forwarding))
}

/** Is the response streamed to the client? Otherwise it is read whole, because its content shows what the write has changed. */
const streamsResponse = ({ origin, method, service, matching, content }: ValidatedContext): boolean => {
  // An item of a batch has no connection.
  if (origin === 'batch' || isGetOrHead(method)) return false
  if (matching.kind === 'unlisted') return true
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return !service.contract.readsWriteResponse(matching.row, isUpload)
}

/** A content that streams ends with its client, whatever the signal says. */
const forward = async (
  { budget }: CacheDeps,
  context: ValidatedContext,
  send: SendOutgoing,
  isRead: boolean,
  nonce: ReceiptNonce | undefined,
  signal: AbortSignal,
): Promise<GatewayResponse> => {
  const conditions = ownConditions(context.request.headers)
  const response = await send({
    context,
    effect: 'write',
    extraHeaders: nonce === undefined ? conditions : { ...conditions, 'trellis-nonce': nonce.header },
    stripped: tagConditions,
    acceptEncoding: isRead ? uncoded : codingsToPass(context),
    background: false,
    signal,
  })
  return streamsResponse(context) || (context.origin !== 'batch' && isEventStream(response))
    ? response
    : bufferedResponse(
        response,
        context.service.limits.bodyBytes,
        budget('write-answer', context.client.address),
      )
}

/** What the companion says about the write; of one that was sent twice it says too little. */
const receiptIn = (
  { hints, isRepeated }: GatewayResponse,
  nonce: ReceiptNonce | undefined,
): KeyedWriteReceipt | undefined => {
  const receipt = isRepeated === true ? undefined : nonce?.read(hints?.receipt)
  return receipt === undefined || nonce === undefined ? undefined : { ...receipt, key: nonce.key }
}

const kindOf = (
  { service, snapshot }: ValidatedContext,
  receipt: KeyedWriteReceipt | undefined,
): WriteKind => {
  if (receipt === undefined) return 'unknown'
  if (receipt.kind !== 'rows') return 'nothing'
  return [service, ...snapshot.sharing(service)].some((service) => isCoveredByFeed(service, receipt))
    ? 'reported'
    : 'unknown'
}

/** Of requests for scheduled tasks alone each run drops what it may have changed, and not each request. */
const startsTasksAlone = (context: ValidatedContext): boolean => {
  const { service, snapshot, request, matching, query, uncacheable, policy } = context
  if (uncacheable !== 'cron' || policy.effect === 'writes') return false
  const { scheduledTasks, hasRoutes } = service.contract
  if (scheduledTasks?.areAlone(request.method, matching.path, query) !== true) return false
  return hasRoutes || snapshot.sharesRoutes(service)
}

/**
 * Tasks run behind the response, without a write receipt. While the upstream's log of changes is read, what they write is in it, as when
 * they start past the gateway.
 */
const isLeftToLog = (context: ValidatedContext, { status }: GatewayResponse): boolean =>
  startsTasksAlone(context) && status < 500 && nonceFor(context) !== undefined

/** Of a write without a receipt that drops nothing by itself; undefined for all others. The companion knows more than the table. */
const knownKind = (
  context: ValidatedContext,
  claim: HarmlessClaim | undefined,
  response: GatewayResponse,
  receipt: KeyedWriteReceipt | undefined,
): WriteKind | undefined => {
  if (receipt !== undefined) return undefined
  if (isShownBy(claim, response)) return 'table'
  return isLeftToLog(context, response) ? 'reported' : undefined
}

const declaredLength = ({ headers }: GatewayResponse): number | undefined => {
  const declared = headerValue(headers, 'content-length')
  return declared === undefined ? undefined : Number(declared)
}

/** Drops what the scheduled tasks may have changed that a write starts; undefined where it starts none. */
const tasksOfWrite = (
  deps: CacheDeps,
  requestContext: ValidatedContext,
  response: GatewayResponse | undefined,
  { outcome }: Write,
): Promise<unknown> | undefined => {
  if (requestContext.uncacheable !== 'cron') return undefined
  const mayRun = response === undefined ? outcome !== 'not-sent' : mayHaveStarted(response)
  return mayRun ? tasksStarted(deps, requestContext) : undefined
}

/**
 * Registers a write, forwards it, drops what it may have changed, here and wherever else it is stored, and only then
 * acknowledges it: a read that begins after the response gets nothing older.
 */
export const forwardWrite = async (
  deps: CacheDeps,
  requestContext: ValidatedContext,
  send: SendOutgoing,
  claim?: HarmlessClaim,
): Promise<GatewayResponse> => {
  requestContext.record.writeKind = 'unknown'
  const isTasksAlone = startsTasksAlone(requestContext)
  const write = new WriteInProgress(
    deps,
    requestContext,
    isTasksAlone || (claim !== undefined && claim.shownBy === undefined),
  )
  const storable = storableResponse(deps, requestContext)
  const streams = streamsResponse(requestContext)
  const isRead = !streams || storable !== undefined
  let response: GatewayResponse | undefined
  try {
    await write.register()
    const nonce = nonceFor(requestContext)
    response = await forward(deps, requestContext, send, isRead, nonce, write.signal)
    const mayStore = storable !== undefined && showsOwnTarget(requestContext, response)
    const isStored = mayStore && storable.isStorable(response)
    const receipt = receiptIn(response, nonce)
    const known = knownKind(requestContext, claim, response, receipt)
    requestContext.record.writeKind = known ?? kindOf(requestContext, receipt)
    const isStated = receipt !== undefined || known !== undefined
    const tasks = isStated ? undefined : tasksOfWrite(deps, requestContext, response, write.state)
    const dropped = write.respond(response, {
      isHarmless: known !== undefined || (isTasksAlone && receipt === undefined),
      isContentRead: !streams,
      receipt,
    })
    // Before the wait, so that invalidations by other writes during it count.
    const reply = responseOf(write, response, isStored ? storable : undefined)
    await Promise.all([dropped, tasks])
    return reply
  } catch (error) {
    discard(response?.content)
    await write.breakOff()
    await tasksOfWrite(deps, requestContext, response, write.state)
    throw error
  }
}

/** The response as the client gets it; its content is stored for later reads where it may be. */
const responseOf = (
  write: WriteInProgress,
  response: GatewayResponse,
  storable: PostResponse | undefined,
): GatewayResponse => {
  const { content } = response
  const post = storable?.begin(response)
  if (!(content instanceof Readable)) {
    void post?.store(content ?? Buffer.alloc(0), () => undefined)
    return response
  }
  const storing = storable && post && { ...storable, post }
  return { ...response, content: write.forwarded(content, declaredLength(response), storing) }
}

/** Forwards a write and drops what it may have changed; one of which it is known that it changes nothing drops nothing. */
export const write = async (
  deps: CacheDeps,
  requestContext: ValidatedContext,
  send: SendOutgoing,
): Promise<GatewayResponse> => {
  const { service, method, request } = requestContext
  // Of a POST that names another method, the upstream decides which one it has.
  if (service.contract.harmlessWrite === undefined || method !== request.method)
    return forwardWrite(deps, requestContext, send)
  const judged = await judgeWrite(requestContext, deps.budget)
  const { claim } = judged
  const isAsked = claim?.by === 'table' && nonceFor(requestContext) !== undefined
  if (claim === undefined || claim.shownBy !== undefined || isAsked)
    return forwardWrite(deps, judged.requestContext, send, claim)
  requestContext.record.writeKind = claim.by
  return send(passedOn(judged.requestContext))
}
