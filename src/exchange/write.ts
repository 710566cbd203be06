import { pipeline, Readable } from 'node:stream'
import type { InvalidateAgain, PostResponse } from '../cache/cache.ts'
import { decideCaching } from '../cache/decide-caching.ts'
import type { Note } from '../cache/invalidation.ts'
import { GatewayError } from '../errors.ts'
import { unlimited } from '../http/bounds.ts'
import {
  type Answer,
  discard,
  EndSignal,
  fieldValue,
  fieldValues,
  type GatewayResponse,
  isEventStream,
  teeContent,
} from '../http/message.ts'
import type { HarmlessClaim, Question, Said } from '../service/witness.ts'
import type { WriteKind } from './events.ts'
import { asOutgoing, type Outgoing, type Ready } from './exchange.ts'
import { codingsToPass, ownConditions, passedOn, tagConditions, uncoded } from './forward.ts'
import {
  completed,
  concurrentWritesOf,
  invalidateWrite,
  showsOwnTarget,
  type TrackedWrite,
  writeNotes,
} from './invalidate-write.ts'
import { isTold, judgeWrite, questionFor } from './judge-write.ts'
import type { CacheContext } from './ports.ts'
import { ExchangeRead, publicPart } from './read.ts'
import type { Service } from './service.ts'

type SendOutgoing = (exchange: Outgoing) => Answer

/** Begins with all services of the same upstream, since a write through one of them changes what the others store. */
const track = ({ cache }: CacheContext, { service }: Ready): TrackedWrite =>
  concurrentWritesOf(cache).begin([service.name, ...service.sharing().map(({ name }) => name)])

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
const storableResponse = ({ cache, forwarding }: CacheContext, exchange: Ready): PostResponse | undefined => {
  const { method, policy, service } = exchange
  if (method !== 'POST' || policy.profile !== 'rfc-shared-cache' || service.contract.hasRoutes)
    return undefined
  const { sensitive, identity } = exchange
  const asGet = { method: 'GET', fields: exchange.request.fields, hasContent: false, sensitive, identity }
  if (decideCaching(asGet, policy).kind !== 'read') return undefined
  return cache.postResponse(new ExchangeRead(exchange, publicPart, tagConditions, forwarding))
}

const mayBeStored = (service: Service): boolean =>
  service.storesAnswers || service.sharing().some(({ storesAnswers }) => storesAnswers)

/** Announces the write to the other processes that store responses of its upstream; gives the id of the announcement. */
const announce = async ({ announcer }: CacheContext, exchange: Ready): Promise<string | undefined> => {
  if (announcer === undefined) return undefined
  const begun = await announcer.begin(writeNotes(exchange, undefined), mayBeStored(exchange.service))
  // The connection to the shared store is tried again several times a second.
  if (begun.kind === 'refused')
    throw new GatewayError('shared_store_unreachable', { retryAfterSeconds: 1, unsent: true })
  return begun.write
}

/** Is the response streamed to the client? Otherwise it is read whole, because its content shows what the write has changed. */
const streamsResponse = ({ origin, method, service, matching, content }: Ready): boolean => {
  // An item of a batch has no connection.
  if (origin === 'batch' || method === 'GET' || method === 'HEAD') return false
  if (matching.kind === 'unlisted') return true
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return !service.contract.readsWriteResponse(matching.row, isUpload)
}

/**
 * Forwards the write with its own signal: a client that disconnects does not end it, so that its outcome is known. Otherwise
 * clients could empty the cache by sending writes and disconnecting. A content that streams ends with its client all the same.
 */
const forward = async (
  { budget }: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  isRead: boolean,
  question: Question | undefined,
): Promise<GatewayResponse> => {
  const conditions = ownConditions(exchange.request.fields)
  const response = await send(
    asOutgoing(exchange, {
      extraFields: question === undefined ? conditions : { ...conditions, 'trellis-nonce': question.field },
      withheld: tagConditions,
      acceptEncoding: isRead ? uncoded : codingsToPass(exchange),
      background: false,
      signal: new EndSignal(),
    }),
  )
  return streamsResponse(exchange) || (exchange.origin !== 'batch' && isEventStream(response))
    ? response
    : completed(response, exchange.service.bodyBytes, budget('write-answer', exchange.client.address))
}

/** The upstream did not get the whole request, so it did not carry it out. */
const wasIncomplete = (error: unknown): boolean =>
  error instanceof GatewayError && (error.unsent || error.incomplete)

/** What the companion states about the write; of one that was sent twice it says too little. */
const saidIn = ({ hints, isRepeated }: GatewayResponse, question: Question | undefined): Said | undefined => {
  const statement = isRepeated === true ? undefined : question?.read(hints?.statement)
  return statement === undefined || question === undefined ? undefined : { ...statement, key: question.key }
}

