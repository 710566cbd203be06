import { Readable } from 'node:stream'
import { decideCaching, startsTasks } from '../cache/decide-caching.ts'
import type { PostResponse } from '../cache/post-response.ts'
import { bufferedResponse } from '../http/bodies/read-body.ts'
import { headerValue } from '../http/headers/header-lines.ts'
import { isEventStream } from '../http/headers/media-type.ts'
import { discard, type GatewayResponse, type ResponseOrPromise } from '../http/message.ts'
import { isGetOrHead, isPost } from '../http/methods.ts'
import type { HarmlessClaim, ReceiptNonce } from '../service/contract.ts'
import { codingsToPass, uncoded } from './forward/accepted-codings.ts'
import type { Outgoing } from './forward/outgoing.ts'
import { ownConditions, tagConditions } from './forward/tag-conditions.ts'
import { passedOn } from './forward.ts'
import type { CacheDeps } from './ports.ts'
import { ExchangeRead } from './read/exchange-read.ts'
import { publicPart } from './read/partition.ts'
import type { ValidatedContext } from './request-context.ts'
import { judgeWrite, nonceFor } from './write/harmless-claim.ts'
import { mayHaveStarted, tasksStarted } from './write/scheduled-tasks.ts'
import { type ResponseBody, WriteInProgress } from './write/write-in-progress.ts'
import type { WriteProgress } from './write/write-progress.ts'
import { leavesTasks, startsTasksAlone, verdictOf, writeKindOf } from './write/write-verdict.ts'
import { showsOwnTarget } from './write/written-targets.ts'

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

/** What the request says; one whose content shows what the write has changed is read whole. */
const expectedBody = ({ origin, method, service, matching, content }: ValidatedContext): ResponseBody => {
  // An item of a batch has no connection.
  if (origin === 'batch' || isGetOrHead(method)) return 'whole'
  if (matching.kind === 'unlisted') return 'streamed'
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return service.contract.readsWriteResponse(matching.row, isUpload) ? 'whole' : 'streamed'
}

/** Sends the write; resolves with the head of a response that streams, and with the whole of another. */
const forward = async (
  { budget }: CacheDeps,
  context: ValidatedContext,
  send: SendOutgoing,
  mayBeStored: boolean,
  nonce: ReceiptNonce | undefined,
  signal: AbortSignal,
): Promise<{ readonly response: GatewayResponse; readonly body: ResponseBody }> => {
  const conditions = ownConditions(context.request.headers)
  const expected = expectedBody(context)
  const response = await send({
    context,
    effect: 'write',
    extraHeaders: nonce === undefined ? conditions : { ...conditions, 'trellis-nonce': nonce.header },
    stripped: tagConditions,
    acceptEncoding: expected === 'whole' || mayBeStored ? uncoded : codingsToPass(context),
    background: false,
    // A content that streams ends with its client, whatever the signal says.
    signal,
  })
  const body = context.origin !== 'batch' && isEventStream(response) ? 'streamed' : expected
  if (body === 'streamed') return { response, body }
  const reservation = budget('write-answer', context.client.address)
  return { response: await bufferedResponse(response, context.service.limits.bodyBytes, reservation), body }
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
  { outcome }: WriteProgress,
): Promise<unknown> | undefined => {
  if (!startsTasks(requestContext.uncacheable)) return undefined
  const mayRun = response === undefined ? outcome !== 'not-sent' : mayHaveStarted(response)
  return mayRun ? tasksStarted(deps, requestContext) : undefined
}

/** How the response to the POST is stored; undefined: it is not. */
const storing = (
  storable: PostResponse | undefined,
  requestContext: ValidatedContext,
  response: GatewayResponse,
): PostResponse | undefined =>
  storable !== undefined && showsOwnTarget(requestContext, response) && storable.isStorable(response)
    ? storable
    : undefined

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
  let response: GatewayResponse | undefined
  try {
    await write.register()
    const nonce = nonceFor(requestContext)
    const forwarded = await forward(deps, requestContext, send, storable !== undefined, nonce, write.signal)
    response = forwarded.response
    const stored = storing(storable, requestContext, response)
    const verdict = verdictOf(requestContext, claim, isTasksAlone, response, nonce)
    requestContext.record.writeKind = writeKindOf(requestContext, verdict)
    const tasks = leavesTasks(verdict)
      ? tasksOfWrite(deps, requestContext, response, write.progress)
      : undefined
    const dropped = write.respond(response, verdict, forwarded.body)
    // Before the wait, so that invalidations by other writes during it count.
    const reply = responseOf(write, response, stored)
    await Promise.all([dropped, tasks])
    return reply
  } catch (error) {
    discard(response?.content)
    await write.breakOff()
    await tasksOfWrite(deps, requestContext, response, write.progress)
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
