import { Readable } from 'node:stream'
import type { PostResponse } from '../cache/cache.ts'
import { decideCaching } from '../cache/decide-caching.ts'
import { type Answer, discard, fieldValue, type GatewayResponse, isEventStream } from '../http/message.ts'
import { isGetOrHead, isPost } from '../http/methods.ts'
import type { HarmlessClaim, Question, WitnessedStatement } from '../service/contract.ts'
import type { WriteKind } from './events.ts'
import type { Outgoing, Ready } from './exchange.ts'
import { codingsToPass, ownConditions, passedOn, tagConditions, uncoded } from './forward.ts'
import { completed, isTold, showsOwnTarget } from './invalidate-write.ts'
import type { CacheContext } from './ports.ts'
import { ExchangeRead, publicPart } from './read.ts'
import { isShownBy, judgeWrite, questionFor } from './write/harmless-claim.ts'
import { WriteInProgress } from './write/write-in-progress.ts'

type SendOutgoing = (outgoing: Outgoing) => Answer

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
const storableResponse = ({ cache, forwarding }: CacheContext, exchange: Ready): PostResponse | undefined => {
  const { method, policy, service } = exchange
  if (!isPost(method) || policy.profile !== 'rfc-shared-cache' || service.contract.hasRoutes) return undefined
  const { sensitive, identity } = exchange
  const asGet = { method: 'GET', fields: exchange.request.fields, hasContent: false, sensitive, identity }
  if (decideCaching(asGet, policy).kind !== 'read') return undefined
  return cache.postResponse(new ExchangeRead(exchange, publicPart, tagConditions, forwarding))
}

/** Is the response streamed to the client? Otherwise it is read whole, because its content shows what the write has changed. */
const streamsResponse = ({ origin, method, service, matching, content }: Ready): boolean => {
  // An item of a batch has no connection.
  if (origin === 'batch' || isGetOrHead(method)) return false
  if (matching.kind === 'unlisted') return true
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return !service.contract.readsWriteResponse(matching.row, isUpload)
}

/** A content that streams ends with its client, whatever the signal says. */
const forward = async (
  { budget }: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  isRead: boolean,
  question: Question | undefined,
  signal: AbortSignal,
): Promise<GatewayResponse> => {
  const conditions = ownConditions(exchange.request.fields)
  const response = await send({
    exchange,
    effect: 'write',
    extraFields: question === undefined ? conditions : { ...conditions, 'trellis-nonce': question.field },
    withheld: tagConditions,
    acceptEncoding: isRead ? uncoded : codingsToPass(exchange),
    background: false,
    signal,
  })
  return streamsResponse(exchange) || (exchange.origin !== 'batch' && isEventStream(response))
    ? response
    : completed(response, exchange.service.limits.bodyBytes, budget('write-answer', exchange.client.address))
}

/** What the companion states about the write; of one that was sent twice it says too little. */
const statementIn = (
  { hints, isRepeated }: GatewayResponse,
  question: Question | undefined,
): WitnessedStatement | undefined => {
  const statement = isRepeated === true ? undefined : question?.read(hints?.statement)
  return statement === undefined || question === undefined ? undefined : { ...statement, key: question.key }
}

const kindOf = ({ service, generation }: Ready, statement: WitnessedStatement | undefined): WriteKind => {
  if (statement === undefined) return 'unknown'
  if (statement.kind !== 'rows') return 'nothing'
  return [service, ...generation.sharing(service)].some((service) => isTold(service, statement))
    ? 'reported'
    : 'unknown'
}

/**
 * WordPress runs its tasks behind the response, without a statement. While the log of its changes is read, what they write is in it, as
 * when WordPress starts them past the gateway. A POST to another script that only names them may have done anything.
 */
const isLeftToLog = (exchange: Ready, { status }: GatewayResponse): boolean => {
  const { service, method, matching, sensitive } = exchange
  const isCron =
    sensitive === 'cron' &&
    (isGetOrHead(method) || service.contract.sensitivityOf(matching.path, '') === 'cron')
  return isCron && status < 500 && questionFor(exchange) !== undefined
}

/** Of a write without a statement that drops nothing by itself; undefined for all others. The companion knows more than the table. */
const knownKind = (
  exchange: Ready,
  claim: HarmlessClaim | undefined,
  response: GatewayResponse,
  statement: WitnessedStatement | undefined,
): WriteKind | undefined => {
  if (statement !== undefined) return undefined
  if (isShownBy(claim, response)) return 'table'
  return isLeftToLog(exchange, response) ? 'reported' : undefined
}

const declaredLength = ({ fields }: GatewayResponse): number | undefined => {
  const declared = fieldValue(fields, 'content-length')
  return declared === undefined ? undefined : Number(declared)
}

/**
 * Registers a write, forwards it, drops what it may have changed, here and wherever else it is stored, and only then
 * acknowledges it: a read that begins after the response gets nothing older.
 */
export const forwardWrite = async (
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  claim?: HarmlessClaim,
): Promise<GatewayResponse> => {
  exchange.record.writeKind = 'unknown'
  const write = new WriteInProgress(context, exchange, claim !== undefined && claim.shownBy === undefined)
  const storable = storableResponse(context, exchange)
  const streams = streamsResponse(exchange)
  const isRead = !streams || storable !== undefined
  let response: GatewayResponse | undefined
  try {
    await write.register()
    const question = questionFor(exchange)
    response = await forward(context, exchange, send, isRead, question, write.signal)
    const mayStore = storable !== undefined && showsOwnTarget(exchange, response)
    const isStored = mayStore && storable.isStorable(response)
    const statement = statementIn(response, question)
    const known = knownKind(exchange, claim, response, statement)
    exchange.record.writeKind = known ?? kindOf(exchange, statement)
    const dropped = write.respond(response, {
      isHarmless: known !== undefined,
      isContentRead: !streams,
      statement,
    })
    // Before the wait, so that invalidations by other writes during it count.
    const answer = answerOf(write, response, isStored ? storable : undefined)
    await dropped
    return answer
  } catch (error) {
    discard(response?.content)
    await write.breakOff()
    throw error
  }
}

/** The response as the client gets it; its content is stored for later reads where it may be. */
const answerOf = (
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
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
): Promise<GatewayResponse> => {
  const { service, method, request } = exchange
  // Of a POST that names another method, the upstream decides which one it has.
  if (service.contract.harmlessWrite === undefined || method !== request.method)
    return forwardWrite(context, exchange, send)
  const judged = await judgeWrite(exchange, context.budget)
  const { claim } = judged
  const isAsked = claim?.by === 'table' && questionFor(exchange) !== undefined
  if (claim === undefined || claim.shownBy !== undefined || isAsked)
    return forwardWrite(context, judged.exchange, send, claim)
  exchange.record.writeKind = claim.by
  return send(passedOn(judged.exchange))
}