const kindOf = (exchange: Ready, said: Said | undefined): WriteKind => {
  if (said === undefined) return 'unknown'
  if (said.kind !== 'rows') return 'nothing'
  return [exchange.service, ...exchange.service.sharing()].some((service) => isTold(service, said))
    ? 'reported'
    : 'unknown'
}

/** Does the answer show that the write was one that changes nothing? */
const isShownBy = (claim: HarmlessClaim | undefined, response: GatewayResponse): boolean =>
  claim?.shownBy?.(response.status, fieldValues(response.fields, 'set-cookie')) === true &&
  response.isRepeated !== true

type Write = { readonly tracked: TrackedWrite; readonly announced: string | undefined }

/**
 * Invalidates what the write may have changed: in this process at once, in others when the promise resolves. `isOver`: it changes
 * nothing more.
 */
const invalidate = (
  { cache, announcer }: CacheContext,
  exchange: Ready,
  { tracked, announced }: Write,
  notes: readonly Note[],
  isOver: boolean,
): Promise<unknown> | undefined => {
  if (isOver) tracked.end()
  invalidateWrite(cache, exchange, notes)
  return announcer?.spread(notes, isOver ? announced : undefined)
}

/** Ends a write that failed: what it may have changed is invalidated, unless the upstream cannot have carried it out. */
const abandon = async (
  context: CacheContext,
  exchange: Ready,
  write: Write,
  error: unknown,
): Promise<void> => {
  if (!wasIncomplete(error)) await invalidate(context, exchange, write, writeNotes(exchange, undefined), true)
  else if (write.announced !== undefined) {
    write.tracked.end()
    await context.announcer?.spread([], write.announced)
  }
}

/**
 * The response, of which `invalidateAgain` is awaited before the client gets the end: a program may change more while it sends its
 * response. The content is stored for later reads where it may be.
 */
const endingWrite = (
  response: GatewayResponse,
  storable: PostResponse | undefined,
  invalidateAgain: InvalidateAgain,
): GatewayResponse => {
  const { content } = response
  const store = storable?.begin(response)
  if (content === undefined || Buffer.isBuffer(content)) {
    void store?.(content ?? Buffer.alloc(0), () => undefined)
    return response
  }
  const declared = fieldValue(response.fields, 'content-length')
  const tee = teeContent(
    storable?.maxBytes ?? 0,
    declared === undefined ? undefined : Number(declared),
    storable?.reservation ?? unlimited,
    (whole) =>
      whole === undefined || store === undefined ? invalidateAgain() : store(whole, invalidateAgain),
  )
  // An error on either side ends both; the reader of `tee` sees it.
  pipeline(content, tee, () => {})
  return { ...response, content: tee }
}

/**
 * Announces a write, forwards it, invalidates what it may have changed, here and wherever else it is stored, and only then
 * acknowledges it: a read that begins after the response gets nothing older.
 */
export const forwardWrite = async (
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  claim?: HarmlessClaim,
): Promise<GatewayResponse> => {
  exchange.record.taken = 'unknown'
  const tracked = track(context, exchange)
  const streams = streamsResponse(exchange)
  const storable = storableResponse(context, exchange)
  let response: GatewayResponse | undefined
  try {
    const write = { tracked, announced: await announce(context, exchange) }
    const question = questionFor(exchange)
    try {
      response = await forward(context, exchange, send, !streams || storable !== undefined, question)
    } catch (error) {
      await abandon(context, exchange, write, error)
      throw error
    }
    const isStored =
      storable !== undefined && showsOwnTarget(exchange, response) && storable.isStorable(response)
    const isOver = !(response.content instanceof Readable)
    const said = saidIn(response, question)
    const isHarmless = isShownBy(claim, response)
    exchange.record.taken = isHarmless ? 'table' : kindOf(exchange, said)
    const notes = isHarmless
      ? []
      : writeNotes(
          exchange,
          // A content that has not been read for it does not count: the row and the path decide.
          streams || !isOver ? { ...response, content: undefined } : response,
          tracked.isAlone() ? context.cache.contentsWithTag : undefined,
          said,
        )
    const spread = invalidate(context, exchange, write, notes, isOver)
    // Before the wait, so that invalidations by other writes during it count.
    const answer = endingWrite(response, isStored ? storable : undefined, () =>
      invalidate(context, exchange, write, notes, true),
    )
    await spread
    return answer
  } catch (error) {
    discard(response?.content)
    tracked.end()
    throw error
  }
}

/** Forwards a write and drops what it may have changed; one of which it is known that it changes nothing drops nothing. */
export const write = async (
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
): Promise<GatewayResponse> => {
  if (exchange.service.harmlessWrite === undefined) return forwardWrite(context, exchange, send)
  const judged = await judgeWrite(exchange, context.budget)
  const { claim } = judged
  if (claim === undefined || claim.shownBy !== undefined)
    return forwardWrite(context, judged.exchange, send, claim)
  exchange.record.taken = claim.by
  return send(passedOn(judged.exchange))
}
